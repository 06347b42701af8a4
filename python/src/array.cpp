#include <complex>
#include <cstring>
#include <sstream>

#include "indexing.h"
#include "module.h"
#include "weft/ops.h"
#include "weft/utils.h"

namespace weft::python {

namespace {

/// Evaluates without the interpreter's lock.
void compute(const array& a) {
  if (a.is_available()) return;
  nb::gil_scoped_release released;
  a.eval();
}

/// Returns the Python number of one element in memory.
nb::object number_at(const void* data, Dtype dtype) {
  const auto read = [data]<class T>(T) {
    T value;
    std::memcpy(&value, data, sizeof value);
    return value;
  };
  switch (dtype) {
    case Dtype::Val::bool_: return nb::bool_(read(uint8_t{}) != 0);
    case Dtype::Val::uint8: return nb::int_(read(uint8_t{}));
    case Dtype::Val::uint16: return nb::int_(read(uint16_t{}));
    case Dtype::Val::uint32: return nb::int_(read(uint32_t{}));
    case Dtype::Val::uint64: return nb::int_(read(uint64_t{}));
    case Dtype::Val::int8: return nb::int_(read(int8_t{}));
    case Dtype::Val::int16: return nb::int_(read(int16_t{}));
    case Dtype::Val::int32: return nb::int_(read(int32_t{}));
    case Dtype::Val::int64: return nb::int_(read(int64_t{}));
    case Dtype::Val::float16: return nb::float_(static_cast<float>(read(float16_t{})));
    case Dtype::Val::bfloat16: return nb::float_(static_cast<float>(read(bfloat16_t{})));
    case Dtype::Val::float32: return nb::float_(read(float{}));
    case Dtype::Val::float64: return nb::float_(read(double{}));
    case Dtype::Val::complex64: {
      const auto z = read(std::complex<float>{});
      return nb::steal(PyComplex_FromDoubles(z.real(), z.imag()));
    }
    case Dtype::Val::complex128: {
      const auto z = read(std::complex<double>{});
      return nb::steal(PyComplex_FromDoubles(z.real(), z.imag()));
    }
    default: return number_at(astype(array::from_data(data, {}, dtype), float32).raw_data(), float32);
  }
}

/// Returns row-major elements from `data` on as nested lists; `data` moves on.
nb::object nested(const char*& data, const array& a, size_t axis) {
  if (axis == a.ndim()) {
    nb::object out = number_at(data, a.dtype());
    data += a.itemsize();
    return out;
  }
  nb::object out = nb::steal(PyList_New(static_cast<Py_ssize_t>(int64_t{a.shape()[axis]})));
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(out.ptr()); ++k)
    PyList_SET_ITEM(out.ptr(), k, nested(data, a, axis + 1).release().ptr());
  return out;
}

nb::object to_list(const array& a) {
  compute(a);
  const auto* data = static_cast<const char*>(a.raw_data());
  return nested(data, a, 0);
}

nb::object item(const array& a) {
  if (a.size() != 1)
    throw std::invalid_argument("[item] an array of shape " + to_string(a.shape()) +
                                " has not one element; only one can be a Python number");
  compute(a);
  return number_at(a.raw_data(), a.dtype());
}

/// The letters of dtypes in buffers, by Dtype::Val; none for those that NumPy lacks.
const char* format_of(Dtype dtype) {
  static constexpr const char* formats[] = {"?", "B",     "H", "I", "L",  "b",     "h",     "i", "l",
                                            "e", nullptr, "f", "d", "Zf", nullptr, nullptr, "Zd"};
  const auto at = static_cast<size_t>(dtype.val());
  return at < std::size(formats) ? formats[at] : nullptr;
}

/// What a buffer's shape and strides live in.
struct BufferShape {
  array held;
  std::vector<Py_ssize_t> shape, strides;
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  try {
    const array& a = array_of(self);
    const char* format = format_of(a.dtype());
    if (!format) {
      PyErr_Format(PyExc_BufferError, "buffers have no format for %s; convert with astype", dtype_name(a.dtype()));
      return -1;
    }
    if (flags & PyBUF_WRITABLE) {
      PyErr_SetString(PyExc_BufferError, "arrays are values: their buffers are read-only");
      return -1;
    }
    compute(a);
    auto* info = new BufferShape{a, {}, {}};
    auto stride = static_cast<Py_ssize_t>(a.itemsize());
    for (const Dim& n : a.shape()) info->shape.push_back(n.bound());
    info->strides.resize(a.ndim());
    for (size_t k = a.ndim(); k-- > 0; stride *= info->shape[k]) info->strides[k] = stride;
    *view = {};
    view->obj = self;
    Py_INCREF(self);
    view->buf = const_cast<void*>(a.raw_data());
    view->len = static_cast<Py_ssize_t>(a.nbytes());
    view->itemsize = static_cast<Py_ssize_t>(a.itemsize());
    view->readonly = 1;
    view->ndim = static_cast<int>(a.ndim());
    view->format = (flags & PyBUF_FORMAT) ? const_cast<char*>(format) : nullptr;
    view->shape = info->shape.data();
    view->strides = info->strides.data();
    view->internal = info;
    return 0;
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
  }
  return -1;
}

void release_buffer(PyObject*, Py_buffer* view) noexcept { delete static_cast<BufferShape*>(view->internal); }

PyType_Slot array_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                             {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                             {0, nullptr}};

std::string text_of(const array& a) {
  compute(a);
  std::ostringstream out;
  out << a;
  return out.str();
}

/// Returns NumPy's array of a copy; bfloat16 is ml_dtypes' where that package is, float32 otherwise.
nb::object to_numpy(const array& a, nb::handle dtype) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  nb::object out;
  if (a.dtype() == bfloat16) {
    try {
      const nb::module_ types = nb::module_::import_("ml_dtypes");
      const array bits = a.ndim() == 0 ? reshape(view(reshape(a, {1}), uint16), {}) : view(a, uint16);
      out = numpy.attr("array")(bits).attr("view")(types.attr("bfloat16"));
    } catch (nb::python_error&) {
      out = numpy.attr("array")(astype(a, float32));
    }
  } else {
    out = numpy.attr("array")(nb::module_::import_("builtins").attr("memoryview")(a));
  }
  return dtype.is_none() ? out : out.attr("astype")(dtype);
}

/// Returns the Python number that `float(a)` and its like convert.
double as_double(const array& a) {
  if (issubdtype(a.dtype(), complexfloating)) throw nb::type_error("a complex number cannot become a float");
  return nb::cast<double>(item(astype(a, float64)));
}

using Binary = array (*)(const array&, const array&, StreamOrDevice);

/// The operators of two operands: the method, the reflected and the in-place one's names, and the function.
struct Operator {
  const char *name, *reflected, *in_place;
  Binary function;
};

constexpr Operator operators[] = {
    {"__add__", "__radd__", "__iadd__", add},
    {"__sub__", "__rsub__", "__isub__", subtract},
    {"__mul__", "__rmul__", "__imul__", multiply},
    {"__truediv__", "__rtruediv__", "__itruediv__", divide},
    {"__div__", "__rdiv__", nullptr, divide},
    {"__floordiv__", "__rfloordiv__", "__ifloordiv__", floor_divide},
    {"__mod__", "__rmod__", "__imod__", remainder},
    {"__pow__", "__rpow__", "__ipow__", power},
    {"__lshift__", "__rlshift__", "__ilshift__", left_shift},
    {"__rshift__", "__rrshift__", "__irshift__", right_shift},
    {"__lt__", nullptr, nullptr, less},
    {"__le__", nullptr, nullptr, less_equal},
    {"__gt__", nullptr, nullptr, greater},
    {"__ge__", nullptr, nullptr, greater_equal},
};
constexpr Operator bitwise[] = {
    {"__and__", "__rand__", "__iand__", bitwise_and},
    {"__or__", "__ror__", "__ior__", bitwise_or},
    {"__xor__", "__rxor__", "__ixor__", bitwise_xor},
};

/// Takes the other operand; returns false where its class may know what to do with an array. Python's own objects that
/// are no operands are refused: a list times an array would else be the list, repeated.
bool take_other(const Operator& op, nb::handle h, Operand& b) {
  if (b.take(h)) return true;
  if (h.is_none() || nb::cast<std::string>(h.type().attr("__module__")) != "builtins") return false;
  throw std::invalid_argument(std::string("[") + op.name + "] " + nb::cast<std::string>(nb::str(h.type())) +
                              " is no operand beside an array; make it an array first");
}

nb::object not_implemented() { return nb::borrow(Py_NotImplemented); }

array operated(const Operator& op, const array& a, const Operand& b) {
  const bool bits = &op >= std::begin(bitwise) && &op < std::end(bitwise);
  if (bits && !b.is_scalar() && issubdtype(promote_types(a.dtype(), b.dtype()), inexact))
    throw std::invalid_argument(std::string("[") + op.name + "] floats have no bits to combine; use integers or bools");
  return op.function(a, promote_to(a, b), {});
}
array reflected(const Operator& op, const array& a, const Operand& b) { return op.function(promote_to(a, b), a, {}); }

void define_operators(nb::class_<array>& c) {
  const auto define = [&](const Operator& op) {
    // The operator's row is static, so a pointer to it may stay in the function.
    const auto signature = [](const char* name) {
      return std::string("def ") + name + "(self, other: scalar | array) -> array";
    };
    const auto operation = [&](const char* name, array (*apply)(const Operator&, const array&, const Operand&)) {
      c.def(
          name,
          [p = &op, apply](const array& a, nb::handle other) {
            Operand b;
            return take_other(*p, other, b) ? nb::cast(apply(*p, a, b)) : not_implemented();
          },
          nb::arg("other").none(), nb::is_operator(), nb::sig(signature(name).c_str()));
    };
    operation(op.name, operated);
    if (op.reflected) operation(op.reflected, reflected);
    if (op.in_place)
      c.def(
          op.in_place,
          [p = &op](nb::handle self, nb::handle other) {
            array& a = array_of(self);
            Operand b;
            if (!take_other(*p, other, b)) return not_implemented();
            if (p->function == static_cast<Binary>(divide) && !issubdtype(a.dtype(), inexact))
              throw std::invalid_argument("[__itruediv__] an array of integers cannot hold its quotients");
            a = operated(*p, array(a), b);
            return nb::borrow(self);
          },
          nb::arg("other").none(), nb::is_operator(), nb::sig(signature(op.in_place).c_str()));
  };
  for (const Operator& op : operators) define(op);
  for (const Operator& op : bitwise) define(op);
  c.def(
      "__matmul__", [](const array& a, const array& b) { return matmul(a, b); }, nb::arg("other"), nb::is_operator());
  c.def(
      "__imatmul__",
      [](nb::handle self, const array& b) {
        array& a = array_of(self);
        a = matmul(array(a), b);
        return nb::borrow(self);
      },
      nb::arg("other"), nb::is_operator());
  c.def("__neg__", [](const array& a) { return negative(a); });
  c.def("__pos__", [](const array& a) { return a; });
  c.def("__invert__", [](const array& a) { return a.dtype() == bool_ ? logical_not(a) : bitwise_invert(a); });
  c.def("__abs__", [](const array& a) { return abs(a); });
  // Any object can be compared for equality: what is no operand differs.
  const auto compare = [&](const char* name, Binary function, bool otherwise) {
    c.def(
        name,
        [function, otherwise](const array& a, nb::handle other) -> nb::object {
          Operand b;
          if (!b.take(other)) return nb::bool_(otherwise);
          return nb::cast(function(a, promote_to(a, b), {}));
        },
        nb::arg("other").none(),
        nb::sig((std::string("def ") + name + "(self, other: object) -> array | bool").c_str()));
  };
  compare("__eq__", equal, false);
  compare("__ne__", not_equal, true);
  c.def("__hash__", [](nb::handle self) { return reinterpret_cast<uintptr_t>(self.ptr()) >> 4; });
}

void define_conversions(nb::class_<array>& c) {
  c.def("__bool__", [](const array& a) { return nb::cast<bool>(nb::bool_(item(a))); });
  c.def("__int__", [](const array& a) { return nb::int_(item(a)); });
  c.def("__float__", as_double);
  c.def("__complex__", [](const array& a) { return item(astype(a, complex128)); });
  c.def("__index__", [](const array& a) {
    if (!issubdtype(a.dtype(), integer) || a.size() != 1)
      throw nb::type_error("only arrays of one integer can be an index");
    return item(a);
  });
  c.def("__len__", [](const array& a) {
    if (a.ndim() == 0) throw nb::type_error("len() of an array without axes");
    return int64_t{a.shape(0)};
  });
  c.def(
      "__iter__",
      [](const array& a) {
        if (a.ndim() == 0) throw nb::type_error("iteration over an array without axes");
        return helpers::list(unstack(a)).attr("__iter__")();
      },
      nb::sig("def __iter__(self) -> Iterator[array]"));
  c.def("__repr__", text_of);
  c.def("__format__", [](const array& a, const nb::str& spec) -> nb::object {
    if (a.ndim() == 0) return nb::module_::import_("builtins").attr("format")(item(a), spec);
    if (nb::len(spec) > 0) throw nb::type_error("only arrays of one element take a format");
    return nb::cast(text_of(a));
  });
  c.def("item", item, "Returns the element of an array that has one, as a Python number.");
  c.def("tolist", to_list, nb::sig("def tolist(self) -> Any"),
        "Returns the elements as nested lists, or a number for an array without axes.");
  c.def(
      "__array__", [](const array& a, nb::handle dtype, nb::handle) { return to_numpy(a, dtype); },
      nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
      nb::sig("def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any"));
  c.def(
      "__array_namespace__", [](const array&, nb::handle) { return nb::module_::import_("weft.core"); },
      nb::arg("api_version") = nb::none());
  c.def("__copy__", [](const array& a) { return a; });
  c.def(
      "__deepcopy__", [](const array& a, nb::handle) { return a; }, nb::arg("memo"));
  c.def("__getstate__", [](const array& a) {
    compute(a);
    return nb::make_tuple(dtype_name(a.dtype()), a.shape(),
                          nb::bytes(static_cast<const char*>(a.raw_data()), a.nbytes()));
  });
  c.def("__setstate__", [](array& a, const std::tuple<std::string, Shape, nb::bytes>& state) {
    const auto& [dtype, shape, bytes] = state;
    if (bytes.size() != static_cast<size_t>(num_elements(shape)) * dtype_from_name(dtype).size())
      throw std::invalid_argument("[array] a pickled array has " + std::to_string(bytes.size()) +
                                  " bytes, which its shape " + to_string(shape) + " does not");
    new (&a) array(array::from_data(bytes.c_str(), shape, dtype_from_name(dtype)));
  });
}

}  // namespace

nb::class_<array> define_array(nb::module_& m) {
  nb::class_<array> c(m, "array", nb::type_slots(array_slots), nb::is_weak_referenceable(),
                      "An array of numbers of one dtype: a lazy value. Nothing is computed until `eval`, or until the "
                      "values are read. In-place operators and assignment to elements give the object another value.");
  c.def(
      "__init__",
      [](array* self, nb::handle val, std::optional<Dtype> dtype) { new (self) array(to_array(val, dtype)); },
      nb::arg("val"), nb::arg("dtype") = nb::none(),
      nb::sig("def __init__(self, val: Any, dtype: Dtype | None = None) -> None"),
      "Makes an array of a number, nested lists, a NumPy array, or an object with a buffer or __dlpack__.");
  c.def_prop_ro("dtype", &array::dtype, nb::sig("def dtype(self) -> Dtype"), "The dtype of the elements.");
  c.def_prop_ro(
      "shape", [](const array& a) { return a.shape(); }, "The lengths of the axes, a tuple.");
  c.def_prop_ro("ndim", &array::ndim, "The number of axes.");
  c.def_prop_ro("size", &array::size, "The number of elements.");
  c.def_prop_ro("itemsize", &array::itemsize, "The bytes of an element.");
  c.def_prop_ro("nbytes", &array::nbytes, "The bytes of all elements.");
  c.def_prop_ro(
      "T", [](const array& a) { return transpose(a); }, "The array with its axes in reverse order.");
  c.def_prop_ro(
      "mT",
      [](const array& a) {
        if (a.ndim() < 2)
          throw std::invalid_argument("[mT] an array of shape " + to_string(a.shape()) + " is no matrix");
        return swapaxes(a, -1, -2);
      },
      "The array with its last axes exchanged.");
  c.def_prop_ro(
      "real", [](const array& a) { return real(a); }, "The real parts.");
  c.def_prop_ro(
      "imag", [](const array& a) { return imag(a); }, "The imaginary parts.");
  c.def(
      "reshape",
      [](const array& a, const nb::args& shape, const StreamOrDevice& stream) {
        Lengths lengths;
        const nb::object given = shape.size() == 1 ? nb::object(shape[0]) : nb::borrow<nb::tuple>(shape);
        if (!nb::try_cast(given, lengths)) throw nb::type_error("[reshape] the shape must be ints");
        return reshape(a, lengths.shape, stream);
      },
      nb::arg("shape"), nb::kw_only(), nb::arg("stream") = nb::none(),
      nb::sig("def reshape(self, *shape: int | Sequence[int], "
              "stream: Stream | ThreadLocalStream | Device | DeviceType | None = None) -> array"),
      "Returns the elements in row-major order in another shape; one length may be -1.");
  c.def(
      "transpose",
      [](const array& a, const nb::args& axes, const StreamOrDevice& stream) {
        Axes found;
        const nb::object given = axes.size() == 1 ? nb::object(axes[0]) : nb::borrow<nb::tuple>(axes);
        if (!nb::try_cast(given, found)) throw nb::type_error("[transpose] the axes must be ints");
        return axes.size() == 0 || !found ? transpose(a, stream) : transpose(a, found.axes, stream);
      },
      nb::arg("axes"), nb::kw_only(), nb::arg("stream") = nb::none(),
      nb::sig("def transpose(self, *axes: int | Sequence[int] | None, "
              "stream: Stream | ThreadLocalStream | Device | DeviceType | None = None) -> array"),
      "Returns the axes in another order, reversed where none is named.");
  define_operators(c);
  define_conversions(c);
  define_dlpack(c);
  define_indexing(m, c);
  define_methods(c);
  return c;
}

}  // namespace weft::python
