// Values of the kernel language in Python: tiles, variables, their operators, and operators by name.
#include <array>
#include <mutex>
#include <set>

#include "kernel_language.h"
#include "weft/kernel/functions.h"

namespace weft::python::kernels {

Line here() {
  PyFrameObject* const frame = PyEval_GetFrame();
  if (!frame) return {};
  static std::mutex mutex;
  static auto* files = new std::set<std::string, std::less<>>;  // lines refer to them as long as the process lives
  const nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  const nb::object name = code.attr("co_filename");
  const std::lock_guard lock(mutex);
  const char* const text = PyUnicode_AsUTF8(name.ptr());
  auto found = files->find(std::string_view(text));
  if (found == files->end()) found = files->insert(text).first;
  return {found->c_str(), PyFrame_GetLineNumber(frame)};
}

void refuse(Line at, const std::string& what) {
  throw std::invalid_argument("[kernel] " + std::string(at.file) + ":" + std::to_string(at.number) + ": " + what);
}

bool is_value(nb::handle object) { return nb::isinstance<Value>(object); }

Any tile_of(nb::handle object, Line at) {
  if (!is_value(object)) {
    const std::string type = nb::cast<std::string>(nb::str(object.type()));
    throw nb::type_error(
        ("[kernel] " + type + " is no tile, slice or variable: make one of numbers by full or scalar").c_str());
  }
  return nb::cast<const Value&>(object).any(at);
}

k::Scalar scalar_of(nb::handle number) {
  if (PyBool_Check(number.ptr())) return k::Scalar(number.ptr() == Py_True);
  if (PyFloat_Check(number.ptr())) return k::Scalar(PyFloat_AS_DOUBLE(number.ptr()));
  if (int64_t i = 0; read_int(number, i)) return k::Scalar(i);
  throw nb::type_error(("[kernel] " + nb::cast<std::string>(nb::repr(number)) + " is no number of 64 bits").c_str());
}

Any operand(nb::handle object, Dtype dtype, Line at) {
  if (is_value(object)) return tile_of(object, at);
  if (!is_scalar(object)) {
    int64_t i = 0;
    if (!read_int(object, i)) return tile_of(object, at);  // which refuses it
  }
  if (PyFloat_Check(object.ptr()) && !issubdtype(dtype, inexact))
    refuse(at, std::string("a float beside ") + dtype_name(dtype) + ": cast the tile to a float dtype first");
  return k::constant(dtype, scalar_of(object), {}, at);
}

Any index_of(nb::handle object, Line at) {
  if (!is_value(object)) {
    int64_t i = 0;
    if (!read_int(object, i))
      throw nb::type_error(("[kernel] an index is an int or an integer scalar of the kernel, not " +
                            nb::cast<std::string>(nb::str(object.type())))
                               .c_str());
    return k::constant(int64, i, {}, at);
  }
  const Any v = tile_of(object, at);
  const Dtype own = v.dtype(at);
  return own != int64 && issubdtype(own, integer) ? k::cast(v, int64, at) : v;
}

std::vector<int64_t> extents_of(const Lengths& lengths) {
  std::vector<int64_t> out;
  for (const Dim& n : lengths.shape) out.push_back(n.bound());
  return out;
}

Any binary(const char* op, nb::handle a, nb::handle b, Line at) {
  const bool left = is_value(a);
  if (left) {
    const Any first = tile_of(a, at);
    return k::apply(op, std::array{first, operand(b, first.dtype(at), at)}, at);
  }
  const Any second = tile_of(b, at);
  return k::apply(op, std::array{operand(a, second.dtype(at), at), second}, at);
}

nb::object tiles(const std::vector<Any>& values) {
  if (values.empty()) return nb::none();
  if (values.size() == 1) return nb::cast(Tile(values[0]));
  nb::list out;
  for (const Any& v : values) out.append(Tile(v));
  return nb::tuple(out);
}

std::vector<Any> tiles_in(nb::handle object, Line at) {
  if (object.is_none()) return {};
  if (is_value(object)) return {tile_of(object, at)};
  if (!PyTuple_Check(object.ptr()) && !PyList_Check(object.ptr())) return {tile_of(object, at)};  // which refuses it
  std::vector<Any> out;
  for (const nb::handle item : object) out.push_back(tile_of(item, at));
  return out;
}

namespace {

using Class = nb::class_<Value>;

/// Returns whether an object may stand beside a value in an operator.
bool is_operand(nb::handle object) {
  int64_t i = 0;
  return is_value(object) || is_scalar(object) || read_int(object, i);
}

nb::object no_operand() { return nb::borrow(Py_NotImplemented); }

/// The quotient of floats.
Any quotient(nb::handle a, nb::handle b, Line at) {
  const Dtype dtype = tile_of(is_value(a) ? a : b, at).dtype(at);
  if (!issubdtype(dtype, inexact))
    refuse(at, std::string("the operands of / are ") + dtype_name(dtype) + ": use // for integers, or cast them");
  return binary("div", a, b, at);
}

Any power_of(nb::handle a, nb::handle b, Line at) {
  int64_t exponent = 0;
  if (is_value(a) && !is_value(b) && read_int(b, exponent) && exponent == 2)
    return k::apply("square", std::array{tile_of(a, at)}, at);
  return binary("pow", a, b, at);
}

Any product_of(nb::handle a, nb::handle b, Line at) {
  return k::dot(tile_of(a, at), tile_of(b, at), {}, k::Precision::exact, at);
}

using Operation = Any (*)(nb::handle, nb::handle, Line);

/// An operator of two operands: the method, the reflected one, and the one that changes a variable.
struct BinaryOperator {
  const char *name, *reflected, *in_place;
  const char* op;  // of docs/operators.md; none: the function
  Operation function;
};

constexpr BinaryOperator tile_operators[] = {
    {"__add__", "__radd__", "__iadd__", "add", nullptr},
    {"__sub__", "__rsub__", "__isub__", "sub", nullptr},
    {"__mul__", "__rmul__", "__imul__", "mul", nullptr},
    {"__truediv__", "__rtruediv__", "__itruediv__", nullptr, quotient},
    {"__floordiv__", "__rfloordiv__", "__ifloordiv__", "floordiv", nullptr},
    {"__mod__", "__rmod__", "__imod__", "mod", nullptr},
    {"__pow__", "__rpow__", "__ipow__", nullptr, power_of},
    {"__matmul__", nullptr, nullptr, nullptr, product_of},
    {"__and__", "__rand__", "__iand__", "bit_and", nullptr},
    {"__or__", "__ror__", "__ior__", "bit_or", nullptr},
    {"__xor__", "__rxor__", "__ixor__", "bit_xor", nullptr},
    {"__lshift__", "__rlshift__", "__ilshift__", "shl", nullptr},
    {"__rshift__", "__rrshift__", "__irshift__", "shr", nullptr},
    {"__lt__", nullptr, nullptr, "lt", nullptr},
    {"__le__", nullptr, nullptr, "le", nullptr},
    {"__eq__", nullptr, nullptr, "eq", nullptr},
    {"__ne__", nullptr, nullptr, "ne", nullptr},
};

Any computed(const BinaryOperator& op, nb::handle a, nb::handle b, Line at) {
  return op.op ? binary(op.op, a, b, at) : op.function(a, b, at);
}

std::string signature_of(const char* name, const char* result = "Tile") {
  const bool compares = std::string_view(name) == "__eq__" || std::string_view(name) == "__ne__";
  return std::string("def ") + name + "(self, other: " + (compares ? "object" : "Value | float") + ") -> " + result;
}

void define_tile_operators(Class& c) {
  for (const BinaryOperator& op : tile_operators) {
    c.def(
        op.name,
        [p = &op](nb::handle a, nb::handle b) {
          return is_operand(b) ? nb::cast(Tile(computed(*p, a, b, here()))) : no_operand();
        },
        nb::arg("other").none(), nb::is_operator(), nb::sig(signature_of(op.name).c_str()));
    if (!op.reflected) continue;
    c.def(
        op.reflected,
        [p = &op](nb::handle a, nb::handle b) {
          return is_operand(b) ? nb::cast(Tile(computed(*p, b, a, here()))) : no_operand();
        },
        nb::arg("other").none(), nb::is_operator(), nb::sig(signature_of(op.reflected).c_str()));
  }
  for (const auto& [name, swapped] : {std::pair{"__gt__", "lt"}, std::pair{"__ge__", "le"}})
    c.def(
        name,
        [swapped = swapped](nb::handle a, nb::handle b) {
          return is_operand(b) ? nb::cast(Tile(binary(swapped, b, a, here()))) : no_operand();
        },
        nb::arg("other").none(), nb::is_operator(), nb::sig(signature_of(name).c_str()));
  for (const auto& [name, op] : {std::pair{"__neg__", "neg"}, std::pair{"__abs__", "abs"}, {"__invert__", "bit_not"}})
    c.def(name, [op = op](nb::handle a) {
      const Line at = here();
      return Tile(k::apply(op, std::array{tile_of(a, at)}, at));
    });
  c.def("__pos__", [](nb::handle a) { return Tile(tile_of(a, here())); });
  c.def(
      "__bool__",
      [](nb::handle) -> bool {
        throw nb::type_error(
            "[kernel] a traced value is neither true nor false: use when, if_else or where in place "
            "of Python's if");
      },
      "Raises TypeError: what a kernel computes is not known while it is traced.");
  c.attr("__iter__") = nb::none();
}

/// Returns the tile of a subscript of new axes (None), whole axes (:) and parts of known extents.
Any part_of_tile(const Any& v, nb::handle key, Line at) {
  std::vector<int64_t> starts, dims, steps, shape;
  const std::vector<int64_t> own = v.dims(at);
  const nb::tuple keys = PyTuple_Check(key.ptr()) ? nb::borrow<nb::tuple>(key) : nb::make_tuple(key);
  size_t axis = 0;
  for (const nb::handle item : keys) {
    if (item.is_none()) {
      shape.push_back(1);
      continue;
    }
    if (!PySlice_Check(item.ptr()))
      refuse(at, "a tile takes `:`, None and slices of known extents: load what an index chooses, or use take");
    if (axis == own.size()) refuse(at, "a tile has fewer axes than the subscript names");
    Py_ssize_t start = 0, stop = 0, step = 1;
    if (PySlice_Unpack(item.ptr(), &start, &stop, &step) != 0) throw nb::python_error();
    const Py_ssize_t length = PySlice_AdjustIndices(static_cast<Py_ssize_t>(own[axis++]), &start, &stop, step);
    if (step < 1 || length < 1) refuse(at, "a part of a tile has one element at least, and a positive step");
    starts.push_back(start), dims.push_back(length), steps.push_back(step), shape.push_back(length);
  }
  for (; axis < own.size(); ++axis)
    starts.push_back(0), dims.push_back(own[axis]), steps.push_back(1), shape.push_back(own[axis]);
  const Any part = dims == own ? v : k::slice(v, starts, dims, steps, at);
  return shape == dims ? part : k::reshape(part, shape, at);
}

nb::tuple shape_of(const Any& v, Line at) {
  nb::list out;
  for (const int64_t n : v.dims(at)) out.append(n);
  return nb::tuple(out);
}

void define_value(nb::module_& m) {
  Class c(m, "Value", "What stands for a tile in a kernel: a tile, a slice of an array or a variable.");
  c.def_prop_ro(
      "dtype", [](const Value& v) { return v.any(here()).dtype(here()); }, nb::sig("def dtype(self) -> Dtype"),
      "The dtype of the elements.");
  c.def_prop_ro(
      "shape", [](const Value& v) { return shape_of(v.any(here()), here()); },
      nb::sig("def shape(self) -> tuple[int, ...]"), "The extents; none of a scalar.");
  c.def_prop_ro(
      "ndim", [](const Value& v) { return v.any(here()).rank(here()); }, "The number of axes.");
  c.def(
      "astype",
      [](const Value& v, Dtype dtype) {
        const Line at = here();
        return Tile(k::cast(v.any(at), dtype, at));
      },
      nb::arg("dtype"),
      "Converts the elements: floats to integers toward zero, saturating; to narrower floats to nearest even.");
  define_tile_operators(c);

  nb::class_<Tile, Value> tile(m, "Tile", "A block of numbers of zero to four axes, which a program holds.");
  tile.def(
      "__getitem__",
      [](const Tile& v, nb::handle key) {
        const Line at = here();
        return Tile(part_of_tile(v.tile, key, at));
      },
      nb::arg("key").none(), nb::sig("def __getitem__(self, key: Any) -> Tile"),
      "Returns a view: `:` keeps an axis, None adds one of extent 1, a slice of ints takes a part.");
  tile.def_prop_ro(
      "T",
      [](const Tile& v) {
        const Line at = here();
        const int rank = v.tile.rank(at);
        std::vector<int> axes;
        for (int axis = rank; axis-- > 0;) axes.push_back(axis);
        return Tile(k::permute(v.tile, axes, at));
      },
      "The tile with its axes in reverse order.");

  nb::class_<Variable, Value> variable(
      m, "Variable", "A tile that assignments replace, which loops and conditions carry. Its shape and dtype stay.");
  const auto assign = [](const Variable& v, nb::handle value) {
    const Line at = here();
    const Any now = v.cell->get(at);
    v.cell->set(operand(value, now.dtype(at), at), at);
  };
  variable.def_prop_rw(
      "value", [](const Variable& v) { return Tile(v.any(here())); }, assign, "The tile that it is now.");
  variable.def("set", assign, nb::arg("value"), nb::sig("def set(self, value: Value | float) -> None"),
               "Replaces the tile.");
  for (const BinaryOperator& op : tile_operators) {
    if (!op.in_place) continue;
    variable.def(
        op.in_place,
        [p = &op](nb::handle self, nb::handle other) {
          const Line at = here();
          if (!is_operand(other)) return no_operand();
          nb::cast<const Variable&>(self).cell->set(computed(*p, self, other, at), at);
          return nb::borrow(self);
        },
        nb::arg("other").none(), nb::is_operator(), nb::sig(signature_of(op.in_place, "Variable").c_str()));
  }
  m.def(
      "var",
      [](nb::handle initial, const std::optional<Dtype>& dtype) {
        const Line at = here();
        return Variable(operand(initial, dtype.value_or(float32), at), at);
      },
      nb::arg("initial"), nb::arg("dtype") = nb::none(),
      nb::sig("def var(initial: Value | float, dtype: Dtype | None = None) -> Variable"),
      "Makes a variable of a tile, or of a number in a dtype (float32): loops and conditions carry it.");
}

struct Named {
  const char *name, *op, *doc;
};

constexpr Named unary_functions[] = {
    {"abs", "abs", "Returns the magnitude."},
    {"sqrt", "sqrt", "Returns the square root."},
    {"rsqrt", "rsqrt", "Returns 1 / √a."},
    {"recip", "recip", "Returns 1 / a."},
    {"square", "square", "Returns a²."},
    {"floor", "floor", "Returns a rounded down."},
    {"ceil", "ceil", "Returns a rounded up."},
    {"trunc", "trunc", "Returns a rounded toward 0."},
    {"round", "round", "Returns a rounded to nearest, halves to even."},
    {"sign", "sign", "Returns -1, 0 or 1 by the sign."},
    {"exp", "exp", "Returns e to the power a."},
    {"exp2", "exp2", "Returns 2 to the power a."},
    {"expm1", "expm1", "Returns exp(a) - 1, accurate near 0."},
    {"log", "log", "Returns the natural logarithm."},
    {"log2", "log2", "Returns the logarithm to base 2."},
    {"log1p", "log1p", "Returns log(1 + a), accurate near 0."},
    {"sin", "sin", "Returns the sine."},
    {"cos", "cos", "Returns the cosine."},
    {"tanh", "tanh", "Returns the hyperbolic tangent."},
    {"erf", "erf", "Returns the error function."},
    {"sigmoid", "sigmoid", "Returns 1 / (1 + exp(-a))."},
};
constexpr Named binary_functions[] = {
    {"maximum", "max", "Returns the larger of two elements; NaN where either is."},
    {"minimum", "min", "Returns the smaller of two elements; NaN where either is."},
    {"floordiv", "floordiv", "Returns the quotient, rounded down."},
    {"mod", "mod", "Returns the remainder of floordiv, with the sign of b."},
    {"pow", "pow", "Returns a to the power b."},
};

Any chosen(nb::handle condition, nb::handle a, nb::handle b, Line at) {
  const Dtype dtype = tile_of(is_value(a) ? a : b, at).dtype(at);
  return k::apply("select", std::array{tile_of(condition, at), operand(a, dtype, at), operand(b, dtype, at)}, at);
}

/// Computes an operator by its name; numbers have the dtype of the first tile.
Any by_operator_name(const std::string& op, const nb::args& args, Line at) {
  std::optional<Dtype> dtype;
  for (const nb::handle a : args)
    if (!dtype && is_value(a)) dtype = tile_of(a, at).dtype(at);
  if (!dtype) throw nb::type_error("[kernel] apply takes one tile at least");
  std::vector<Any> operands;
  for (const nb::handle a : args) operands.push_back(operand(a, *dtype, at));
  return k::apply(op, operands, at);
}

void define_named(nb::module_& m) {
  for (const Named& f : unary_functions)
    m.def(
        f.name,
        [op = f.op](nb::handle v) {
          const Line at = here();
          return Tile(k::apply(op, std::array{tile_of(v, at)}, at));
        },
        nb::arg("v"), nb::sig((std::string("def ") + f.name + "(v: Value) -> Tile").c_str()), f.doc);
  for (const Named& f : binary_functions)
    m.def(
        f.name, [op = f.op](nb::handle a, nb::handle b) { return Tile(binary(op, a, b, here())); }, nb::arg("a"),
        nb::arg("b"), nb::sig((std::string("def ") + f.name + "(a: Value | float, b: Value | float) -> Tile").c_str()),
        f.doc);
  m.def(
      "fma",
      [](nb::handle a, nb::handle b, nb::handle c) {
        const Line at = here();
        const Any first = tile_of(a, at);
        const Dtype dtype = first.dtype(at);
        return Tile(k::apply("fma", std::array{first, operand(b, dtype, at), operand(c, dtype, at)}, at));
      },
      nb::arg("a"), nb::arg("b"), nb::arg("c"),
      nb::sig("def fma(a: Value, b: Value | float, c: Value | float) -> Tile"), "Returns a · b + c, rounded once.");
  m.def(
      "where", [](nb::handle c, nb::handle a, nb::handle b) { return Tile(chosen(c, a, b, here())); },
      nb::arg("condition"), nb::arg("a"), nb::arg("b"),
      nb::sig("def where(condition: Value, a: Value | float, b: Value | float) -> Tile"),
      "Returns a where the condition holds, else b; one of them at least is a tile.");
  m.def(
      "apply", [](const std::string& op, const nb::args& args) { return Tile(by_operator_name(op, args, here())); },
      nb::arg("op"), nb::arg("args"), nb::sig("def apply(op: str, *args: Value | float) -> Tile"),
      "Computes a scalar operator by its name in docs/operators.md. Scalars and axes of extent 1 repeat.");
}

}  // namespace

void define_values(nb::module_& m) {
  define_value(m);
  define_named(m);
}

}  // namespace weft::python::kernels
