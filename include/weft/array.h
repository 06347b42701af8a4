#pragma once
#include <compare>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <iosfwd>
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

namespace graph { struct Value; }

/// An immutable value: a handle to a node of a graph, or to data. Copies are cheap and share.
///
/// Nothing is computed until `eval`, or until somebody looks (`item`, `data`, printing, saving). An array of one dtype and shape for life;
/// assignment rebinds the handle.
///
///     array x = {1.0f, 2.0f, 3.0f};
///     array y = exp(x) + 1.0f;      // a graph
///     std::cout << y << "\n";       // computed here
class WEFT_API array {
 public:
  /// A scalar: bool → bool_, integers → int32 (int64 for 64-bit types), floating → float32, unless `dtype` is given.
  template <class T> requires(std::is_arithmetic_v<T>) array(T value) : array(number_tag{}, value, TypeToDtype<T>()) {}
  template <class T> requires(std::is_arithmetic_v<T>) array(T value, Dtype dtype) : array(number_tag{}, value, dtype) {}
  array(bfloat16_t value);
  array(float16_t value);
  array(complex64_t value);
  /// A vector, or with `shape` any array in row-major order.
  array(std::initializer_list<float> data, Dtype dtype = float32);
  array(std::initializer_list<int> data, Dtype dtype = int32);
  array(std::initializer_list<float> data, Shape shape, Dtype dtype = float32);
  array(std::initializer_list<int> data, Shape shape, Dtype dtype = int32);
  /// `it` yields num_elements(shape) values, converted to `dtype`.
  template <class It> array(It it, Shape shape, Dtype dtype = TypeToDtype<typename std::iterator_traits<It>::value_type>());
  /// Copies num_elements(shape) elements of `dtype` from memory.
  static array from_data(const void* data, Shape shape, Dtype dtype);

  Dtype dtype() const;
  const Shape& shape() const;
  Dim shape(int axis) const;  ///< -1 is the last
  size_t ndim() const;
  size_t size() const;        ///< elements; throws std::invalid_argument for a symbolic shape
  size_t itemsize() const;
  size_t nbytes() const;
  /// Of the evaluated array, in elements. Transposing, slicing, broadcasting and (where the layout allows it) reshaping of data copies nothing: the result is
  /// a view with strides of its own, which may be 0 or negative, and keeps the data alive.
  Strides strides() const;
  int64_t strides(int axis) const;
  /// How the evaluated array lies in memory; axes of length 1 do not matter.
  struct Flags {
    bool contiguous;      ///< the elements fill the memory that they span, in some order of the axes
    bool row_contiguous;  ///< in row-major order
    bool col_contiguous;  ///< in column-major order
  };
  Flags flags() const;
  size_t data_size() const;  ///< elements of the memory that the evaluated array spans

  /// Computes the value now. Throws what the computation throws; the array then stays pending.
  void eval() const;
  bool is_available() const;  ///< has data already
  /// The value of an array with one element, converted to T; throws std::invalid_argument on any other size.
  template <class T> T item() const;
  /// First element, row-major and contiguous after this call; T must be the host type of dtype(). Evaluates. Valid while the array lives.
  template <class T> const T* data() const;
  const void* raw_data() const;
  /// All elements converted to T, row-major.
  template <class T> std::vector<T> to_vector() const;

  /// Along the first axis: `for (const array& row : a)`. Nothing is computed by it. Throws std::invalid_argument for a scalar, and for a first axis without a number.
  class ArrayIterator;
  ArrayIterator begin() const;
  ArrayIterator end() const;

  // Not for everyday use: the graph behind the handle.
  explicit array(graph::Value value);
  const graph::Value& value() const;
  friend class arrays;

 private:
  struct number_tag {};
  array(number_tag, bool value, Dtype dtype);
  array(number_tag, int64_t value, Dtype dtype);
  array(number_tag, uint64_t value, Dtype dtype);
  array(number_tag, double value, Dtype dtype);
  template <class T> array(number_tag, T value, Dtype dtype) : array(number_tag{}, widen(value), dtype) {}
  template <class T> static auto widen(T v) {
    if constexpr (std::is_floating_point_v<T>) return static_cast<double>(v);
    else if constexpr (std::is_unsigned_v<T>) return static_cast<uint64_t>(v);
    else return static_cast<int64_t>(v);
  }
  static array from_doubles(const std::vector<double>& values, Shape shape, Dtype dtype);
  static array from_integers(const std::vector<int64_t>& values, Shape shape, Dtype dtype);

  std::shared_ptr<graph::Value> value_;
};

/// Elements a[0], a[1], … of an array, which it keeps alive.
class WEFT_API array::ArrayIterator {
 public:
  using iterator_category = std::input_iterator_tag;  // elements are made when they are asked for
  using iterator_concept = std::random_access_iterator_tag;
  using difference_type = std::ptrdiff_t;
  using value_type = array;
  using reference = array;
  using pointer = void;

  explicit ArrayIterator(const array& a, int64_t at = 0);
  ArrayIterator() : ArrayIterator(array({0.0f})) {}
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
  /// Of one array.
  friend bool operator==(const ArrayIterator& a, const ArrayIterator& b) { return a.at_ == b.at_; }
  friend auto operator<=>(const ArrayIterator& a, const ArrayIterator& b) { return a.at_ <=> b.at_; }

 private:
  array array_;
  int64_t at_;
};
inline array::ArrayIterator array::begin() const { return ArrayIterator(*this); }
inline array::ArrayIterator array::end() const { return ArrayIterator(*this, shape(0)); }

template <class It> array::array(It it, Shape shape, Dtype dtype) : array(0.0f) {
  using T = typename std::iterator_traits<It>::value_type;
  auto n = static_cast<size_t>(num_elements(shape));
  if constexpr (std::is_integral_v<T>) {
    std::vector<int64_t> values;
    values.reserve(n);
    for (size_t i = 0; i < n; ++i, ++it) values.push_back(static_cast<int64_t>(*it));
    *this = from_integers(values, std::move(shape), dtype);
  } else {
    std::vector<double> values;
    values.reserve(n);
    for (size_t i = 0; i < n; ++i, ++it) {
      if constexpr (std::is_floating_point_v<T>) values.push_back(static_cast<double>(*it));
      else values.push_back(static_cast<double>(static_cast<float>(*it)));
    }
    *this = from_doubles(values, std::move(shape), dtype);
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

/// Computes several values in one program.
WEFT_API void eval(const std::vector<array>& arrays);
/// Starts computing and returns at once. Looking at one of the arrays waits for it; errors surface at the next wait (weft/stream.h).
WEFT_API void async_eval(const std::vector<array>& arrays);
template <class... A> requires(sizeof...(A) > 0 && (std::is_same_v<std::decay_t<A>, array> && ...)) void async_eval(const A&... arrays) {
  async_eval(std::vector<array>{arrays...});
}
template <class... A> requires(sizeof...(A) > 0 && (std::is_same_v<std::decay_t<A>, array> && ...)) void eval(const A&... arrays) {
  eval(std::vector<array>{arrays...});
}

/// As NumPy prints: nested brackets, long axes shortened. Evaluates.
WEFT_API std::ostream& operator<<(std::ostream& os, const array& a);

}  // namespace weft
