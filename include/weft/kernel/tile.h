#pragma once
// Typed values of the kernel language: tiles and variables, with their operators. dtype and rank are in the type,
// extents are known when the kernel is traced. weft/kernel/slice.h has arrays and slices of them.
#include <array>
#include <concepts>
#include <type_traits>
#include <utility>

#include "weft/kernel/erased.h"

namespace weft::k {

/// The element types of tiles, by short names.
using f16 = float16_t;
using bf16 = bfloat16_t;
using f32 = float;
using f64 = double;
using i8 = int8_t;
using i16 = int16_t;
using i32 = int32_t;
using i64 = int64_t;
using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
struct e4m3 {};  ///< the 8-bit floats, of storage alone
/// An 8-bit float, of storage alone.
struct e5m2 {};

namespace detail {

template <class T>
concept element = std::is_arithmetic_v<T> || std::same_as<T, f16> || std::same_as<T, bf16> || std::same_as<T, e4m3> ||
    std::same_as<T, e5m2>;

template <class T>
constexpr Dtype dtype_of() {
  if constexpr (std::same_as<T, e4m3>) return float8_e4m3;
  else if constexpr (std::same_as<T, e5m2>) return float8_e5m2;
  else return weft::detail::exact_dtype<T>();
}

template <class T>
inline constexpr bool is_floating = std::is_floating_point_v<T> || std::same_as<T, f16> || std::same_as<T, bf16> ||
                                    std::same_as<T, e4m3> || std::same_as<T, e5m2>;

template <class>
inline constexpr bool never = false;

}  // namespace detail

template <class T, int R>
class Tile;
template <class T, int R>
class Mut;
template <class T, int R>
class Part;
template <class T, int R>
class WritablePart;

namespace detail {

template <class T, int R>
Tile<T, R> as_tile(const Tile<T, R>& v, Line) {
  return v;
}
template <class T, int R>
Tile<T, R> as_tile(const Mut<T, R>& v, Line at) {
  return v.get(at);
}
template <class T, int R>
Tile<T, R> as_tile(const Part<T, R>& v, Line at) {
  return v.load(at);
}

}  // namespace detail

/// A tile, a slice or a variable.
template <class V>
concept TileLike = requires(const V& v) {
  detail::as_tile(v, Line{});
};
/// The tile that a value gives, its element and its rank.
template <TileLike V>
using TileOf = decltype(detail::as_tile(std::declval<const V&>(), Line{}));
template <TileLike V>
using ElementOf = typename TileOf<V>::Element;
/// The number of axes of a value.
template <TileLike V>
inline constexpr int rank_of = TileOf<V>::rank;

namespace detail {

/// Values that do not go together in an operator; a scalar goes with any rank.
template <class A, class B>
concept mismatched = TileLike<A> && TileLike<B> &&
    (!std::same_as<ElementOf<A>, ElementOf<B>> || (rank_of<A> != rank_of<B> && rank_of<A> != 0 && rank_of<B> != 0));
/// A value that does not go into a variable or a slice of elements T and R axes; a scalar fills them.
template <class V, class T, int R>
concept unfit = TileLike<V> &&(!std::same_as<ElementOf<V>, T> || (rank_of<V> != R && rank_of<V> != 0));

template <class A, class B>
constexpr void check_operands() {
  static_assert(std::same_as<ElementOf<A>, ElementOf<B>>, "the operands have one element type: cast one of them");
  static_assert(
      !std::same_as<ElementOf<A>, ElementOf<B>> || rank_of<A> == rank_of<B> || rank_of<A> == 0 || rank_of<B> == 0,
      "the operands have one rank: use row, col or expand_dims");
}
template <class V, class T, int R>
constexpr void check_assigned() {
  static_assert(std::same_as<ElementOf<V>, T>,
                "the value has another element type than what it is assigned to: cast it");
  static_assert(!std::same_as<ElementOf<V>, T> || rank_of<V> == R || rank_of<V> == 0,
                "the value has another rank than what it is assigned to: use reshape, expand_dims or a reduction");
}
/// Returns an axis, counted from the back where it is negative. Throws std::invalid_argument where there is none.
WEFT_API size_t axis_of(std::string_view what, const std::vector<int64_t>& dims, int axis, Line at);

}  // namespace detail

/// An operand of an operator, with the line where it stands. Made from tiles, slices (which it loads), variables,
/// numbers and scalars of T; scalars repeat.
template <class T, int R>
struct At {
  /// The operand without types.
  Any any;
  /// The line where it stands.
  Line line;
  At(const Tile<T, R>& v, Line at = Line::here()) : any(v.any()), line(at) {}
  At(const Mut<T, R>& v, Line at = Line::here()) : any(v.get(at).any()), line(at) {}
  At(const Part<T, R>& v, Line at = Line::here()) : any(v.load(at).any()), line(at) {}
  template <int S>
  requires(S == 0 && R > 0) At(const Tile<T, S>& v, Line at = Line::here()) : any(v.any()), line(at) {}
  template <int S>
  requires(S == 0 && R > 0) At(const Mut<T, S>& v, Line at = Line::here()) : any(v.get(at).any()), line(at) {}
  template <int S>
  requires(S == 0 && R > 0) At(const Part<T, S>& v, Line at = Line::here()) : any(v.load(at).any()), line(at) {}
  template <class N>
  requires std::is_arithmetic_v<N> At(N number, Line at = Line::here())
      : any(constant(detail::dtype_of<T>(), number, {}, at)), line(at) {}
};

namespace detail {

template <class T, int R>
Tile<T, R> binary(std::string_view op, const At<T, R>& a, const At<T, R>& b) {
  return Tile<T, R>(apply(op, std::array{a.any, b.any}, a.line));
}
template <class T, int R>
Tile<bool, R> compared(std::string_view op, const At<T, R>& a, const At<T, R>& b) {
  return Tile<bool, R>(apply(op, std::array{a.any, b.any}, a.line));
}
/// Returns the quotient as C++ rounds it: of integers toward zero.
WEFT_API Any quotient(const Any& a, const Any& b, Line at);
WEFT_API Any remainder(const Any& a, const Any& b, Line at);

/// The operators of tiles, slices and variables of one dtype and rank, found through any of these operands.
template <class T, int R>
struct Operators {
  using Operand = At<T, R>;
  /// A traced value is neither true nor false while the kernel is traced.
  template <class D = void>
  explicit operator bool() const {
    static_assert(never<D>, "a traced value has no bool: use weft::k::when, if_else or where in place of C++'s if");
    return false;
  }
  friend Tile<T, R> operator+(const Operand& a, const Operand& b) { return binary<T, R>("add", a, b); }
  friend Tile<T, R> operator-(const Operand& a, const Operand& b) { return binary<T, R>("sub", a, b); }
  friend Tile<T, R> operator*(const Operand& a, const Operand& b) { return binary<T, R>("mul", a, b); }
  friend Tile<T, R> operator/(const Operand& a, const Operand& b) { return Tile<T, R>(quotient(a.any, b.any, a.line)); }
  friend Tile<T, R> operator%(const Operand& a, const Operand& b) {
    return Tile<T, R>(remainder(a.any, b.any, a.line));
  }
  friend Tile<T, R> operator&(const Operand& a, const Operand& b) { return binary<T, R>("bit_and", a, b); }
  friend Tile<T, R> operator|(const Operand& a, const Operand& b) { return binary<T, R>("bit_or", a, b); }
  friend Tile<T, R> operator^(const Operand& a, const Operand& b) { return binary<T, R>("bit_xor", a, b); }
  friend Tile<T, R> operator<<(const Operand& a, const Operand& b) { return binary<T, R>("shl", a, b); }
  friend Tile<T, R> operator>>(const Operand& a, const Operand& b) { return binary<T, R>("shr", a, b); }
  friend Tile<bool, R> operator==(const Operand& a, const Operand& b) { return compared<T, R>("eq", a, b); }
  friend Tile<bool, R> operator!=(const Operand& a, const Operand& b) { return compared<T, R>("ne", a, b); }
  friend Tile<bool, R> operator<(const Operand& a, const Operand& b) { return compared<T, R>("lt", a, b); }
  friend Tile<bool, R> operator<=(const Operand& a, const Operand& b) { return compared<T, R>("le", a, b); }
  friend Tile<bool, R> operator>(const Operand& a, const Operand& b) { return compared<T, R>("lt", b, a); }
  friend Tile<bool, R> operator>=(const Operand& a, const Operand& b) { return compared<T, R>("le", b, a); }
  friend Tile<T, R> operator-(const Operand& a) { return Tile<T, R>(apply("neg", std::array{a.any}, a.line)); }
  friend Tile<T, R> operator~(const Operand& a) { return Tile<T, R>(apply("bit_not", std::array{a.any}, a.line)); }
};

}  // namespace detail

/// A value of R axes (0: a scalar) of elements T. Immutable; see Mut.
template <class T, int R>
class Tile : public detail::Operators<T, R> {
  static_assert(detail::element<T>,
                "a tile's elements are numbers: float, double, f16, bf16, e4m3, e5m2, bool, integers");
  static_assert(R >= 0 && R <= 4, "a tile has zero to four axes");

 public:
  /// The number of axes.
  static constexpr int rank = R;
  /// The type of the elements.
  using Element = T;
  Tile() = default;
  explicit Tile(Any v) : any_(std::move(v)) {}
  /// A scalar from a number.
  template <class N>
  requires(R == 0 && std::is_arithmetic_v<N>) Tile(N number, Line at = Line::here())
      : any_(constant(detail::dtype_of<T>(), number, {}, at)) {}
  /// Loads a slice; reads a variable.
  Tile(const Part<T, R>& v, Line at = Line::here()) : any_(v.load(at).any()) {}
  Tile(const Mut<T, R>& v, Line at = Line::here()) : any_(v.get(at).any()) {}
  /// Returns the handle without types.
  const Any& any() const { return any_; }
  /// Returns the extent of an axis; -1 is the last one.
  int64_t dim(int axis, Line at = Line::here()) const {
    const std::vector<int64_t>& dims = any_.dims(at);
    return dims[detail::axis_of("dim", dims, axis, at)];
  }

 private:
  Any any_;
};

/// An index: an int64 scalar.
using Index = Tile<i64, 0>;

/// A variable: a tile that assignments replace. Loops and conditions carry it. Its shape does not change.
template <class T, int R>
class Mut : public detail::Operators<T, R> {
 public:
  Mut(const Tile<T, R>& initial, Line at = Line::here()) : cell_(initial.any(), at) {}
  Mut(const Part<T, R>& initial, Line at = Line::here()) : cell_(initial.load(at).any(), at) {}
  template <detail::unfit<T, R> V>
  Mut(const V& initial, Line at = Line::here()) : cell_(detail::as_tile(initial, at).any(), at) {
    detail::check_assigned<V, T, R>();
  }
  Mut(const Mut& initial, Line at = Line::here()) : cell_(initial.get(at).any(), at) {}
  /// Returns the value that the variable has now.
  Tile<T, R> get(Line at = Line::here()) const { return Tile<T, R>(cell_.get(at)); }
  // Assignments take At, which knows the line; that of another variable too.
  /// Assigns a value; a number or a scalar fills the variable.
  Mut& operator=(const Mut& v) requires(detail::never<T>);
  /// Assigns a value; a number or a scalar fills the variable.
  Mut& operator=(const At<T, R>& v) {
    cell_.set(repeated(v), v.line);
    return *this;
  }
  /// Adds to the variable.
  Mut& operator+=(const At<T, R>& v) { return *this = At<T, R>(changed("add", v), v.line); }
  /// Subtracts from the variable.
  Mut& operator-=(const At<T, R>& v) { return *this = At<T, R>(changed("sub", v), v.line); }
  /// Multiplies the variable.
  Mut& operator*=(const At<T, R>& v) { return *this = At<T, R>(changed("mul", v), v.line); }
  /// Divides the variable.
  Mut& operator/=(const At<T, R>& v) {
    return *this = At<T, R>(Tile<T, R>(detail::quotient(cell_.get(v.line), v.any, v.line)), v.line);
  }
  /// Assigns a value; a number or a scalar fills the variable.
  template <detail::unfit<T, R> V>
  Mut& operator=(const V&) {
    return unfit<V>();
  }
  /// Adds to the variable.
  template <detail::unfit<T, R> V>
  Mut& operator+=(const V&) {
    return unfit<V>();
  }
  /// Subtracts from the variable.
  template <detail::unfit<T, R> V>
  Mut& operator-=(const V&) {
    return unfit<V>();
  }
  /// Multiplies the variable.
  template <detail::unfit<T, R> V>
  Mut& operator*=(const V&) {
    return unfit<V>();
  }
  /// Divides the variable.
  template <detail::unfit<T, R> V>
  Mut& operator/=(const V&) {
    return unfit<V>();
  }

 private:
  template <class V>
  Mut& unfit() {
    detail::check_assigned<V, T, R>();
    return *this;
  }
  Tile<T, R> changed(std::string_view op, const At<T, R>& v) const {
    return Tile<T, R>(apply(op, std::array{cell_.get(v.line), v.any}, v.line));
  }
  /// A scalar fills the variable.
  Any repeated(const At<T, R>& v) const {
    return R > 0 && v.any.rank(v.line) == 0 ? broadcast_to(v.any, cell_.get(v.line).dims(v.line), v.line) : v.any;
  }
  Cell cell_;
};
/// Deduces the type of a variable from its initial value.
template <class T, int R>
Mut(Tile<T, R>) -> Mut<T, R>;
/// Deduces the type of a variable from its initial value.
template <class T, int R>
Mut(Part<T, R>) -> Mut<T, R>;
/// Deduces the type of a variable from its initial value.
template <class T, int R>
Mut(WritablePart<T, R>) -> Mut<T, R>;

namespace detail {
template <class A, class B>
TileOf<A> mismatch() {
  check_operands<A, B>();
  return TileOf<A>();
}
}  // namespace detail

/// Returns whether elements are false. A template, since by conversion it would be as good as that of bool; its line is
/// that of the instruction before.
template <TileLike V>
TileOf<V> operator!(const V& v) {
  static_assert(std::same_as<ElementOf<V>, bool>, "! is for tiles of bool");
  return TileOf<V>(apply("bit_not", std::array{detail::as_tile(v, Line{}).any()}, Line{}));
}

// Operators of values that do not go together: they say why.
/// Computes the operator element by element.
template <class A, detail::mismatched<A> B>
TileOf<A> operator+(const A&, const B&) {
  return detail::mismatch<A, B>();
}
/// Computes the operator element by element.
template <class A, detail::mismatched<A> B>
TileOf<A> operator-(const A&, const B&) {
  return detail::mismatch<A, B>();
}
/// Computes the operator element by element.
template <class A, detail::mismatched<A> B>
TileOf<A> operator*(const A&, const B&) {
  return detail::mismatch<A, B>();
}
/// Computes the operator element by element.
template <class A, detail::mismatched<A> B>
TileOf<A> operator/(const A&, const B&) {
  return detail::mismatch<A, B>();
}
/// Computes the operator element by element.
template <class A, detail::mismatched<A> B>
TileOf<A> operator%(const A&, const B&) {
  return detail::mismatch<A, B>();
}
/// Computes the operator element by element.
template <class A, detail::mismatched<A> B>
TileOf<A> operator&(const A&, const B&) {
  return detail::mismatch<A, B>();
}
/// Computes the operator element by element.
template <class A, detail::mismatched<A> B>
TileOf<A> operator|(const A&, const B&) {
  return detail::mismatch<A, B>();
}
/// Computes the operator element by element.
template <class A, detail::mismatched<A> B>
TileOf<A> operator^(const A&, const B&) {
  return detail::mismatch<A, B>();
}
/// Computes the operator element by element.
template <class A, detail::mismatched<A> B>
TileOf<A> operator<<(const A&, const B&) {
  return detail::mismatch<A, B>();
}
/// Computes the operator element by element.
template <class A, detail::mismatched<A> B>
TileOf<A> operator>>(const A&, const B&) {
  return detail::mismatch<A, B>();
}
/// Compares element by element.
template <class A, detail::mismatched<A> B>
TileOf<A> operator==(const A&, const B&) {
  return detail::mismatch<A, B>();
}
/// Compares element by element.
template <class A, detail::mismatched<A> B>
TileOf<A> operator!=(const A&, const B&) {
  return detail::mismatch<A, B>();
}
/// Compares element by element.
template <class A, detail::mismatched<A> B>
TileOf<A> operator<(const A&, const B&) {
  return detail::mismatch<A, B>();
}
/// Compares element by element.
template <class A, detail::mismatched<A> B>
TileOf<A> operator<=(const A&, const B&) {
  return detail::mismatch<A, B>();
}
/// Compares element by element.
template <class A, detail::mismatched<A> B>
TileOf<A> operator>(const A&, const B&) {
  return detail::mismatch<A, B>();
}
/// Compares element by element.
template <class A, detail::mismatched<A> B>
TileOf<A> operator>=(const A&, const B&) {
  return detail::mismatch<A, B>();
}

}  // namespace weft::k
