#pragma once
// The type-erased layer of weft/kernel_async.h: shared memory with layouts, asynchronous copies, barriers, roles.
#include <functional>
#include <span>

#include "weft/kernel/erased.h"

namespace weft::k {

/// How a buffer in shared memory is laid out: row-major; with rows 16 bytes apart from each other; or with chunks of 16
/// bytes exchanged within lines of 32, 64 or 128 bytes, as the hardware's copies of tiles do it. Equal results; a GPU's
/// banks are hit evenly. CPUs lay out rows as they are.
enum class SharedLayout : uint8_t { row_major, padded, swizzle32, swizzle64, swizzle128 };

/// Returns a buffer in the shared memory of each program, not initialised. Barriers between what the program, or one of
/// its roles, writes and reads there are put by the compiler.
WEFT_API AnyRef shared(Dtype dtype, const std::vector<int64_t>& dims, SharedLayout layout, Line at = Line::here());

/// Barriers of a program. A phase of a barrier ends with a number of arrivals, and when the copies that report to it
/// are done; then the next one begins. Phases count from 0 on.
struct AnyBarriers {
  /// The number of the buffer of barriers.
  int32_t buffer = -1;
  /// The number of its trace.
  uint64_t trace = 0;
  /// How many there are.
  int64_t count = 1;
};
/// Returns barriers whose phases end with `arrivals` arrivals.
WEFT_API AnyBarriers barriers(int64_t count, int64_t arrivals, Line at = Line::here());
/// Counts as one arrival at a barrier, after all that this program or role did before.
WEFT_API void arrive(const AnyBarriers& barriers, const Any& index, Line at = Line::here());
/// Waits for the end of a phase: the present one, or the one before it, which at the beginning is -1.
WEFT_API void wait(const AnyBarriers& barriers, const Any& index, const Any& phase, Line at = Line::here());

/// Copies a slice of an array into a slice of shared memory of the same shape, between now and the wait for it.
/// Elements outside of the array become `other`. With a barrier its present phase does not end before; else the copy
/// belongs to the group that is committed next.
WEFT_API void copy_async(const AnyRef& to, std::span<const Span> to_slice, const AnyRef& from,
                         std::span<const Span> from_slice, Scalar other = 0, const AnyBarriers& barriers = {},
                         const Any& index = {}, Line at = Line::here());
/// Makes a group of the copies since the last one.
WEFT_API void commit_copies(Line at = Line::here());
/// Waits until all groups but the last `left` ones are done.
WEFT_API void wait_copies(int64_t left = 0, Line at = Line::here());

/// Reads an element of an array, at an int64 scalar for each axis, until `holds` of it returns a true bool scalar;
/// returns the element. The grid has an ordered axis, the elements have 32 or 64 bits, and programs change them by
/// atomics.
WEFT_API Any wait_until(const AnyRef& ref, std::span<const Any> position, const std::function<Any(Any)>& holds,
                        Ordering how = {MemoryOrder::acquire, MemoryScope::device}, Line at = Line::here());
/// Waits until all programs of the launch have come here: behind it each sees what all did before. They run at once, so
/// that there are as many at most as fit a GPU.
WEFT_API void grid_barrier(Line at = Line::here());

/// Waits until all programs of the cluster have come here. They are the ones along the last axis of the grid, which has
/// k::Order::cluster.
WEFT_API void cluster_barrier(Line at = Line::here());
/// Returns the number of programs of a cluster.
WEFT_API int64_t cluster_size(Line at = Line::here());
/// Returns the number of this program among them.
WEFT_API Any cluster_rank(Line at = Line::here());
/// Returns a slice of the shared buffer, or scratch, of program `rank` (an int64 scalar) of the cluster.
WEFT_API Any load_neighbour(const AnyRef& ref, std::span<const Span> slice, const Any& rank, Line at = Line::here());
/// Stores a tile into a slice of such a buffer.
WEFT_API void store_neighbour(const AnyRef& ref, std::span<const Span> slice, const Any& rank, const Any& value,
                              Line at = Line::here());

/// Begins a product, as `dot` makes it, and returns it under way: wait_dot alone reads it.
WEFT_API Any dot_async(const Any& a, const Any& b, const Any& c = {}, Precision precision = Precision::exact,
                       Line at = Line::here());
/// Waits for a product under way, and returns it.
WEFT_API Any wait_dot(const Any& flight, Line at = Line::here());

/// What some warps of a program do while others do something else.
struct Role {
  /// How many warps.
  int64_t warps = 4;
  /// Registers of a thread, a multiple of 8 from 24 to 256; 0: as many as each has.
  int64_t registers = 0;
  /// What they do.
  std::function<void()> body = {};
};
/// Runs roles at once. They communicate by shared memory and barriers, and end together. A role takes scalars from
/// outside, but no tiles, and assigns no variables of the outside.
WEFT_API void roles(std::span<const Role> roles, Line at = Line::here());

}  // namespace weft::k
