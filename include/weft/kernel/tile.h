#pragma once
// Typed handles of the kernel language: tiles, mutable tiles, references to arrays and slices of them. dtype and rank
// are in the type, extents are known when the kernel is traced.
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

/// An operand of an operator, with the line where it stands. Made from tiles, slices (which it loads), variables,
/// numbers and scalars of T; scalars repeat.
template <class T, int R>
struct At {
  Any any;
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
  friend Tile<T, R> operator!(const Operand& a) {
    static_assert(std::same_as<T, bool>, "! is for tiles of bool");
    return Tile<T, R>(apply("bit_not", std::array{a.any}, a.line));
  }
};

}  // namespace detail

/// A value of R axes (0: a scalar) of elements T. Immutable; see Mut.
template <class T, int R>
class Tile : public detail::Operators<T, R> {
  static_assert(detail::element<T>,
                "a tile's elements are numbers: float, double, f16, bf16, e4m3, e5m2, bool, integers");
  static_assert(R >= 0 && R <= 4, "a tile has zero to four axes");

 public:
  static constexpr int rank = R;
  using Element = T;
  Tile() = default;
  explicit Tile(Any v) : any_(std::move(v)) {}
  /// A scalar from a number.
  template <class N>
  requires(R == 0 && std::is_arithmetic_v<N>) Tile(N number, Line at = Line::here())
      : any_(constant(detail::dtype_of<T>(), number, {}, at)) {}
  const Any& any() const { return any_; }
  /// Returns the extent of an axis.
  int64_t dim(int axis, Line at = Line::here()) const { return any_.dims(at).at(static_cast<size_t>(axis)); }

  /// A traced value has no truth when the kernel is traced.
  template <class D = void>
  explicit operator bool() const {
    static_assert(detail::never<D>,
                  "a traced value has no bool: use weft::k::when, if_else or where in place of C++'s if");
    return false;
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
  Tile<T, R> get(Line at = Line::here()) const { return Tile<T, R>(cell_.get(at)); }
  operator Tile<T, R>() const { return get(); }
  Mut& operator=(const At<T, R>& v) {
    cell_.set(repeated(v), v.line);
    return *this;
  }
  Mut& operator=(const Tile<T, R>& v) { return *this = At<T, R>(v, Line{}); }
  Mut& operator=(const Mut& v) { return *this = At<T, R>(v, Line{}); }
  Mut& operator+=(const At<T, R>& v) { return *this = At<T, R>(changed("add", v), v.line); }
  Mut& operator-=(const At<T, R>& v) { return *this = At<T, R>(changed("sub", v), v.line); }
  Mut& operator*=(const At<T, R>& v) { return *this = At<T, R>(changed("mul", v), v.line); }
  Mut& operator/=(const At<T, R>& v) {
    return *this = At<T, R>(Tile<T, R>(detail::quotient(cell_.get(v.line), v.any, v.line)), v.line);
  }

 private:
  Tile<T, R> changed(std::string_view op, const At<T, R>& v) const {
    return Tile<T, R>(apply(op, std::array{cell_.get(v.line), v.any}, v.line));
  }
  /// A scalar fills the variable.
  Any repeated(const At<T, R>& v) const {
    return R > 0 && v.any.rank(v.line) == 0 ? broadcast_to(v.any, cell_.get(v.line).dims(v.line), v.line) : v.any;
  }
  Cell cell_;
};
template <class T, int R>
Mut(Tile<T, R>) -> Mut<T, R>;
template <class T, int R>
Mut(Part<T, R>) -> Mut<T, R>;

/// `size` elements of an axis from `start` on, `step` apart.
struct Ds {
  Span span;
};
inline Ds ds(int64_t start, int64_t size, int64_t step = 1) { return {{.first = start, .size = size, .step = step}}; }
inline Ds ds(const Index& start, int64_t size, int64_t step = 1) {
  return {{.start = start.any(), .size = size, .step = step}};
}
template <class T>
requires std::same_as<T, Mut<i64, 0>> Ds ds(const T& start, int64_t size, int64_t step = 1, Line at = Line::here()) {
  return ds(start.get(at), size, step);
}
/// All elements of an axis, `x(all, i)`; and the reduction of a tile of bool, `all(tile, axis)`.
struct All {
  template <int R>
  Tile<bool, R - 1> operator()(const Tile<bool, R>& v, int axis, Line at = Line::here()) const {
    return Tile<bool, R - 1>(reduce("all", v.any(), axis, at));
  }
  template <int R>
  Tile<bool, 0> operator()(const Tile<bool, R>& v, Line at = Line::here()) const {
    Any left = v.any();
    for (int axis = R; axis-- > 0;) left = reduce("all", left, axis, at);
    return Tile<bool, 0>(left);
  }
};
inline constexpr All all{};

namespace detail {

template <class S>
inline constexpr bool keeps_axis = std::same_as<S, Ds> || std::same_as<S, All>;
template <class S>
concept subscript = keeps_axis<S> || std::same_as<S, Index> || std::same_as<S, Mut<i64, 0>> || std::integral<S>;

inline Span span_of(const Ds& s, Line) { return s.span; }
inline Span span_of(All, Line) { return {.whole = true}; }
inline Span span_of(const Index& i, Line) { return {.start = i.any(), .squeezed = true}; }
inline Span span_of(const Mut<i64, 0>& i, Line at) { return {.start = i.get(at).any(), .squeezed = true}; }
template <std::integral N>
Span span_of(N i, Line) {
  return {.first = static_cast<int64_t>(i), .squeezed = true};
}

}  // namespace detail

/// A slice of an array: as an operand it is loaded; assigned to, it is stored. Elements outside of the array load as 0
/// and are not stored.
template <class T, int R>
class Part : public detail::Operators<T, R> {
 public:
  Part(AnyRef ref, std::vector<Span> spans) : ref_(std::move(ref)), spans_(std::move(spans)) {}
  Tile<T, R> load(Line at = Line::here()) const { return Tile<T, R>(k::load(ref_, spans_, {}, at)); }
  /// Loads with `other` outside of the array.
  template <class N>
  requires std::is_arithmetic_v<N> Tile<T, R> load(N other, Line at = Line::here())
  const { return Tile<T, R>(k::load(ref_, spans_, {.other = other}, at)); }
  /// Loads where the mask is true; `other` elsewhere.
  Tile<T, R> load(const Tile<bool, R>& mask, Scalar other = 0, Cache cache = Cache::usual,
                  Line at = Line::here()) const {
    return Tile<T, R>(k::load(ref_, spans_, {.mask = mask.any(), .other = other, .cache = cache}, at));
  }
  Tile<T, R> load(Cache cache, Line at = Line::here()) const {
    return Tile<T, R>(k::load(ref_, spans_, {.cache = cache}, at));
  }
  /// Stores where the mask is true.
  void store(const At<T, R>& v, const Tile<bool, R>& mask, Cache cache = Cache::usual) const {
    k::store(ref_, spans_, v.any, {.mask = mask.any(), .cache = cache}, v.line);
  }
  void store(const At<T, R>& v, Cache cache = Cache::usual) const {
    k::store(ref_, spans_, v.any, {.cache = cache}, v.line);
  }
  const Part& operator=(const At<T, R>& v) const {
    store(v);
    return *this;
  }
  const Part& operator=(const Part& v) const { return *this = At<T, R>(v); }
  const Part& operator+=(const At<T, R>& v) const { return update("add", v); }
  const Part& operator-=(const At<T, R>& v) const { return update("sub", v); }
  const Part& operator*=(const At<T, R>& v) const { return update("mul", v); }
  operator Tile<T, R>() const { return load(); }

 private:
  const Part& update(std::string_view op, const At<T, R>& v) const {
    k::store(ref_, spans_, apply(op, std::array{k::load(ref_, spans_, {}, v.line), v.any}, v.line), {}, v.line);
    return *this;
  }
  AnyRef ref_;
  std::vector<Span> spans_;
};

/// A reference to an array of R axes of elements T, or to a view of one.
template <class T, int R>
class Ref {
 public:
  static constexpr int rank = R;
  using Element = T;
  explicit Ref(AnyRef ref) : ref_(std::move(ref)) {}
  const AnyRef& any() const { return ref_; }
  int64_t dim(int axis) const { return ref_.dims.at(static_cast<size_t>(axis)); }

  /// Returns a slice: for each axis ds(start, size), all, or one index, which drops the axis.
  template <detail::subscript... S>
  auto operator()(const S&... subscripts) const {
    static_assert(sizeof...(S) == R, "a slice has one subscript for each axis of the array");
    constexpr int left = (0 + ... + static_cast<int>(detail::keeps_axis<S>));
    return Part<T, left>(ref_, {detail::span_of(subscripts, Line{})...});
  }

  /// Returns the view with its axes in another order, or repeated to another shape.
  Ref permute(const std::array<int, static_cast<size_t>(R)>& axes, Line at = Line::here()) const {
    return Ref(ref_.permute({axes.begin(), axes.end()}, at));
  }
  template <size_t N>
  Ref<T, static_cast<int>(N)> broadcast(const int64_t (&shape)[N], Line at = Line::here()) const {
    return Ref<T, static_cast<int>(N)>(ref_.broadcast({shape, shape + N}, at));
  }

 protected:
  AnyRef ref_;
};

/// Arrays of a kernel: read; written; both.
template <class T, int R>
struct In : Ref<T, R> {
  static constexpr Use use = Use::in;
  using Ref<T, R>::Ref;
};
template <class T, int R>
struct Out : Ref<T, R> {
  static constexpr Use use = Use::out;
  using Ref<T, R>::Ref;
};
template <class T, int R>
struct InOut : Ref<T, R> {
  static constexpr Use use = Use::in_out;
  using Ref<T, R>::Ref;
};

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
concept Value = requires(const V& v) {
  detail::as_tile(v, Line{});
};
/// The tile that a value gives, its element and its rank.
template <Value V>
using TileOf = decltype(detail::as_tile(std::declval<const V&>(), Line{}));
template <Value V>
using ElementOf = typename TileOf<V>::Element;
template <Value V>
inline constexpr int rank_of = TileOf<V>::rank;

}  // namespace weft::k
