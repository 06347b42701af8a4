// Lengths that are known only when a traced function is called, as Python sees them in shapes.
#include "module.h"
#include "weft/shape.h"

namespace weft::python {

void define_lengths(nb::module_& m) {
  nb::class_<Dim>(
      m, "Length",
      "A length in the shape of an array, inside a function that is exported shapeless: it is known only when "
      "the function is called. It may stand in a shape, as in ``x.reshape(x.shape[0], -1)``; as a number it "
      "raises an error.")
      .def("__repr__",
           [](const Dim& d) {
             const std::string text = to_string(Shape{d});
             return text.substr(1, text.size() - 2);
           })
      .def("__eq__",
           [](const Dim& a, nb::handle b) {
             if (nb::isinstance<Dim>(b)) return a == nb::cast<Dim>(b);
             if (nb::isinstance<nb::int_>(b)) return int64_t{a} == nb::cast<int64_t>(b);  // throws: it is no number
             return false;
           })
      .def("__index__", [](const Dim& d) { return int64_t{d}; })
      .def("__hash__", [](const Dim& d) { return std::hash<const Symbol*>()(d.symbol()); });
}

}  // namespace weft::python
