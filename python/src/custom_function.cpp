#include <array>

#include "transforms.h"
#include "tree.h"
#include "weft/transforms.h"

namespace weft::python {

namespace {

/// Returns what a rule is given for positional arguments: the only one by itself, or all in a tuple.
nb::object unpacked(const nb::object& tuple) { return nb::len(tuple) == 1 ? nb::object(tuple[0]) : tuple; }

/// A function with rules of its own, as the decorators make it.
class CustomFunction {
 public:
  explicit CustomFunction(nb::callable fun) : fun_(std::move(fun)) {}

  nb::object operator()(const nb::args& args, const nb::kwargs& kwargs) const {
    // Rules may run when this call is over (in a derivative), so they share what they need.
    const Kept arguments(nb::make_tuple(nb::borrow<nb::tuple>(args), nb::borrow<nb::dict>(kwargs)));
    const Kept result;
    const ArrayFunction fun = [fun = Kept(fun_), arguments, result](const std::vector<array>& values) {
      nb::gil_scoped_acquire held;
      const nb::object replaced = filled(*arguments, values);
      nb::object found =
          nb::steal(PyObject_Call(fun->ptr(), nb::object(replaced[0]).ptr(), nb::object(replaced[1]).ptr()));
      if (!found.is_valid()) throw nb::python_error();
      *result = found;
      return arrays_of(found);
    };
    const std::vector<array> values = custom_function(fun, vjp_rule(arguments, result), jvp_rule(arguments),
                                                      vmap_rule(arguments))(arrays_of(*arguments));
    return filled(*result, values);
  }

  nb::object vjp, jvp, vmap;
  /// What Python's garbage collector has to know of.
  std::array<nb::object*, 4> held() { return {&fun_, &vjp, &jvp, &vmap}; }

 private:
  std::optional<CustomVjp> vjp_rule(const Kept& arguments, const Kept& result) const {
    if (!vjp.is_valid()) return std::nullopt;
    return
        [rule = Kept(vjp), arguments, result](const std::vector<array>& primals, const std::vector<array>& cotangents,
                                              const std::vector<array>& outputs) {
          nb::gil_scoped_acquire held;
          const nb::object given = filled(*arguments, primals);
          const nb::object derived = (*rule)(unpacked(given[0]), filled(*result, cotangents), filled(*result, outputs));
          std::vector<array> found = arrays_of(derived);
          if (found.size() != primals.size())
            throw std::invalid_argument("[custom vjp] the rule returned " + std::to_string(found.size()) +
                                        " arrays; it must return one for each of " + std::to_string(primals.size()));
          return found;
        };
  }

  std::optional<CustomJvp> jvp_rule(const Kept& arguments) const {
    if (!jvp.is_valid()) return std::nullopt;
    return [rule = Kept(jvp), arguments](const std::vector<array>& primals, const std::vector<array>& tangents,
                                         const std::vector<int>& argnums) {
      nb::gil_scoped_acquire held;
      const nb::object given = filled(*arguments, primals);
      int at = 0;
      size_t taken = 0;
      const nb::object directions = map_tree(given, [&](nb::handle leaf) -> nb::object {
        if (!is_array(leaf)) return nb::borrow(leaf);
        const bool has = taken < argnums.size() && argnums[taken] == at++;
        return has ? nb::cast(tangents[taken++]) : nb::none();
      });
      return arrays_of((*rule)(unpacked(given[0]), unpacked(directions[0])));
    };
  }

  std::optional<CustomVmap> vmap_rule(const Kept& arguments) const {
    if (!vmap.is_valid()) return std::nullopt;
    return [rule = Kept(vmap), arguments](const std::vector<array>& inputs, const std::vector<int>& axes) {
      nb::gil_scoped_acquire held;
      const nb::object given = filled(*arguments, inputs);
      size_t at = 0;
      const nb::object where = map_tree(given, [&](nb::handle leaf) -> nb::object {
        if (!is_array(leaf)) return nb::borrow(leaf);
        const int axis = axes[at++];
        return axis < 0 ? nb::none() : nb::object(nb::int_(axis));
      });
      const nb::object pair = (*rule)(unpacked(given[0]), unpacked(where[0]));
      std::vector<int> out;
      visit_leaves(nb::object(pair[1]),
                   [&](nb::handle leaf) { out.push_back(leaf.is_none() ? -1 : nb::cast<int>(leaf)); });
      return std::pair{arrays_of(nb::object(pair[0])), out};
    };
  }

  nb::object fun_;
};

int traverse(PyObject* self, visitproc visit, void* arg) noexcept {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  for (const nb::object* o : nb::inst_ptr<CustomFunction>(self)->held()) Py_VISIT(o->ptr());
  return 0;
}

int clear(PyObject* self) noexcept {
  for (nb::object* o : nb::inst_ptr<CustomFunction>(self)->held()) o->reset();
  return 0;
}

PyType_Slot slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {Py_tp_clear, reinterpret_cast<void*>(clear)}, {0, nullptr}};

}  // namespace

void define_custom_function(nb::module_& m) {
  nb::class_<CustomFunction>(m, "custom_function", nb::type_slots(slots),
                             "A function with derivatives or a batched form of its own, set by the decorators `vjp`, "
                             "`jvp` and `vmap`. What is not set follows from the function itself.")
      .def(nb::init<nb::callable>(), nb::arg("f"), nb::sig("def __init__(self, f: Callable) -> None"))
      .def("__call__", &CustomFunction::operator(), nb::sig("def __call__(self, *args, **kwargs) -> Any"))
      .def(
          "vjp", [](CustomFunction& c, nb::object f) { return c.vjp = std::move(f); }, nb::arg("f"),
          nb::sig("def vjp(self, f: Callable) -> Callable"),
          "Sets the rule f(primals, cotangents, outputs) → a cotangent for each primal.")
      .def(
          "jvp", [](CustomFunction& c, nb::object f) { return c.jvp = std::move(f); }, nb::arg("f"),
          nb::sig("def jvp(self, f: Callable) -> Callable"),
          "Sets the rule f(primals, tangents) → a tangent for each output; tangents that are missing are None.")
      .def(
          "vmap", [](CustomFunction& c, nb::object f) { return c.vmap = std::move(f); }, nb::arg("f"),
          nb::sig("def vmap(self, f: Callable) -> Callable"),
          "Sets the rule f(inputs, axes) → (outputs, their axes); None is not mapped.");
}

}  // namespace weft::python
