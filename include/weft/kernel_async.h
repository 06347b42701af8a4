#pragma once
// The explicit level of the kernel language: shared memory, asynchronous copies, barriers, pipelines, roles, programs
// that wait for each other. It mixes freely with weft/kernel.h. docs/kernels.md is the reference.
//
//   auto tile = k::shared<float>({2, 64});
//   k::copy_async(tile(0, k::all), x(k::ds(0, 64)));
//   k::commit_copies();
//   k::wait_copies();
//   y(k::ds(0, 64)) = tile(0, k::all) * 2;
#include <initializer_list>
#include <utility>
#include <vector>

#include "weft/kernel.h"
#include "weft/kernel/erased_async.h"
#include "weft/kernel/programs.h"

namespace weft::k {

/// Returns a buffer in the shared memory of each program, not initialised.
template <class T, size_t N>
Ref<T, static_cast<int>(N)> shared(const int64_t (&dims)[N], SharedLayout layout = SharedLayout::row_major,
                                   Line at = Line::here()) {
  return Ref<T, static_cast<int>(N)>(shared(detail::dtype_of<T>(), {dims, dims + N}, layout, at));
}

namespace detail {
template <class V>
inline constexpr bool is_slice = false;
template <class T, int R>
inline constexpr bool is_slice<Part<T, R>> = true;
template <class T, int R>
inline constexpr bool is_slice<WritablePart<T, R>> = true;

template <class To, class From>
constexpr void check_copy() {
  static_assert(is_slice<To> && is_slice<From>, "a copy goes from a slice of an array to a slice of shared memory");
  static_assert(std::same_as<ElementOf<To>, ElementOf<From>>,
                "a copy converts nothing: both slices have one element type");
  static_assert(rank_of<To> == rank_of<From>, "a copy keeps the shape: both slices have one rank");
}
}  // namespace detail

/// Copies a slice of an array into one of shared memory between now and the wait for it; `other` outside of the array.
template <TileLike To, TileLike From>
void copy_async(const To& to, const From& from, Scalar other = 0, Line at = Line::here()) {
  detail::check_copy<To, From>();
  copy_async(to.ref(), to.spans(), from.ref(), from.spans(), other, {}, {}, at);
}

/// A product under way. Other work may stand between its beginning and the wait for it.
template <class T, int R>
class DotAsync {
 public:
  explicit DotAsync(Any flight) : flight_(std::move(flight)) {}
  /// Waits for the product, and returns it.
  Tile<T, R> wait(Line at = Line::here()) const { return Tile<T, R>(wait_dot(flight_, at)); }

 private:
  Any flight_;
};
/// Begins a·b, of the operands that dot takes; `wait` of what it returns gives the product. On GPUs warpgroups multiply
/// meanwhile; CPUs multiply at once.
template <TileLike A, TileLike B>
DotAsync<detail::Sum<ElementOf<A>>, rank_of<A>> dot_async(const A& a, const B& b,
                                                          Precision precision = Precision::exact,
                                                          Line at = Line::here()) {
  detail::check_dot<A, B>();
  return DotAsync<detail::Sum<ElementOf<A>>, rank_of<A>>(
      dot_async(detail::as_tile(a, at).any(), detail::as_tile(b, at).any(), {}, precision, at));
}
/// Begins c + a·b.
template <TileLike A, TileLike B, TileLike C>
DotAsync<ElementOf<C>, rank_of<C>> dot_async(const A& a, const B& b, const C& c, Precision precision = Precision::exact,
                                             Line at = Line::here()) {
  detail::check_dot<A, B>();
  static_assert(rank_of<C> == rank_of<A>, "dot_async adds to a tile of the rank of its operands");
  return DotAsync<ElementOf<C>, rank_of<C>>(dot_async(detail::as_tile(a, at).any(), detail::as_tile(b, at).any(),
                                                      detail::as_tile(c, at).any(), precision, at));
}

/// One of several barriers: its phases end with a number of arrivals, and when the copies that report to it are done.
class Barrier {
 public:
  explicit Barrier(int64_t arrivals = 1, Line at = Line::here()) : all_(barriers(1, arrivals, at)), index_(0, at) {}
  Barrier(AnyBarriers among, Index index) : all_(among), index_(std::move(index)) {}
  /// Counts as one arrival, after all that this program or role did before.
  void arrive(Line at = Line::here()) const { k::arrive(all_, index_.any(), at); }
  /// Waits for the end of a phase: the present one, or the one before it, which at the beginning is -1.
  void wait(const Index& phase, Line at = Line::here()) const { k::wait(all_, index_.any(), phase.any(), at); }
  /// Copies a slice of an array into one of shared memory; the present phase does not end before that is done.
  template <TileLike To, TileLike From>
  void copy(const To& to, const From& from, Scalar other = 0, Line at = Line::here()) const {
    detail::check_copy<To, From>();
    copy_async(to.ref(), to.spans(), from.ref(), from.spans(), other, all_, index_.any(), at);
  }

 private:
  AnyBarriers all_;
  Index index_;
};
/// Several barriers.
class Barriers {
 public:
  explicit Barriers(int64_t count, int64_t arrivals = 1, Line at = Line::here())
      : all_(barriers(count, arrivals, at)) {}
  /// Returns one of them.
  Barrier operator[](const Index& index) const { return {all_, index}; }

 private:
  AnyBarriers all_;
};

/// A ring of slots that producers fill and consumers empty, step by step: step i takes slot i % stages. A producer does
/// acquire(i), copies or stores, commit(i); a consumer wait(i), loads, release(i).
class Pipeline {
 public:
  /// `producers` and `consumers`: how many roles of each kind there are.
  explicit Pipeline(int64_t stages, int64_t producers = 1, int64_t consumers = 1, Line at = Line::here())
      : stages_(stages), full_(stages, producers, at), empty_(stages, consumers, at) {}
  /// Returns the slot of a step.
  Index slot(const Index& step, Line at = Line::here()) const { return whole("mod", step, at); }
  /// Waits until the slot of a step may be filled.
  void acquire(const Index& step, Line at = Line::here()) const {
    empty_[slot(step, at)].wait(Index(apply("sub", std::array{round(step, at), Index(1, at).any()}, at)), at);
  }
  /// Copies a slice of an array into the slot of a step, which is not full before.
  template <TileLike To, TileLike From>
  void copy(const Index& step, const To& to, const From& from, Scalar other = 0, Line at = Line::here()) const {
    full_[slot(step, at)].copy(to, from, other, at);
  }
  /// Says that a step's slot is filled, but for copies under way.
  void commit(const Index& step, Line at = Line::here()) const { full_[slot(step, at)].arrive(at); }
  /// Waits until a step's slot is full.
  void wait(const Index& step, Line at = Line::here()) const { full_[slot(step, at)].wait(Index(round(step, at)), at); }
  /// Says that a step's slot is empty.
  void release(const Index& step, Line at = Line::here()) const { empty_[slot(step, at)].arrive(at); }

 private:
  Index whole(std::string_view op, const Index& step, Line at) const {
    return Index(apply(op, std::array{step.any(), Index(stages_, at).any()}, at));
  }
  Any round(const Index& step, Line at) const { return whole("floordiv", step, at).any(); }
  int64_t stages_;
  Barriers full_, empty_;
};

/// Runs roles at once: `k::roles({{.warps = 1, .body = copies}, {.warps = 4, .body = computes}})`.
inline void roles(std::initializer_list<Role> list, Line at = Line::here()) {
  roles(std::span<const Role>(list.begin(), list.size()), at);
}

}  // namespace weft::k
