#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/array.h"
#include "weft/device.h"
#include "weft/fft.h"

/// Python objects as the arguments of C++ functions, and back.
namespace weft::python {

namespace nb = nanobind;

/// Returns the array that a Python object stands for: an array itself, a number, nested lists of numbers and arrays, an
/// object with a buffer (NumPy), with __dlpack__ (PyTorch, JAX), or with __weft_array__ or __mlx_array__. NumPy's
/// float64 and complex128 become float32 and complex64 unless `dtype` is given. Throws std::invalid_argument for lists
/// of different lengths and for objects that are no numbers.
array to_array(nb::handle object, std::optional<Dtype> dtype = std::nullopt);
/// Returns the dtype of an array that is made of another library's: float32 for float64, which is what NumPy has for
/// want of another.
inline Dtype usual_dtype(Dtype dtype) { return dtype == float64 ? float32 : dtype == complex128 ? complex64 : dtype; }
/// Returns a Python number as an array of the weak dtype `beside`: an int beside float16 is float16, a float beside
/// int8 is float32. Throws std::overflow_error where an int does not fit.
array weak_scalar(nb::handle number, Dtype beside);
/// Returns whether the object is a bool, int, float or complex.
bool is_scalar(nb::handle object);
/// Returns whether the object is of the Python class of T, or of one derived from it. nb::isinstance looks the class up
/// each time.
template <class T>
bool is_a(nb::handle object) {
  static PyTypeObject* const type = reinterpret_cast<PyTypeObject*>(nb::type<T>().ptr());
  return PyObject_TypeCheck(object.ptr(), type) != 0;
}
/// Returns whether the object is an array.
inline bool is_array(nb::handle object) { return is_a<array>(object); }
/// Returns the array in a Python object that is one.
inline array& array_of(nb::handle object) { return *nb::inst_ptr<array>(object); }
/// Returns a dtype for the letters of a buffer's format ("<f", "?", "Zd"), or nothing.
std::optional<Dtype> dtype_of_format(const char* format, size_t itemsize);

/// Returns the array of the tensor of an object with `__dlpack__`, which it keeps alive: no copy unless `copy` says so.
array from_dlpack(nb::handle object, std::optional<bool> copy);
/// Defines `__dlpack__` and `__dlpack_device__`.
void define_dlpack(nb::class_<array>& c);

/// An argument that is an array or a number. Lists are refused, as by MLX.
class Operand {
 public:
  Operand() = default;
  /// Takes the object; returns false where it is neither.
  bool take(nb::handle object);
  bool is_scalar() const { return number_.is_valid(); }
  /// Returns the array, a number in its own dtype.
  const array& get() const {
    if (array_) return *array_;
    if (!made_) made_ = to_array(number_);
    return *made_;
  }
  operator const array&() const { return get(); }
  /// Returns the array, a number in the weak dtype beside `dtype`.
  array beside(Dtype dtype) const { return is_scalar() ? weak_scalar(number_, dtype) : get(); }
  /// Returns the array's dtype; throws for a number.
  Dtype dtype() const { return made_ ? made_->dtype() : array_->dtype(); }

 private:
  const array* array_ = nullptr;       ///< of an object that outlives the call
  mutable std::optional<array> made_;  ///< of another object, or of the number
  nb::object number_;
};
/// Returns both operands, a number beside an array in the array's weak dtype.
inline std::pair<array, array> promote(const Operand& a, const Operand& b) {
  if (a.is_scalar() == b.is_scalar()) return {a.get(), b.get()};
  return a.is_scalar() ? std::pair{a.beside(b.dtype()), b.get()} : std::pair{a.get(), b.beside(a.dtype())};
}
/// Returns an operand beside an array.
inline array promote_to(const array& a, const Operand& b) { return b.beside(a.dtype()); }

/// An argument that names axes: None, an int, or several ints.
struct Axes {
  bool given = false;
  bool single = false;  ///< as an int
  std::vector<int> axes;
  explicit operator bool() const { return given; }
  const std::vector<int>& operator*() const { return axes; }
  /// Returns the axes, or axes 0 … count - 1 of equal numbers where an int stands for all.
  std::vector<int> repeated(size_t count) const { return single ? std::vector<int>(count, axes.at(0)) : axes; }
};

/// An argument that is a shape: an int or several. Other numbers raise TypeError.
struct Lengths {
  Shape shape;
  operator const Shape&() const { return shape; }
};

/// An argument `norm` of a transform: "backward", "ortho" or "forward".
struct Norm {
  fft::FFTNorm norm = fft::FFTNorm::Backward;
  operator fft::FFTNorm() const { return norm; }
};

/// A Python object that graphs and other threads may hold: it is let go of with the interpreter's lock. Copies share
/// it.
class Kept {
 public:
  explicit Kept(nb::object object = nb::object());
  nb::object& operator*() const { return *object_; }
  nb::object* operator->() const { return object_.get(); }

 private:
  std::shared_ptr<nb::object> object_;
};

/// Reads an int; false for other objects. Bools and floats are no ints.
bool read_int(nb::handle object, int64_t& value);

}  // namespace weft::python

namespace nanobind::detail {

template <>
struct type_caster<weft::python::Operand> {
  NB_TYPE_CASTER(weft::python::Operand, const_name("scalar | array"))
  bool from_python(handle source, uint32_t, cleanup_list*) {
    try {
      return value.take(source);
    } catch (python_error& error) {
      error.restore();
      PyErr_Clear();
      return false;
    }
  }
  static handle from_cpp(const weft::python::Operand&, rv_policy, cleanup_list*) = delete;
};

template <>
struct type_caster<weft::python::Axes> {
  NB_TYPE_CASTER(weft::python::Axes, const_name("int | Sequence[int] | None"))
  bool from_python(handle source, uint32_t, cleanup_list*) noexcept;
  static handle from_cpp(const weft::python::Axes&, rv_policy, cleanup_list*) = delete;
};

template <>
struct type_caster<weft::python::Lengths> {
  NB_TYPE_CASTER(weft::python::Lengths, const_name("int | Sequence[int]"))
  bool from_python(handle source, uint32_t, cleanup_list*) noexcept;
  static handle from_cpp(const weft::python::Lengths&, rv_policy, cleanup_list*) = delete;
};

template <>
struct type_caster<weft::python::Norm> {
  NB_TYPE_CASTER(weft::python::Norm, const_name("str"))
  bool from_python(handle source, uint32_t, cleanup_list*);
  static handle from_cpp(const weft::python::Norm&, rv_policy, cleanup_list*) = delete;
};

template <>
struct type_caster<weft::Shape> {
  NB_TYPE_CASTER(weft::Shape, const_name("tuple[int, ...]"))
  bool from_python(handle source, uint32_t, cleanup_list*) noexcept;
  static handle from_cpp(const weft::Shape& shape, rv_policy, cleanup_list*) noexcept;
};

/// None, a stream, a thread's stream, a device or a kind of device.
template <>
struct type_caster<weft::StreamOrDevice> {
  NB_TYPE_CASTER(weft::StreamOrDevice, const_name("Stream | ThreadLocalStream | Device | DeviceType | None"))
  bool from_python(handle source, uint32_t, cleanup_list*) noexcept;
  static handle from_cpp(const weft::StreamOrDevice&, rv_policy, cleanup_list*) = delete;
};

}  // namespace nanobind::detail
