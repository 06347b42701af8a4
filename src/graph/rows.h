#pragma once
// Shared by the family files of the operator table: the list of families, the check that a family's rows are complete,
// and helpers that several families' rules use.
#include <span>
#include <string>
#include <utility>

#include "graph/build.h"
#include "graph/table.h"

namespace weft::graph {

/// The operators of one family file: consecutive enumerators.
struct Family {
  Op first, last;
  std::span<const Row> (*rows)();
};

std::span<const Row> leaf_rows();
std::span<const Row> movement_rows();
std::span<const Row> window_rows();
std::span<const Row> elementwise_rows();
std::span<const Row> complex_rows();
std::span<const Row> reduce_rows();
std::span<const Row> cumulative_rows();
std::span<const Row> dot_rows();
std::span<const Row> indexed_rows();
std::span<const Row> assign_rows();
std::span<const Row> random_rows();
std::span<const Row> depends_rows();
std::span<const Row> scheduled_rows();
std::span<const Row> call_rows();
std::span<const Row> control_rows();
std::span<const Row> composite_rows();

inline constexpr Family families[] = {
    {Op::parameter, Op::iota, leaf_rows},
    {Op::reshape, Op::concat, movement_rows},
    {Op::window, Op::window, window_rows},
    {Op::neg, Op::stop_gradient, elementwise_rows},
    {Op::real, Op::complex, complex_rows},
    {Op::reduce, Op::reduce, reduce_rows},
    {Op::cumulative, Op::cumulative, cumulative_rows},
    {Op::dot, Op::dot, dot_rows},
    {Op::gather, Op::scatter, indexed_rows},
    {Op::assign, Op::assign, assign_rows},
    {Op::random_bits, Op::random_bits, random_rows},
    {Op::depends, Op::depends, depends_rows},
    {Op::scheduled, Op::scheduled, scheduled_rows},
    {Op::call, Op::call, call_rows},
    {Op::cond, Op::scan, control_rows},
    {Op::composite, Op::composite, composite_rows},
};

/// One row for each operator of the family whose first operator is `first`, in the order of Op, and every column filled
/// or with its reason.
template <class Rows>
constexpr bool complete(const Rows& rows, Op first) {
  for (const Family& family : families) {
    if (family.first != first) continue;
    int next = static_cast<int>(family.first);
    for (const Row& r : rows) {
      if (static_cast<int>(r.op) != next++) return false;
      if (r.name.empty() || r.meaning.empty() || r.min_inputs < 0 || (r.max_inputs >= 0 && r.max_inputs < r.min_inputs))
        return false;
      if (!r.shape || !r.dtype || !r.reference || r.ulp < 0) return false;
      if (!(r.interval.filled() && r.vjp.filled() && r.jvp.filled() && r.vmap.filled() && r.factors.filled()))
        return false;
    }
    return next == static_cast<int>(family.last) + 1;
  }
  return false;
}

/// Returns whether the operator only moves or repeats elements.
inline bool rearranges(Op op) { return op >= Op::reshape && op <= Op::window; }

using TypeSpan = std::span<const Type>;
using ValueSpan = std::span<const Value>;

/// Returns the result types of a composite, by building its body once on parameters.
std::vector<Type> composite_types(const Attrs& attrs, TypeSpan inputs);

std::string list(TypeSpan types);                       // "f32(2,3) and f32(3)"
std::string list(const std::vector<int64_t>& numbers);  // "(1,2)"

// ---- values ----
using kernel::fit;
using kernel::range_of;
using kernel::wide_t;
Interval hull(std::span<const Interval> intervals);
std::vector<Dtype> first_dtype(const Attrs&, TypeSpan inputs);                         // that of input 0
Interval first_interval(const Attrs&, std::span<const Interval> inputs, const Type&);  // values are those of input 0
Interval dtype_interval(const Attrs&, std::span<const Interval>, const Type& result);  // all that the dtype holds

// ---- batching ----
Dim batch_extent(ValueSpan inputs, std::span<const int> axes);
Value to_front(const Value& v, int axis);  // the axis moved to the front
/// Returns v with its batch axis in front; a v without one is repeated.
Value batched(const Value& v, int axis, Dim extent);
Values all_batched(ValueSpan inputs, std::span<const int> axes);
Shape prepend(Dim first, const Shape& rest);
std::vector<int64_t> prepend(int64_t first, const std::vector<int64_t>& rest);
std::vector<int64_t> shifted(const std::vector<int64_t>& axes);  // each one more

// ---- factors ----
std::vector<int> factors_from(int first, int count);  // first, first + 1, …

// ---- reference evaluation ----
HostTensor host(const Type& type);  // zeros
std::vector<int64_t> bounds(const Shape& shape);
/// Calls f(index, position) for every element of `shape` in row-major order.
template <class F>
void each_index(const std::vector<int64_t>& shape, F&& f) {
  std::vector<int64_t> index(shape.size(), 0);
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  for (int64_t position = 0; position < count; ++position) {
    f(std::as_const(index), position);
    for (size_t k = shape.size(); k-- > 0;) {
      if (++index[k] < shape[k]) break;
      index[k] = 0;
    }
  }
}
/// Converts between a number and its bits in memory; the upper bits of narrow types are zero.
uint64_t bits_of_number(Number n, Dtype t);
Number number_of_bits(uint64_t bits, Dtype t);
/// Returns the row-major position.
int64_t position(const std::vector<int64_t>& shape, const std::vector<int64_t>& index);

}  // namespace weft::graph
