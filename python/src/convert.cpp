#include "convert.h"

#include <complex>
#include <cstring>
#include <limits>

#include "weft/ops.h"

namespace weft::python {

namespace {

/// What the numbers of a nested list are.
enum class Kind { boolean, integer, floating, complex };

/// The shape of nested lists, and what numbers or arrays they hold.
struct Nested {
  Shape shape;
  Kind kind = Kind::boolean;
  bool any = false;     ///< there is a number
  bool wide = false;    ///< an int needs 64 bits
  bool arrays = false;  ///< there are arrays among the elements
  size_t rank = 0;      ///< axes that the numbers lie in; 0 before the first one
};

bool is_list(nb::handle h) { return PyList_Check(h.ptr()) || PyTuple_Check(h.ptr()); }

void note_scalar(Nested& n, nb::handle h) {
  const auto raise = [&](Kind k) { n.kind = n.any ? std::max(n.kind, k) : k; };
  if (PyBool_Check(h.ptr())) raise(Kind::boolean);
  else if (PyFloat_Check(h.ptr())) raise(Kind::floating);
  else if (PyComplex_Check(h.ptr())) raise(Kind::complex);
  else if (int64_t value; read_int(h, value)) {
    n.wide |= value != static_cast<int32_t>(value);
    raise(Kind::integer);
  } else {
    n.wide = true;
    raise(Kind::integer);
  }
  n.any = true;
}

/// Finds the shape of a list, axis `depth` and further in.
void measure(Nested& n, nb::handle list, size_t depth) {
  const auto length = static_cast<int64_t>(PySequence_Fast_GET_SIZE(list.ptr()));
  if (n.shape.size() == depth) n.shape.push_back(length);
  else if (n.shape[depth] != length)
    throw std::invalid_argument("[array] lists of lengths " + std::to_string(int64_t{n.shape[depth]}) + " and " +
                                std::to_string(length) + " along axis " + std::to_string(depth) +
                                "; make them equally long");
  for (int64_t k = 0; k < length; ++k) {
    const nb::handle item = PySequence_Fast_GET_ITEM(list.ptr(), k);
    if (is_array(item)) {
      n.arrays = true;  // stack compares its shape with those of the other elements
      continue;
    }
    const bool inner = is_list(item);
    if (inner ? n.rank == depth + 1 : n.shape.size() > depth + 1)
      throw std::invalid_argument("[array] a list holds numbers beside lists; nest all or none");
    if (inner) {
      measure(n, item, depth + 1);
      continue;
    }
    if (is_scalar(item)) note_scalar(n, item);
    else n.arrays = true;  // or something else, which to_array refuses
    n.rank = depth + 1;
  }
}

template <class T>
T number(nb::handle h) {
  if constexpr (std::is_same_v<T, std::complex<double>>) {
    const Py_complex c = PyComplex_AsCComplex(h.ptr());
    if (PyErr_Occurred()) throw nb::python_error();
    return {c.real, c.imag};
  } else if constexpr (std::is_same_v<T, double>) {
    const double value = PyFloat_AsDouble(h.ptr());
    if (value == -1.0 && PyErr_Occurred()) throw nb::python_error();
    return value;
  } else if constexpr (std::is_same_v<T, bool>) {
    return h.ptr() == Py_True;
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    const uint64_t value = PyLong_AsUnsignedLongLongMask(h.ptr());
    if (PyErr_Occurred()) throw nb::python_error();
    return value;
  } else {
    int64_t value = h.ptr() == Py_True;
    if (!PyBool_Check(h.ptr()) && !read_int(h, value))
      throw std::overflow_error("[array] an int does not fit into 64 bits");
    return value;
  }
}

template <class T>
void gather_numbers(nb::handle list, size_t depth, size_t rank, T*& to) {
  const Py_ssize_t length = PySequence_Fast_GET_SIZE(list.ptr());
  for (Py_ssize_t k = 0; k < length; ++k) {
    const nb::handle item = PySequence_Fast_GET_ITEM(list.ptr(), k);
    if (depth + 1 < rank) gather_numbers(item, depth + 1, rank, to);
    else *to++ = number<T>(item);
  }
}

template <class T>
array filled(nb::handle list, const Shape& shape, Dtype dtype) {
  const auto values = std::make_unique<T[]>(static_cast<size_t>(num_elements(shape)));
  T* to = values.get();
  if (num_elements(shape) > 0) gather_numbers(list, 0, shape.size(), to);
  return array(values.get(), shape, dtype);
}

array from_list(nb::handle list, std::optional<Dtype> dtype) {
  Nested n;
  measure(n, list, 0);
  if (n.arrays) {
    std::vector<array> items;
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(list.ptr()); ++k)
      items.push_back(to_array(PySequence_Fast_GET_ITEM(list.ptr(), k)));
    const array joined = stack(items);
    return dtype ? astype(joined, *dtype) : joined;
  }
  if (!n.any) return zeros(n.shape, dtype.value_or(float32));
  switch (n.kind) {
    case Kind::boolean: return filled<bool>(list, n.shape, dtype.value_or(bool_));
    case Kind::integer:
      if (dtype == uint64) return filled<uint64_t>(list, n.shape, uint64);
      return filled<int64_t>(list, n.shape, dtype.value_or(n.wide ? int64 : int32));
    case Kind::floating: return filled<double>(list, n.shape, dtype.value_or(float32));
    default: return filled<std::complex<double>>(list, n.shape, dtype.value_or(complex64));
  }
}

array from_scalar(nb::handle h, std::optional<Dtype> dtype) {
  if (PyBool_Check(h.ptr())) return array(h.ptr() == Py_True, dtype.value_or(bool_));
  if (PyFloat_Check(h.ptr())) return array(PyFloat_AS_DOUBLE(h.ptr()), dtype.value_or(float32));
  if (PyComplex_Check(h.ptr())) return array(number<std::complex<double>>(h), dtype.value_or(complex64));
  int64_t value = 0;
  if (read_int(h, value)) return array(value, dtype.value_or(value == static_cast<int32_t>(value) ? int32 : int64));
  const uint64_t bits = PyLong_AsUnsignedLongLong(h.ptr());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    throw std::overflow_error("[array] an int does not fit into 64 bits");
  }
  return array(bits, dtype.value_or(uint64));
}

/// Copies a buffer in row-major order.
array from_buffer(nb::handle object, std::optional<Dtype> dtype) {
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_FULL_RO) != 0) throw nb::python_error();
  const std::unique_ptr<Py_buffer, void (*)(Py_buffer*)> release(&view, PyBuffer_Release);
  const auto found = dtype_of_format(view.format, static_cast<size_t>(view.itemsize));
  if (!found)
    throw std::invalid_argument(std::string("[array] a buffer of format ") + (view.format ? view.format : "none") +
                                " is no array of numbers; convert it first");
  const Shape shape(view.shape, view.shape + view.ndim);
  std::vector<char> bytes(static_cast<size_t>(view.len));
  if (view.len > 0 && PyBuffer_ToContiguous(bytes.data(), &view, view.len, 'C') != 0) throw nb::python_error();
  const array exact = array::from_data(bytes.data(), shape, *found);
  return astype(exact, dtype.value_or(usual_dtype(*found)));
}

/// Returns NumPy's view of the bits of an array of ml_dtypes.bfloat16, or nothing.
std::optional<array> from_ml_dtypes(nb::handle object, std::optional<Dtype> dtype) {
  if (!nb::hasattr(object, "dtype") || !nb::hasattr(object, "view")) return std::nullopt;
  if (nb::cast<std::string>(nb::str(nb::object(object.attr("dtype")))) != "bfloat16") return std::nullopt;
  const array bits = from_buffer(object.attr("view")("uint16"), std::nullopt);
  const array halves = bits.ndim() == 0 ? reshape(view(reshape(bits, {1}), bfloat16), {}) : view(bits, bfloat16);
  return dtype ? astype(halves, *dtype) : halves;
}

}  // namespace

bool is_scalar(nb::handle h) {
  PyObject* p = h.ptr();
  return PyBool_Check(p) || PyLong_Check(p) || PyFloat_Check(p) || PyComplex_Check(p);
}

bool read_int(nb::handle object, int64_t& value) {
  if (PyBool_Check(object.ptr()) || PyFloat_Check(object.ptr())) return false;
  int overflow = 0;
  if (PyLong_Check(object.ptr())) {
    value = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
    return overflow == 0;
  }
  if (!PyIndex_Check(object.ptr())) return false;
  const nb::object index = nb::steal(PyNumber_Index(object.ptr()));
  if (!index.is_valid()) {
    PyErr_Clear();
    return false;
  }
  value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  return overflow == 0;
}

std::optional<Dtype> dtype_of_format(const char* format, size_t itemsize) {
  if (!format) return itemsize == 1 ? std::optional(uint8) : std::nullopt;
  const char* letter = format + std::strspn(format, "@=<");
  if (letter[0] == 'Z' && letter[1] == 'f') return complex64;
  if (letter[0] == 'Z' && letter[1] == 'd') return complex128;
  if (letter[0] == 0 || letter[1] != 0) return std::nullopt;
  const auto by_size = [&](Dtype one, Dtype two, Dtype four, Dtype eight) -> std::optional<Dtype> {
    return itemsize == 1 ? one : itemsize == 2 ? two : itemsize == 4 ? four : eight;
  };
  switch (*letter) {
    case '?': return bool_;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n': return by_size(int8, int16, int32, int64);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N': return by_size(uint8, uint16, uint32, uint64);
    case 'e': return float16;
    case 'f': return float32;
    case 'd': return float64;
    default: return std::nullopt;
  }
}

array to_array(nb::handle h, std::optional<Dtype> dtype) {
  if (is_array(h)) return !dtype || *dtype == array_of(h).dtype() ? array_of(h) : astype(array_of(h), *dtype);
  if (is_scalar(h)) {
    // NumPy's float64 and complex128 scalars are Python's too; their values are the same.
    return from_scalar(h, dtype);
  }
  if (is_list(h)) return from_list(h, dtype);
  for (const char* method : {"__weft_array__", "__mlx_array__"})
    if (nb::hasattr(h, method)) return to_array(h.attr(method)(), dtype);
  try {
    if (auto halves = from_ml_dtypes(h, dtype)) return *halves;
    if (PyObject_CheckBuffer(h.ptr())) return from_buffer(h, dtype);
  } catch (nb::python_error& error) {  // JAX's arrays of a GPU have a buffer that is none
    if (!error.matches(PyExc_BufferError) || !nb::hasattr(h, "__dlpack__")) throw;
  }
  if (nb::hasattr(h, "__dlpack__")) {
    const array a = from_dlpack(h, true);
    return astype(a, dtype.value_or(usual_dtype(a.dtype())));
  }
  if (nb::hasattr(h, "__array__")) return to_array(h.attr("__array__")(), dtype);
  if (int64_t value = 0; read_int(h, value)) return from_scalar(nb::steal(PyNumber_Index(h.ptr())), dtype);
  throw std::invalid_argument("[array] cannot make an array of " + nb::cast<std::string>(nb::str(h.type())) +
                              "; give numbers, lists of them, or an object with a buffer or __dlpack__");
}

array weak_scalar(nb::handle number, Dtype beside) {
  if (PyBool_Check(number.ptr())) return array(number.ptr() == Py_True, beside);
  if (PyFloat_Check(number.ptr()))
    return array(PyFloat_AS_DOUBLE(number.ptr()), issubdtype(beside, inexact) ? beside : float32);
  if (PyComplex_Check(number.ptr()))
    return from_scalar(number, beside == float64 || beside == complex128 ? complex128 : complex64);
  if (beside == bool_) return from_scalar(number, std::nullopt);
  if (issubdtype(beside, integer)) {
    int64_t value = 0;
    const bool narrow = read_int(number, value);
    const auto bits = beside.size() * 8;
    const bool is_signed = issubdtype(beside, signedinteger);
    const bool fits = is_signed ? narrow && (bits == 64 || (value >> (bits - 1)) == (value >> 63))
                      : narrow  ? value >= 0 && (bits == 64 || (value >> bits) == 0)
                                : beside == uint64;
    if (!fits)
      throw std::invalid_argument("Converting " + nb::cast<std::string>(nb::str(number)) + " to " + dtype_name(beside) +
                                  " would result in overflow.");
  }
  return from_scalar(number, beside);
}

Kept::Kept(nb::object object)
    : object_(new nb::object(std::move(object)), [](nb::object* p) {
        if (!Py_IsInitialized()) return;  // the interpreter has ended, and its objects with it
        nb::gil_scoped_acquire held;
        delete p;
      }) {}

bool Operand::take(nb::handle object) {
  *this = {};  // one operand reads the elements of a list one after the other
  if (is_array(object)) {
    // An element that a sequence makes when it is asked for, as arrays do, ends with the list that it was read into.
    if (Py_REFCNT(object.ptr()) == 1) made_ = array_of(object);
    else array_ = &array_of(object);
    return true;
  }
  if (python::is_scalar(object)) {
    number_ = nb::borrow(object);
    return true;
  }
  if (is_list(object) || object.is_none() || PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr())) return false;
  if (!nb::hasattr(object, "__weft_array__") && !nb::hasattr(object, "__mlx_array__") &&
      !PyObject_CheckBuffer(object.ptr()) && !nb::hasattr(object, "__dlpack__"))
    return false;
  made_ = to_array(object);
  return true;
}

}  // namespace weft::python

namespace nanobind::detail {

namespace {

/// Reads a sequence of ints into `to`, which takes them one by one.
template <class Take>
bool read_ints(handle source, const Take& take) {
  PyObject* p = source.ptr();
  int64_t value = 0;
  if (PyList_Check(p) || PyTuple_Check(p)) {
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(p); ++k) {
      if (!weft::python::read_int(PySequence_Fast_GET_ITEM(p, k), value)) return false;
      take(value);
    }
    return true;
  }
  if (PyUnicode_Check(p) || !PySequence_Check(p)) return false;
  const object fast = steal(PySequence_Fast(p, ""));
  if (!fast.is_valid()) {
    PyErr_Clear();
    return false;
  }
  return read_ints(fast, take);
}

/// Reads a list or tuple of lengths, some of which are known only when a traced function is called.
bool read_lengths(handle source, weft::Shape& shape) {
  if (PyTuple_Check(source.ptr())) shape.reserve(static_cast<size_t>(PyTuple_GET_SIZE(source.ptr())));
  if (read_ints(source, [&](int64_t k) { shape.emplace_back(k); })) return true;
  shape.clear();
  PyObject* p = source.ptr();
  if (!PyList_Check(p) && !PyTuple_Check(p)) return false;
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(p); ++k) {
    const handle item = PySequence_Fast_GET_ITEM(p, k);
    int64_t length = 0;
    if (isinstance<weft::Dim>(item)) shape.push_back(*inst_ptr<weft::Dim>(item));
    else if (weft::python::read_int(item, length)) shape.emplace_back(length);
    else return false;
  }
  return true;
}

}  // namespace

bool type_caster<weft::python::Axes>::from_python(handle source, uint32_t, cleanup_list*) noexcept {
  value = {};
  if (source.is_none()) return true;
  value.given = true;
  int64_t axis = 0;
  if (weft::python::read_int(source, axis)) {
    value.single = true;
    value.axes = {static_cast<int>(axis)};
    return true;
  }
  return read_ints(source, [&](int64_t k) { value.axes.push_back(static_cast<int>(k)); });
}

bool type_caster<weft::python::Lengths>::from_python(handle source, uint32_t, cleanup_list*) noexcept {
  value = {};
  int64_t length = 0;
  if (weft::python::read_int(source, length)) {
    value.shape.emplace_back(length);
    return true;
  }
  if (isinstance<weft::Dim>(source)) {
    value.shape.push_back(*inst_ptr<weft::Dim>(source));
    return true;
  }
  return read_lengths(source, value.shape);
}

bool type_caster<weft::python::Norm>::from_python(handle source, uint32_t, cleanup_list*) {
  if (!PyUnicode_Check(source.ptr())) return false;
  const std::string name = cast<std::string>(source);
  if (name == "backward") value.norm = weft::fft::FFTNorm::Backward;
  else if (name == "ortho") value.norm = weft::fft::FFTNorm::Ortho;
  else if (name == "forward") value.norm = weft::fft::FFTNorm::Forward;
  else throw std::invalid_argument("[fft] norm is \"" + name + "\"; it must be backward, ortho or forward");
  return true;
}

bool type_caster<weft::Shape>::from_python(handle source, uint32_t, cleanup_list*) noexcept {
  value.clear();
  return read_lengths(source, value);
}

handle type_caster<weft::Shape>::from_cpp(const weft::Shape& shape, rv_policy, cleanup_list*) noexcept {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(shape.size()));
  for (size_t k = 0; k < shape.size(); ++k)
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(k),
                     shape[k].is_static() ? PyLong_FromLongLong(shape[k].bound()) : cast(shape[k]).release().ptr());
  return tuple;
}

bool type_caster<weft::StreamOrDevice>::from_python(handle source, uint32_t, cleanup_list*) noexcept {
  value = std::monostate{};
  if (source.is_none()) return true;
  if (isinstance<weft::Stream>(source)) value = *inst_ptr<weft::Stream>(source);
  else if (isinstance<weft::Device>(source)) value = *inst_ptr<weft::Device>(source);
  else if (isinstance<weft::ThreadLocalStream>(source)) value = *inst_ptr<weft::ThreadLocalStream>(source);
  else if (isinstance<weft::Device::DeviceType>(source)) value = cast<weft::Device::DeviceType>(source);
  else return false;
  return true;
}

}  // namespace nanobind::detail
