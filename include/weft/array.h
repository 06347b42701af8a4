#pragma once
#include <compare>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/api.h"
#include "weft/device.h"
#include "weft/dtype.h"
#include "weft/shape.h"

namespace weft {

namespace graph {
struct Value;
}
namespace detail {
/// A C++ type of which arrays can be made.
template <class T>
concept element = std::is_arithmetic_v<T> || is_half<T> || is_complex_number<T>;
}  // namespace detail

/// An immutable value: a handle to a node of a graph, or to data. Copies are cheap and share.
///
/// Nothing is computed until `eval`, or until the values are read (`item`, `data`, printing, saving). An array keeps
/// its dtype and shape; assignment rebinds the handle.
///
///     array x = {1.0f, 2.0f, 3.0f};
///     array y = exp(x) + 1.0f;  // builds a graph
///     std::cout << y << "\n";   // computes here
class WEFT_API array {
 public:
  /// Makes a scalar, of the dtype that holds T (float32 for double) unless `dtype` is given. Values are converted as
  /// `astype` does.
  template <detail::element T>
  array(T value) : array(number_tag{}, value, TypeToDtype<T>()) {}
  template <detail::element T>
  array(T value, Dtype dtype) : array(number_tag{}, value, dtype) {}
  /// Makes a vector of the values in a list, of any number type: `array({true, false})` is bool_. An empty list is
  /// float32.
  template <detail::element T>
  array(std::initializer_list<T> data, Dtype dtype = TypeToDtype<T>())
      : array(from_range(data.begin(), Shape{static_cast<int64_t>(data.size())}, dtype)) {}
  array(std::initializer_list<float> data)
      : array(from_range(data.begin(), Shape{static_cast<int64_t>(data.size())}, float32)) {}
  array(std::initializer_list<int> data, Dtype dtype)
      : array(from_range(data.begin(), Shape{static_cast<int64_t>(data.size())}, dtype)) {}
  /// Makes an array of the values in row-major order. Throws std::invalid_argument where their number is not that of
  /// `shape`.
  template <detail::element T>
  array(std::initializer_list<T> data, Shape shape, Dtype dtype = TypeToDtype<T>())
      : array(from_range(data.begin(), checked(std::move(shape), data.size()), dtype)) {}
  array(std::initializer_list<float> data, Shape shape, Dtype dtype = float32)
      : array(from_range(data.begin(), checked(std::move(shape), data.size()), dtype)) {}
  /// Makes an array of the num_elements(shape) values from `it` on, converted to `dtype`.
  template <std::input_iterator It>
  requires detail::element<std::iter_value_t<It>> array(It it, Shape shape,
                                                        Dtype dtype = TypeToDtype<std::iter_value_t<It>>())
      : array(from_range(std::move(it), std::move(shape), dtype)) {}
  /// Makes an array in the memory at `data`: num_elements(shape) elements of `dtype` in row-major order. Nothing is
  /// copied where `data` is aligned for the dtype; the array owns the memory from then on and calls `deleter(data)`
  /// when it is no longer used (at once where it was copied). Throws std::invalid_argument, without calling it, where
  /// `shape` is wrong.
  array(void* data, Shape shape, Dtype dtype, const std::function<void(void*)>& deleter);
  /// Returns an array of a copy of num_elements(shape) elements of `dtype`.
  static array from_data(const void* data, Shape shape, Dtype dtype);

  /// Returns the type of the elements.
  Dtype dtype() const;
  /// Returns the lengths of all axes.
  const Shape& shape() const;
  /// Returns the length of one axis; -1 is the last. Throws std::out_of_range for an axis that does not exist.
  Dim shape(int axis) const;
  /// Returns the number of axes.
  size_t ndim() const;
  /// Returns the number of elements; throws std::invalid_argument for a symbolic shape.
  size_t size() const;
  /// Returns the bytes of an element.
  size_t itemsize() const;
  /// Returns the bytes of all elements; throws std::invalid_argument for a symbolic shape.
  size_t nbytes() const;
  /// Evaluates, and returns the strides in elements. Transposes, slices, broadcasts and (where the layout allows it)
  /// reshapes of data copy nothing: the result is a view with strides of its own, which may be 0 or negative, and keeps
  /// the data alive.
  Strides strides() const;
  int64_t strides(int axis) const;
  /// The layout of the evaluated array in memory; axes of length 1 do not matter.
  struct Flags {
    bool contiguous;      ///< the elements fill the memory that they span, in some order of the axes
    bool row_contiguous;  ///< in row-major order
    bool col_contiguous;  ///< in column-major order
  };
  /// Evaluates, and returns the layout.
  Flags flags() const;
  /// Evaluates, and returns the number of elements of the memory that the array spans.
  size_t data_size() const;

  /// Computes the value now. Throws what the computation throws; the array then stays pending.
  void eval() const;
  /// Returns whether the array has data already.
  bool is_available() const;
  /// Evaluates, and returns the value of an array with one element, converted to T. Throws std::invalid_argument for
  /// any other size.
  template <class T>
  T item() const;
  /// Evaluates, and returns the first element; the others follow in row-major order. T must be the host type of
  /// dtype(). Valid while the array lives.
  template <class T>
  const T* data() const;
  /// Evaluates, and returns the first element as raw bytes, row-major.
  const void* raw_data() const;
  /// Evaluates, and returns all elements converted to T, row-major.
  template <class T>
  std::vector<T> to_vector() const;

  class ArrayIterator;
  /// Returns an iterator over the first axis: `for (const array& row : a)`. It computes nothing. Throws
  /// std::invalid_argument for a scalar, and for a symbolic first axis.
  ArrayIterator begin() const;
  /// Returns the end of the iteration over the first axis.
  ArrayIterator end() const;

  explicit array(graph::Value value);
  /// Returns the node of the graph behind the handle, for Weft's own layers.
  const graph::Value& value() const;
  friend class arrays;

 private:
  struct number_tag {};
  array(number_tag, bool value, Dtype dtype);
  array(number_tag, int64_t value, Dtype dtype);
  array(number_tag, uint64_t value, Dtype dtype);
  array(number_tag, double value, Dtype dtype);
  array(number_tag, std::complex<double> value, Dtype dtype);
  template <class T>
  array(number_tag, T value, Dtype dtype) : array(number_tag{}, widen(value), dtype) {}
  template <class T>
  static auto widen(T v) {
    if constexpr (detail::is_half<T>) return static_cast<double>(static_cast<float>(v));
    else if constexpr (std::is_floating_point_v<T>) return static_cast<double>(v);
    else if constexpr (detail::is_complex_number<T>) return std::complex<double>(v.real(), v.imag());
    else if constexpr (std::is_unsigned_v<T>) return static_cast<uint64_t>(v);
    else return static_cast<int64_t>(v);
  }
  /// The elements of a list are as many as `shape` has.
  static Shape checked(Shape shape, size_t count);
  /// Copies num_elements(shape) elements of dtype `from` in memory, converted to `dtype`.
  static array converted(const void* data, Dtype from, Shape shape, Dtype dtype);
  template <class It>
  static array from_range(It it, Shape shape, Dtype dtype);

  std::shared_ptr<graph::Value> value_;
};

/// Iterates over elements a[0], a[1], … of an array, which it keeps alive. A random access iterator whose elements are
/// made when they are asked for.
class WEFT_API array::ArrayIterator {
 public:
  /// The traits of an iterator. The category is input_iterator_tag because elements are values.
  using iterator_category = std::input_iterator_tag;  // elements are made when they are asked for
  using iterator_concept = std::random_access_iterator_tag;
  using difference_type = std::ptrdiff_t;
  using value_type = array;
  using reference = array;
  using pointer = void;

  explicit ArrayIterator(const array& a, int64_t at = 0);
  ArrayIterator() : ArrayIterator(array({0.0f})) {}
  /// Returns the element, moves the position, and compares positions in one array, as random access iterators do.
  array operator*() const;
  array operator[](difference_type n) const { return *(*this + n); }
  ArrayIterator& operator++() { return *this += 1; }
  ArrayIterator& operator--() { return *this -= 1; }
  ArrayIterator operator++(int) { return std::exchange(*this, *this + 1); }
  ArrayIterator operator--(int) { return std::exchange(*this, *this - 1); }
  ArrayIterator& operator+=(difference_type n) {
    at_ += n;
    return *this;
  }
  ArrayIterator& operator-=(difference_type n) { return *this += -n; }
  friend ArrayIterator operator+(ArrayIterator i, difference_type n) { return i += n; }
  friend ArrayIterator operator+(difference_type n, ArrayIterator i) { return i += n; }
  friend ArrayIterator operator-(ArrayIterator i, difference_type n) { return i -= n; }
  friend difference_type operator-(const ArrayIterator& a, const ArrayIterator& b) { return a.at_ - b.at_; }
  friend bool operator==(const ArrayIterator& a, const ArrayIterator& b) { return a.at_ == b.at_; }
  friend auto operator<=>(const ArrayIterator& a, const ArrayIterator& b) { return a.at_ <=> b.at_; }

 private:
  array array_;
  int64_t at_;
};
inline array::ArrayIterator array::begin() const { return ArrayIterator(*this); }
inline array::ArrayIterator array::end() const { return ArrayIterator(*this, shape(0)); }

template <class It>
array array::from_range(It it, Shape shape, Dtype dtype) {
  using T = std::iter_value_t<It>;
  using Exact = std::conditional_t<std::same_as<T, long double>, double, T>;
  if constexpr (std::contiguous_iterator<It> && std::same_as<T, Exact>) {
    return converted(std::to_address(it), detail::exact_dtype<T>(), std::move(shape), dtype);
  } else {
    const auto n = static_cast<size_t>(num_elements(shape));
    const auto values = std::make_unique<Exact[]>(n);
    for (size_t i = 0; i < n; ++i, ++it) values[i] = static_cast<Exact>(*it);
    return converted(values.get(), detail::exact_dtype<Exact>(), std::move(shape), dtype);
  }
}

extern template WEFT_API bool array::item<bool>() const;
extern template WEFT_API int8_t array::item<int8_t>() const;
extern template WEFT_API int16_t array::item<int16_t>() const;
extern template WEFT_API int32_t array::item<int32_t>() const;
extern template WEFT_API int64_t array::item<int64_t>() const;
extern template WEFT_API uint8_t array::item<uint8_t>() const;
extern template WEFT_API uint16_t array::item<uint16_t>() const;
extern template WEFT_API uint32_t array::item<uint32_t>() const;
extern template WEFT_API uint64_t array::item<uint64_t>() const;
extern template WEFT_API float array::item<float>() const;
extern template WEFT_API double array::item<double>() const;

/// Computes several values in one program. Throws what the computation throws.
WEFT_API void eval(const std::vector<array>& arrays);
/// Starts computing and returns at once. Reading one of the arrays waits for it; errors surface at the next wait
/// (weft/stream.h). Throws std::invalid_argument for what depends on an argument of a function that is being
/// differentiated, batched or compiled.
WEFT_API void async_eval(const std::vector<array>& arrays);
template <class... A>
requires(sizeof...(A) > 0 && (std::is_same_v<std::decay_t<A>, array> && ...)) void async_eval(const A&... arrays) {
  async_eval(std::vector<array>{arrays...});
}
/// Computes the arrays in one program, as eval({a, b}).
template <class... A>
requires(sizeof...(A) > 0 && (std::is_same_v<std::decay_t<A>, array> && ...)) void eval(const A&... arrays) {
  eval(std::vector<array>{arrays...});
}

/// Prints as NumPy's repr: nested brackets, long axes shortened (weft/utils.h). Evaluates.
WEFT_API std::ostream& operator<<(std::ostream& os, const array& a);

}  // namespace weft
