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

/// A length that is known only when a compiled program is called: 1 ≤ n ≤ bound. `symbol` makes one. Symbols are
/// compared by address: one name with one bound is one symbol for the life of the process.
struct Symbol {
  std::string name;  ///< in messages: "n<=64"
  int64_t bound;     ///< the largest value; buffers are laid out for it
};
/// Returns the symbol of this name and bound. Throws std::invalid_argument for an empty name or a bound below 1.
WEFT_API const Symbol* symbol(const std::string& name, int64_t bound);

/// One length of a shape: a number, or a bounded symbol. A symbolic length is laid out in memory at its bound, so
/// strides are always numbers; only the ends of loops depend on the symbol's value.
///
/// A Dim converts to int64_t where it is a number, and throws std::invalid_argument where it is a symbol: code that
/// would silently freeze a symbolic length at its bound gets an error instead.
///
/// Most programs name dynamic axes for `compile` (weft/compile.h) and never see a symbol: arrays have symbolic axes
/// while the function is traced, and numbers outside.
///
///     auto total = compile([](const std::vector<array>& in) { return std::vector{sum(in[0] * in[0])}; },
///                          {.dynamic = {{.argument = 0, .axis = 0, .name = "n", .bound = 4096}}});
///     array few = total({ones({3})})[0], many = total({ones({1000})})[0];  // one program for both lengths
///
///     const Dim n = symbol("n", 4096);
///     const Shape shape{n, 8};         // "(n<=4096,8)"
///     const int64_t columns = shape[1], rows = n.bound();  // int64_t{n} would throw
class WEFT_API Dim {
 public:
  constexpr Dim() = default;
  template <std::integral T>
  constexpr Dim(T n) : bound_(static_cast<int64_t>(n)) {}
  Dim(const Symbol* s) : bound_(s->bound), symbol_(s) {}

  /// Returns whether the length is a number.
  constexpr bool is_static() const { return symbol_ == nullptr; }
  /// Returns the number, or the symbol's largest value.
  constexpr int64_t bound() const { return bound_; }
  /// Returns the symbol, or null for a number.
  constexpr const Symbol* symbol() const { return symbol_; }
  /// Returns the number; throws std::invalid_argument for a symbol.
  constexpr operator int64_t() const {
    if (symbol_) throw_symbolic();
    return bound_;
  }
  /// Compares: equal numbers, or the same symbol. A symbol equals no number.
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

/// The lengths of an array's axes: `Shape{2, 3}`. Sizes have 64 bits. MLX's Shape is a vector of int32: code that reads
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
/// Distances in memory between neighbouring elements along each axis, in elements; may be negative or zero.
using Strides = std::vector<int64_t>;

/// Returns the product of the lengths, symbols at their bounds. Throws std::overflow_error past 2^63,
/// std::invalid_argument for a negative length.
WEFT_API int64_t num_elements(const Shape& shape);
/// Returns whether no length is symbolic.
WEFT_API bool is_static(const Shape& shape);
/// Returns the strides of a row-major array, symbols at their bounds.
WEFT_API Strides row_major_strides(const Shape& shape);
/// Returns the shape that both broadcast to by NumPy's rule: counted from the last axis, lengths are equal, or 1 or
/// missing in one. Throws std::invalid_argument naming both shapes.
WEFT_API Shape broadcast_shapes(const Shape& a, const Shape& b);
/// Returns the axis counted from the front: -1 is the last. Throws std::out_of_range as "[op] axis 3 is out of range
/// for an array with 2 dimensions".
WEFT_API int normalize_axis(const char* op, int axis, int ndim);

/// Returns "(2,3)", with symbols as "n<=64".
WEFT_API std::string to_string(const Shape& shape);
/// Prints to_string(shape).
WEFT_API std::ostream& operator<<(std::ostream& os, const Shape& shape);

}  // namespace weft
