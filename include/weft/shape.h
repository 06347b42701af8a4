#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "weft/api.h"

namespace weft {

/// A length that is known only when a compiled program is called: 1 ≤ n ≤ bound. Symbols are interned for the life of
/// the process and compared by address; `symbol("n", 64)` makes one.
struct Symbol {
  std::string name;
  int64_t bound;
};
WEFT_API const Symbol* symbol(const std::string& name, int64_t bound);

/// One length of a shape: a number, or a bounded symbol. A symbolic length is stored in memory at its bound, so strides
/// are always numbers; only loop ends depend on the symbol's value.
///
/// A Dim converts to int64_t where it is a number, and throws std::invalid_argument where it is a symbol: code that
/// would silently freeze a symbolic length at its bound gets an error instead.
class WEFT_API Dim {
 public:
  constexpr Dim() = default;
  template <std::integral T>
  constexpr Dim(T n) : bound_(static_cast<int64_t>(n)) {}
  Dim(const Symbol* s) : bound_(s->bound), symbol_(s) {}

  constexpr bool is_static() const { return symbol_ == nullptr; }
  constexpr int64_t bound() const { return bound_; }  ///< the number, or the symbol's largest value
  constexpr const Symbol* symbol() const { return symbol_; }
  constexpr operator int64_t() const {
    if (symbol_) throw_symbolic();
    return bound_;
  }
  friend constexpr bool operator==(const Dim& a, const Dim& b) {
    return a.bound_ == b.bound_ && a.symbol_ == b.symbol_;
  }
  template <std::integral T>
  friend constexpr bool operator==(const Dim& a, T b) {
    return !a.symbol_ && a.bound_ == static_cast<int64_t>(b);
  }

 private:
  [[noreturn]] void throw_symbolic() const;
  int64_t bound_ = 0;
  const Symbol* symbol_ = nullptr;
};

/// The lengths of an array's axes: `Shape{2, 3}`. Sizes are 64-bit. MLX's Shape is a vector of int32: code that reads
/// sizes as numbers moves over unchanged.
class Shape : public std::vector<Dim> {
 public:
  using std::vector<Dim>::vector;
  Shape() = default;
  Shape(std::vector<Dim> lengths) : std::vector<Dim>(std::move(lengths)) {}
  /// Also from a list that has a name: `auto list = {2, 3}; Shape(list)`.
  template <std::integral T>
  Shape(std::initializer_list<T> lengths) : std::vector<Dim>(lengths.begin(), lengths.end()) {}
};
/// Distances between neighbours along each axis, in elements; may be negative or zero.
using Strides = std::vector<int64_t>;

/// Number of elements, symbols at their bounds; throws std::overflow_error past 2^63.
WEFT_API int64_t num_elements(const Shape& shape);
WEFT_API bool is_static(const Shape& shape);
WEFT_API Strides row_major_strides(const Shape& shape);
/// NumPy's rule, right-aligned; throws std::invalid_argument naming both shapes.
WEFT_API Shape broadcast_shapes(const Shape& a, const Shape& b);
/// -1 counts from the end; throws std::out_of_range as "[op] axis 3 is out of range for an array with 2 dimensions".
WEFT_API int normalize_axis(const char* op, int axis, int ndim);

/// "(2,3)", with symbols as "n<=64".
WEFT_API std::string to_string(const Shape& shape);
WEFT_API std::ostream& operator<<(std::ostream& os, const Shape& shape);

}  // namespace weft
