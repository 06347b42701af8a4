#include <sstream>

#include "module.h"
#include "weft/utils.h"

namespace weft::python {

namespace {

using Category = Dtype::Category;
using DtypeOrCategory = std::variant<Dtype, Category>;

constexpr Dtype dtypes[] = {bool_,   uint8,    uint16,  uint32,  uint64,    int8,        int16,       int32,     int64,
                            float16, bfloat16, float32, float64, complex64, float8_e4m3, float8_e5m2, complex128};

bool is_kind(Dtype d, const std::string& kind) {
  if (kind == "bool") return d == bool_;
  if (kind == "signed integer") return issubdtype(d, signedinteger);
  if (kind == "unsigned integer") return issubdtype(d, unsignedinteger);
  if (kind == "integral") return issubdtype(d, integer);
  if (kind == "real floating") return issubdtype(d, floating);
  if (kind == "complex floating") return issubdtype(d, complexfloating);
  if (kind == "numeric") return issubdtype(d, number);
  throw std::invalid_argument("[isdtype] \"" + kind + "\" is no kind of dtypes; see the array API's isdtype");
}

bool is_dtype(Dtype d, nb::handle kind) {
  if (nb::isinstance<Dtype>(kind)) return d == nb::cast<Dtype>(kind);
  if (PyUnicode_Check(kind.ptr())) return is_kind(d, nb::cast<std::string>(kind));
  if (!PyTuple_Check(kind.ptr())) throw nb::type_error("[isdtype] kind must be a dtype, a text or a tuple of them");
  for (nb::handle one : nb::borrow<nb::tuple>(kind))
    if (is_dtype(d, one)) return true;
  return false;
}

Dtype dtype_of(nb::handle h) { return is_array(h) ? array_of(h).dtype() : nb::cast<Dtype>(h); }

void define_limits(nb::module_& m) {
  nb::class_<finfo>(m, "finfo", "Limits of a floating dtype; of a complex one, those of its parts.")
      .def(nb::init<Dtype>(), nb::arg("dtype"))
      .def_ro("dtype", &finfo::dtype)
      .def_ro("bits", &finfo::bits)
      .def_ro("min", &finfo::min)
      .def_ro("max", &finfo::max)
      .def_ro("eps", &finfo::eps)
      .def_ro("smallest_normal", &finfo::smallest_normal)
      .def("__repr__", [](const finfo& f) {
        std::ostringstream out;
        out << "finfo(min=" << f.min << ", max=" << f.max << ", dtype=" << dtype_name(f.dtype) << ")";
        return out.str();
      });
  nb::class_<iinfo>(m, "iinfo", "Limits of an integer dtype.")
      .def(nb::init<Dtype>(), nb::arg("dtype"))
      .def_ro("dtype", &iinfo::dtype)
      .def_ro("bits", &iinfo::bits)
      .def_ro("min", &iinfo::min)
      .def_ro("max", &iinfo::max)
      .def("__repr__", [](const iinfo& i) {
        std::ostringstream out;
        out << "iinfo(min=" << i.min << ", max=" << i.max << ", dtype=" << dtype_name(i.dtype) << ")";
        return out.str();
      });
}

/// Prints with other options between `with` and the end of its block.
struct PrintScope {
  int precision;
  std::vector<PrintOptions> before = {};
};

void set_precision(int precision) {
  PrintOptions options = get_printoptions();
  options.precision = precision;
  set_printoptions(options);
}

void define_printing(nb::module_& m) {
  nb::class_<PrintScope>(m, "_PrintOptionsContext")
      .def("__enter__",
           [](PrintScope& s) {
             s.before.push_back(get_printoptions());
             set_precision(s.precision);
           })
      .def("__exit__", [](PrintScope& s, const nb::args&) {
        set_printoptions(s.before.back());
        s.before.pop_back();
      });
  m.def(
      "printoptions", [](int precision) { return PrintScope{precision}; }, nb::arg("precision") = -1,
      "Returns a context in which arrays are printed with so many digits after the point.");
  nb::class_<PrintOptions>(m, "PrintOptions", "How arrays are printed.")
      .def_ro("precision", &PrintOptions::precision, "Digits after the point; -1 for as many as six digits need.");
  m.def("set_printoptions", &set_precision, nb::arg("precision") = -1, "Sets how arrays are printed from now on.");
  m.def("get_printoptions", &get_printoptions, "Returns how arrays are printed.");
}

}  // namespace

void define_dtypes(nb::module_& m) {
  nb::class_<Dtype> c(m, "Dtype", "The type of an array's elements.");
  c.def_prop_ro("size", &Dtype::size, "The bytes of an element.");
  c.def("__repr__", [](Dtype d) { return std::string("weft.core.") + (d == bool_ ? "bool" : dtype_name(d)); });
  c.def("__hash__", [](Dtype d) { return static_cast<int64_t>(d.val()); });
  c.def(
      "__eq__",
      [](Dtype d, nb::handle other) { return nb::isinstance<Dtype>(other) && *nb::inst_ptr<Dtype>(other) == d; },
      nb::arg("other").none());
  c.def("__reduce__", [](Dtype d) {
    return nb::make_tuple(nb::module_::import_("weft.core").attr("_dtype_of_name"), nb::make_tuple(dtype_name(d)));
  });
  for (const Dtype d : dtypes) m.attr(d == bool_ ? "bool_" : dtype_name(d)) = d;
  m.def("_dtype_of_name", &dtype_from_name, nb::arg("name"));

  nb::enum_<Category> categories(m, "DtypeCategory", "Groups of dtypes, for issubdtype.");
  constexpr std::pair<const char*, Category> names[] = {{"complexfloating", complexfloating},
                                                        {"floating", floating},
                                                        {"inexact", inexact},
                                                        {"signedinteger", signedinteger},
                                                        {"unsignedinteger", unsignedinteger},
                                                        {"integer", integer},
                                                        {"number", number},
                                                        {"generic", generic}};
  for (const auto& [name, category] : names) categories.value(name, category);
  for (const auto& [name, category] : names) m.attr(name) = category;

  m.def(
      "issubdtype",
      [](const DtypeOrCategory& a, const DtypeOrCategory& b) {
        return std::visit(
            [](const auto& x, const auto& y) {
              using X = std::decay_t<decltype(x)>;
              using Y = std::decay_t<decltype(y)>;
              if constexpr (std::is_same_v<X, Category> && std::is_same_v<Y, Dtype>) return false;
              else return issubdtype(x, y);
            },
            a, b);
      },
      nb::arg("arg1"), nb::arg("arg2"), "Returns whether a dtype or category is, or lies in, another one.");
  m.def("isdtype", is_dtype, nb::arg("dtype"), nb::arg("kind"),
        nb::sig("def isdtype(dtype: Dtype, kind: Dtype | str | tuple[Dtype | str, ...]) -> bool"),
        "Returns whether a dtype is another one, or of a kind of the array API, or one of several.");
  m.def(
      "can_cast", [](nb::handle from, Dtype to) { return promote_types(dtype_of(from), to) == to; }, nb::arg("from_"),
      nb::arg("to"), nb::sig("def can_cast(from_: array | Dtype, to: Dtype) -> bool"),
      "Returns whether a dtype promotes to another one without loss.");
  m.def(
      "result_type",
      [](const nb::args& all) {
        if (all.size() == 0) throw std::invalid_argument("[result_type] give at least one array or dtype");
        Dtype found = bool_;
        for (nb::handle h : all) found = promote_types(found, dtype_of(h));
        return found;
      },
      nb::arg("arrays_and_dtypes"), nb::sig("def result_type(*arrays_and_dtypes: array | Dtype) -> Dtype"),
      "Returns the dtype that all promote to.");
  define_limits(m);
  define_printing(m);
}

}  // namespace weft::python
