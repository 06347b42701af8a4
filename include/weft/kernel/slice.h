#pragma once
// Arrays of a kernel, views and slices of them. As an operand a slice is loaded; assigned to, it is stored.
#include <array>
#include <concepts>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/kernel/tile.h"

namespace weft::k {

/// `size` elements of an axis from `start` on, `step` apart.
struct Ds {
  /// What is taken of the axis.
  Span span;
};
/// Returns `size` elements of an axis from `start` on, `step` apart.
inline Ds ds(int64_t start, int64_t size, int64_t step = 1) { return {{.first = start, .size = size, .step = step}}; }
/// Returns `size` elements of an axis from `start` on, `step` apart.
inline Ds ds(const Index& start, int64_t size, int64_t step = 1) {
  return {{.start = start.any(), .size = size, .step = step}};
}
/// Returns `size` elements of an axis from `start` on, `step` apart.
template <class T>
requires std::same_as<T, Mut<i64, 0>> Ds ds(const T& start, int64_t size, int64_t step = 1, Line at = Line::here()) {
  return ds(start.get(at), size, step);
}
/// All elements of an axis, `x(all, i)`; and the reduction of a tile of bool, `all(tile, axis)`.
struct All {
  /// Returns whether all elements are true.
  template <TileLike V>
  Tile<bool, rank_of<V> - 1> operator()(const V& v, int axis, Line at = Line::here()) const {
    static_assert(std::same_as<ElementOf<V>, bool>, "all takes a tile of bool");
    return Tile<bool, rank_of<V> - 1>(reduce("all", detail::as_tile(v, at).any(), axis, at));
  }
  /// Returns whether all elements are true.
  template <TileLike V>
  Tile<bool, 0> operator()(const V& v, Line at = Line::here()) const {
    static_assert(std::same_as<ElementOf<V>, bool>, "all takes a tile of bool");
    Any left = detail::as_tile(v, at).any();
    for (int axis = rank_of<V>; axis-- > 0;) left = reduce("all", left, axis, at);
    return Tile<bool, 0>(left);
  }
};
/// The object `all`.
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

/// A slice of an array. As an operand it is loaded; elements outside of the array load as 0.
template <class T, int R>
class Part : public detail::Operators<T, R> {
 public:
  Part(AnyRef ref, std::vector<Span> spans) : ref_(std::move(ref)), spans_(std::move(spans)) {}
  Part(const Part&) = default;
  /// Returns the array or buffer.
  const AnyRef& ref() const { return ref_; }
  /// Returns what is taken of each of its axes.
  const std::vector<Span>& spans() const { return spans_; }
  /// Returns the tile; 0 outside of the array.
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

  // An array that is an input is not written.
  /// Stores a tile.
  const Part& operator=(const Part& v) const requires(detail::never<T>);
  /// Stores a tile.
  template <class V>
  const Part& operator=(const V&) const {
    return read_only<V>();
  }
  /// Loads, adds and stores.
  template <class V>
  const Part& operator+=(const V&) const {
    return read_only<V>();
  }
  /// Loads, subtracts and stores.
  template <class V>
  const Part& operator-=(const V&) const {
    return read_only<V>();
  }
  /// Loads, multiplies and stores.
  template <class V>
  const Part& operator*=(const V&) const {
    return read_only<V>();
  }
  /// Stores a tile.
  template <class V, class... More>
  void store(const V&, const More&...) const {
    read_only<V>();
  }

 protected:
  template <class V>
  const Part& read_only() const {
    static_assert(detail::never<V>, "an In array is only read: declare it as Out or InOut to write it");
    return *this;
  }
  AnyRef ref_;
  std::vector<Span> spans_;
};

/// A slice of an array that may be written: assigned to, it is stored, but for elements outside of the array.
template <class T, int R>
class WritablePart : public Part<T, R> {
 public:
  using Part<T, R>::Part;
  WritablePart(const WritablePart&) = default;
  /// Stores where the mask is true.
  void store(const At<T, R>& v, const Tile<bool, R>& mask, Cache cache = Cache::usual) const {
    k::store(this->ref_, this->spans_, v.any, {.mask = mask.any(), .cache = cache}, v.line);
  }
  void store(const At<T, R>& v, Cache cache = Cache::usual) const {
    k::store(this->ref_, this->spans_, v.any, {.cache = cache}, v.line);
  }
  /// Stores a tile.
  const WritablePart& operator=(const WritablePart& v) const requires(detail::never<T>);
  /// Stores a tile.
  const WritablePart& operator=(const At<T, R>& v) const {
    store(v);
    return *this;
  }
  /// Loads, adds and stores.
  const WritablePart& operator+=(const At<T, R>& v) const { return update("add", v); }
  /// Loads, subtracts and stores.
  const WritablePart& operator-=(const At<T, R>& v) const { return update("sub", v); }
  /// Loads, multiplies and stores.
  const WritablePart& operator*=(const At<T, R>& v) const { return update("mul", v); }
  /// Stores a tile.
  template <detail::unfit<T, R> V, class... More>
  void store(const V&, const More&...) const {
    unfit<V>();
  }
  /// Stores a tile.
  template <detail::unfit<T, R> V>
  const WritablePart& operator=(const V&) const {
    return unfit<V>();
  }
  /// Loads, adds and stores.
  template <detail::unfit<T, R> V>
  const WritablePart& operator+=(const V&) const {
    return unfit<V>();
  }
  /// Loads, subtracts and stores.
  template <detail::unfit<T, R> V>
  const WritablePart& operator-=(const V&) const {
    return unfit<V>();
  }
  /// Loads, multiplies and stores.
  template <detail::unfit<T, R> V>
  const WritablePart& operator*=(const V&) const {
    return unfit<V>();
  }

 private:
  template <class V>
  const WritablePart& unfit() const {
    detail::check_assigned<V, T, R>();
    return *this;
  }
  const WritablePart& update(std::string_view op, const At<T, R>& v) const {
    const Any before = k::load(this->ref_, this->spans_, {}, v.line);
    k::store(this->ref_, this->spans_, apply(op, std::array{before, v.any}, v.line), {}, v.line);
    return *this;
  }
};

/// A reference to an array of R axes of elements T, or to a view of one.
template <class T, int R>
class Ref {
 public:
  /// The number of axes.
  static constexpr int rank = R;
  /// The type of the elements.
  using Element = T;
  explicit Ref(AnyRef ref) : ref_(std::move(ref)) {}
  /// Returns the reference without types.
  const AnyRef& any() const { return ref_; }
  /// Returns the extent of an axis, a number while the kernel is traced; -1 is the last one. Throws where it is a
  /// run-time scalar.
  int64_t dim(int axis, Line at = Line::here()) const { return ref_.dim(axis, at); }
  /// Returns the extent of an axis as a value: of a number a constant, of a symbolic length the run-time scalar.
  Index extent(int axis, Line at = Line::here()) const { return Index(ref_.extent(axis, at)); }
  /// Returns the largest extent that an axis may have, for which its memory is laid out: of a number the number.
  int64_t bound(int axis, Line at = Line::here()) const { return ref_.bound(axis, at); }

  /// Returns a slice: for each axis ds(start, size), all, or one index, which drops the axis.
  template <detail::subscript... S>
  auto operator()(const S&... subscripts) const {
    return sliced<WritablePart>(subscripts...);
  }

  /// Returns the view with its axes in another order, or repeated to another shape.
  template <size_t N>
  Ref permute(const int (&axes)[N], Line at = Line::here()) const {
    static_assert(static_cast<int>(N) == R, "permute names each axis of the array once");
    return Ref(ref_.permute({axes, axes + N}, at));
  }
  /// Returns the view whose axis ends at `extent`, from 0 to its bound: what lies behind loads as what lies outside,
  /// and is not stored.
  Ref limit(int axis, const Index& extent, Line at = Line::here()) const {
    return Ref(ref_.limit(axis, extent.any(), at));
  }
  /// Returns the view of one element along each of the first axes, which go. Of an index it is known that it lies
  /// within its axis.
  template <std::convertible_to<Index>... I>
  requires(sizeof...(I) <= R) Ref < T, R - static_cast<int>(sizeof...(I))
  > fixed(const I&... indices) const {
    return Ref<T, R - static_cast<int>(sizeof...(I))>(
        ref_.fixed(std::array<Any, sizeof...(I)>{Index(indices).any()...}, Line{}));
  }
  /// Returns the view repeated to a shape by NumPy's rule.
  template <size_t N>
  Ref<T, static_cast<int>(N)> broadcast(const int64_t (&shape)[N], Line at = Line::here()) const {
    return Ref<T, static_cast<int>(N)>(ref_.broadcast({shape, shape + N}, at));
  }

 protected:
  template <template <class, int> class Slice, class... S>
  auto sliced(const S&... subscripts) const {
    static_assert(sizeof...(S) == R, "a slice has one subscript for each axis of the array");
    constexpr int left = (0 + ... + static_cast<int>(detail::keeps_axis<S>));
    return Slice<T, left>(ref_, {detail::span_of(subscripts, Line{})...});
  }
  AnyRef ref_;
};

/// Arrays of a kernel: read; written; both.
template <class T, int R>
struct In : Ref<T, R> {
  /// How a kernel uses the array.
  static constexpr Use use = Use::in;
  using Ref<T, R>::Ref;
  /// Returns a slice, which is only read.
  template <detail::subscript... S>
  auto operator()(const S&... subscripts) const {
    return this->template sliced<Part>(subscripts...);
  }
  /// Returns the view with its axes in another order, which is only read.
  template <size_t N>
  In permute(const int (&axes)[N], Line at = Line::here()) const {
    return In(Ref<T, R>::permute(axes, at).any());
  }
  /// Returns the view whose axis ends at `extent`, which is only read.
  In limit(int axis, const Index& extent, Line at = Line::here()) const {
    return In(Ref<T, R>::limit(axis, extent, at).any());
  }
  /// Returns the view of one element along each of the first axes, which is only read.
  template <std::convertible_to<Index>... I>
  requires(sizeof...(I) <= R) In < T, R - static_cast<int>(sizeof...(I))
  > fixed(const I&... indices) const {
    return In<T, R - static_cast<int>(sizeof...(I))>(Ref<T, R>::fixed(indices...).any());
  }
  /// Returns the view repeated to a shape by NumPy's rule.
  template <size_t N>
  In<T, static_cast<int>(N)> broadcast(const int64_t (&shape)[N], Line at = Line::here()) const {
    return In<T, static_cast<int>(N)>(Ref<T, R>::broadcast(shape, at).any());
  }
};
/// An array that a kernel writes.
template <class T, int R>
struct Out : Ref<T, R> {
  /// How a kernel uses the array.
  static constexpr Use use = Use::out;
  using Ref<T, R>::Ref;
};
/// An array that a kernel reads and writes.
template <class T, int R>
struct InOut : Ref<T, R> {
  /// How a kernel uses the array.
  static constexpr Use use = Use::in_out;
  using Ref<T, R>::Ref;
};

}  // namespace weft::k
