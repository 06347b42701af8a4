// Assignment to a strided slice: v with v[start + i·step] = u[i]. The result is a new value; the compiler writes it
// into v's memory if the old value has no other reader.
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

std::vector<Shape> assign_shape(const Attrs& attrs, TypeSpan in) {
  const Shape &to = in[0].shape, &sizes = in[1].shape;
  if (attrs.start.size() != to.size() || attrs.step.size() != to.size() || sizes.size() != to.size())
    throw_invalid("assign", fmt::format("start, step and a dimension of {} are needed for each axis of {}",
                                        to_string(in[1]), to_string(in[0])));
  for (size_t k = 0; k < to.size(); ++k) {
    if (attrs.start[k] == 0 && attrs.step[k] == 1 && sizes[k] == to[k]) continue;
    if (!to[k].is_static() || !sizes[k].is_static())
      throw_invalid("assign",
                    fmt::format("axis {} of {} is symbolic and can only be assigned whole", k, to_string(in[0])));
    const int64_t n = to[k].bound(), size = sizes[k].bound(), start = attrs.start[k], step = attrs.step[k];
    const wide_t last = wide_t{start} + wide_t{step} * (size - 1);
    const bool fits = size == 0 ? start >= 0 && start <= n : start >= 0 && start < n && last >= 0 && last < n;
    if (step == 0 || !fits)
      throw_invalid("assign", fmt::format("axis {} of {}: start {}, size {}, step {} leaves the array", k,
                                          to_string(in[0]), start, size, step));
  }
  return {to};
}

std::vector<Dtype> assign_dtype(const Attrs&, TypeSpan in) {
  if (in[0].dtype != in[1].dtype)
    throw_invalid("assign", "the array and its update must have one dtype, got " + list(in) + ": cast them first");
  return {in[0].dtype};
}

Interval assign_interval(const Attrs&, std::span<const Interval> in, const Type&) { return hull(in); }

Value region(const Value& v, const Node& node) {
  return slice(v, node.attrs().start, node.inputs()[1].shape(), node.attrs().step);
}

/// Overwritten elements have no influence.
Values assign_vjp(const Node& node, ValueSpan x, ValueSpan, ValueSpan g) {
  return {assign(g[0], zeros_like(x[1]), node.attrs().start, node.attrs().step), region(g[0], node)};
}

Values assign_jvp(const Node& node, ValueSpan x, ValueSpan, ValueSpan t) {
  return {
      assign(t[0] ? t[0] : zeros_like(x[0]), t[1] ? t[1] : zeros_like(x[1]), node.attrs().start, node.attrs().step)};
}

Values assign_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  const Values both = all_batched(x, axes);
  return {assign(both[0], both[1], prepend(0, node.attrs().start), prepend(1, node.attrs().step))};
}

Factors assign_factors(const Attrs& attrs, TypeSpan in, TypeSpan out) {
  std::vector<int> axes = factors_from(0, out[0].rank());
  for (size_t k = 0; k < axes.size(); ++k)
    if (!(attrs.start[k] == 0 && attrs.step[k] == 1 && in[1].shape[k] == in[0].shape[k])) axes[k] = -1;
  return {{axes, axes}, {axes}};
}

std::vector<HostTensor> assign_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  HostTensor result{out[0], in[0].data};
  const std::vector<int64_t> to = bounds(out[0].shape);
  each_index(bounds(in[1].type.shape), [&](const auto& index, int64_t at) {
    std::vector<int64_t> where = index;
    for (size_t k = 0; k < where.size(); ++k) where[k] = attrs.start[k] + index[k] * attrs.step[k];
    result.data[static_cast<size_t>(position(to, where))] = in[1].data[static_cast<size_t>(at)];
  });
  return {result};
}

constexpr auto assign_table = std::to_array<Row>({
    {Op::assign, "assign", 2, 2, assign_shape, assign_dtype, assign_interval, assign_vjp, assign_jvp, assign_vmap,
     assign_factors, -1, assign_reference, 0,
     "the first input with a slice replaced by the second; what is replaced has no derivative", "start, step"},
});
static_assert(complete(assign_table, Op::assign));

}  // namespace

std::span<const Row> assign_rows() { return assign_table; }

}  // namespace weft::graph
