// Gathers the families into one table; helpers that their rules share.
#include "graph/table.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

constexpr int op_count = static_cast<int>(Op::count_);

constexpr bool every_op_in_one_family() {
  int next = 0;
  for (const Family& family : families) {
    if (static_cast<int>(family.first) != next || family.last < family.first) return false;
    next = static_cast<int>(family.last) + 1;
  }
  return next == op_count;
}
static_assert(every_op_in_one_family(), "families[] runs through Op without gap or repetition");

std::array<const Row*, op_count> gather_rows() {
  std::array<const Row*, op_count> all{};
  for (const Family& family : families)
    for (const Row& r : family.rows()) all[static_cast<size_t>(r.op)] = &r;
  return all;
}

const std::array<const Row*, op_count>& all_rows() {
  static const auto all = gather_rows();
  return all;
}

}  // namespace

const Row& row(Op op) { return *all_rows()[static_cast<size_t>(op)]; }
std::span<const Row* const> table() { return all_rows(); }

std::string list(TypeSpan types) {
  std::string out;
  for (size_t k = 0; k < types.size(); ++k)
    out.append(k == 0 ? "" : k + 1 == types.size() ? " and " : ", ").append(to_string(types[k]));
  return out;
}

std::string list(const std::vector<int64_t>& numbers) {
  std::string out = "(";
  for (size_t k = 0; k < numbers.size(); ++k) out.append(k ? "," : "").append(std::to_string(numbers[k]));
  return out + ")";
}

Interval hull(std::span<const Interval> intervals) {
  Interval out = intervals.empty() ? Interval{} : intervals.front();
  for (const Interval& i : intervals) out = {std::min(out.min, i.min), std::max(out.max, i.max)};
  return out;
}

std::vector<Dtype> first_dtype(const Attrs&, TypeSpan inputs) { return {inputs[0].dtype}; }
Interval first_interval(const Attrs&, std::span<const Interval> inputs, const Type&) { return inputs[0]; }
Interval dtype_interval(const Attrs&, std::span<const Interval>, const Type& result) { return range_of(result.dtype); }

Dim batch_extent(ValueSpan inputs, std::span<const int> axes) {
  for (size_t k = 0; k < inputs.size(); ++k)
    if (axes[k] >= 0) return inputs[k].shape()[static_cast<size_t>(axes[k])];
  throw_internal("vmap", "no input has a batch axis");
}

Value to_front(const Value& v, int axis) {
  if (axis == 0) return v;
  std::vector<int64_t> order{axis};
  for (int k = 0; k < v.type().rank(); ++k)
    if (k != axis) order.push_back(k);
  return permute(v, order);
}

Value batched(const Value& v, int axis, Dim extent) {
  return axis >= 0 ? to_front(v, axis) : broadcast(v, prepend(extent, v.shape()));
}

Values all_batched(ValueSpan inputs, std::span<const int> axes) {
  const Dim extent = batch_extent(inputs, axes);
  Values out;
  for (size_t k = 0; k < inputs.size(); ++k) out.push_back(batched(inputs[k], axes[k], extent));
  return out;
}

Shape prepend(Dim first, const Shape& rest) {
  Shape out{first};
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

std::vector<int64_t> prepend(int64_t first, const std::vector<int64_t>& rest) {
  std::vector<int64_t> out{first};
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

std::vector<int64_t> shifted(const std::vector<int64_t>& axes) {
  std::vector<int64_t> out = axes;
  for (int64_t& axis : out) ++axis;
  return out;
}

std::vector<int> factors_from(int first, int count) {
  std::vector<int> out;
  for (int k = 0; k < count; ++k) out.push_back(first + k);
  return out;
}

}  // namespace weft::graph
