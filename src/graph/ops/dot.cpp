// Dot: the contraction of two arrays. Reads axes and axes2 (contracted, pairwise), batch and batch2 (pairwise) and
// dtype (the result's). Result axes: batch axes in their order, free axes of the left operand, free axes of the right
// operand, both ascending.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

using Axes = std::vector<int64_t>;

bool contains(const Axes& axes, int64_t axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

Axes free_axes(int rank, const Axes& contract, const Axes& batch) {
  Axes out;
  for (int64_t k = 0; k < rank; ++k)
    if (!contains(contract, k) && !contains(batch, k)) out.push_back(k);
  return out;
}

void check_axes(const char* side, const Type& t, const Axes& contract, const Axes& batch) {
  Axes all = contract;
  all.insert(all.end(), batch.begin(), batch.end());
  std::sort(all.begin(), all.end());
  const bool distinct = std::adjacent_find(all.begin(), all.end()) == all.end();
  if (!distinct || (!all.empty() && (all.front() < 0 || all.back() >= t.rank())))
    throw_invalid("dot",
                  fmt::format("contracted axes {} and batch axes {} of the {} operand {} must be distinct axes of it",
                              list(contract), list(batch), side, to_string(t)));
}

void check_pairs(TypeSpan in, const char* what, const Axes& a, const Axes& b) {
  if (a.size() != b.size())
    throw_invalid("dot", fmt::format("{} axes {} and {} do not pair up", what, list(a), list(b)));
  for (size_t k = 0; k < a.size(); ++k)
    if (in[0].shape[static_cast<size_t>(a[k])] != in[1].shape[static_cast<size_t>(b[k])])
      throw_invalid("dot", fmt::format("{} axis {} of {} and {} of {} differ in extent", what, a[k], to_string(in[0]),
                                       b[k], to_string(in[1])));
}

std::vector<Shape> dot_shape(const Attrs& attrs, TypeSpan in) {
  check_axes("left", in[0], attrs.axes, attrs.batch);
  check_axes("right", in[1], attrs.axes2, attrs.batch2);
  check_pairs(in, "contracted", attrs.axes, attrs.axes2);
  check_pairs(in, "batch", attrs.batch, attrs.batch2);
  Shape out;
  for (int64_t axis : attrs.batch) out.push_back(in[0].shape[static_cast<size_t>(axis)]);
  for (int64_t axis : free_axes(in[0].rank(), attrs.axes, attrs.batch))
    out.push_back(in[0].shape[static_cast<size_t>(axis)]);
  for (int64_t axis : free_axes(in[1].rank(), attrs.axes2, attrs.batch2))
    out.push_back(in[1].shape[static_cast<size_t>(axis)]);
  return {out};
}

std::vector<Dtype> dot_dtype(const Attrs& attrs, TypeSpan in) {
  const auto byte = [](Dtype t) { return t == int8 || t == uint8; };
  if (byte(in[0].dtype) && byte(in[1].dtype)) {
    if (attrs.dtype != int32)
      throw_invalid("dot",
                    fmt::format("products of 8-bit integers are summed in int32, not {}", dtype_name(attrs.dtype)));
    return {attrs.dtype};
  }
  if (is_complex(in[0].dtype) && in[1].dtype == in[0].dtype && attrs.dtype == in[0].dtype) return {attrs.dtype};
  const bool eights = is_float8(in[0].dtype) && is_float8(in[1].dtype);
  if (!eights && (!is_float(in[0].dtype) || in[0].dtype != in[1].dtype))
    throw_invalid("dot", "needs two floating arrays of one dtype, two of 8-bit floats, or two of 8-bit integers, got " +
                             list(in) + ": cast them first");
  if (!is_float(attrs.dtype))
    throw_invalid("dot", fmt::format("the result must be floating, not {}", dtype_name(attrs.dtype)));
  return {attrs.dtype};
}

Value dot_as(Dtype dtype, const Value& a, const Value& b, Axes a_contract, Axes b_contract, Axes a_batch,
             Axes b_batch) {
  Attrs attrs;
  attrs.axes = std::move(a_contract);
  attrs.axes2 = std::move(b_contract);
  attrs.batch = std::move(a_batch);
  attrs.batch2 = std::move(b_batch);
  attrs.dtype = dtype;
  return make(Op::dot, {a, b}, std::move(attrs));
}

Axes joined(Axes a, const Axes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Axes counted(int64_t first, size_t count) {
  Axes out;
  for (size_t k = 0; k < count; ++k) out.push_back(first + static_cast<int64_t>(k));
  return out;
}

/// Returns v with axis p moved to axis target[p].
Value arrange(const Value& v, const Axes& target) {
  Axes order(target.size());
  for (size_t p = 0; p < target.size(); ++p) order[static_cast<size_t>(target[p])] = static_cast<int64_t>(p);
  return permute(v, order);
}

/// How one operand takes part in the contraction.
struct Side {
  Axes contract, batch, free;
};

/// Returns the gradient of one operand (`own`): g contracted with the other operand (`far`) over the other's free axes.
/// Both orders of the operands compute it; the one whose result already has the operand's axis order is used, so that
/// no transpose follows.
Value operand_gradient(const Value& g, const Value& other, const Side& own, const Side& far, const Axes& g_far_free,
                       Dtype dtype) {
  const size_t batches = own.batch.size();
  // The other operand's contracted axes remain in ascending order: each is paired with the operand's axis.
  Axes sorted = far.contract, survivors;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t axis : sorted)
    survivors.push_back(own.contract[static_cast<size_t>(std::find(far.contract.begin(), far.contract.end(), axis) -
                                                         far.contract.begin())]);
  const Axes g_batch = counted(0, batches);
  const Axes g_first = joined(joined(own.batch, own.free), survivors),
             other_first = joined(joined(own.batch, survivors), own.free);
  if (!std::is_sorted(g_first.begin(), g_first.end()) && std::is_sorted(other_first.begin(), other_first.end()))
    return arrange(dot_as(dtype, other, g, far.free, g_far_free, far.batch, g_batch), other_first);
  return arrange(dot_as(dtype, g, other, g_far_free, far.free, g_batch, far.batch), g_first);
}

Values dot_vjp(const Node& node, ValueSpan x, ValueSpan, ValueSpan gs) {
  const Attrs& at = node.attrs();
  const Value g = cast(gs[0], x[0].dtype());
  const Side a{at.axes, at.batch, free_axes(x[0].type().rank(), at.axes, at.batch)};
  const Side b{at.axes2, at.batch2, free_axes(x[1].type().rank(), at.axes2, at.batch2)};
  const int64_t batches = static_cast<int64_t>(at.batch.size());
  const Axes g_a = counted(batches, a.free.size()),
             g_b = counted(batches + static_cast<int64_t>(a.free.size()), b.free.size());
  return {operand_gradient(g, x[1], a, b, g_b, x[0].dtype()), operand_gradient(g, x[0], b, a, g_a, x[1].dtype())};
}

Values dot_jvp(const Node& node, ValueSpan x, ValueSpan, ValueSpan t) {
  Value total;
  if (t[0]) total = make(Op::dot, {t[0], x[1]}, node.attrs());
  if (t[1]) {
    const Value term = make(Op::dot, {x[0], t[1]}, node.attrs());
    total = total ? total + term : term;
  }
  return {total};
}

/// Both batched: one more batch axis. One batched: one more free axis of that operand, moved to the front of the
/// result.
Values dot_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  const Attrs& at = node.attrs();
  const bool left = axes[0] >= 0, right = axes[1] >= 0;
  const Value a = left ? to_front(x[0], axes[0]) : x[0], b = right ? to_front(x[1], axes[1]) : x[1];
  const auto moved = [](const Axes& list_of, bool by_one) { return by_one ? shifted(list_of) : list_of; };
  Axes a_batch = moved(at.batch, left), b_batch = moved(at.batch2, right);
  if (left && right) {
    a_batch = prepend(0, a_batch);
    b_batch = prepend(0, b_batch);
  }
  const Value out = dot_as(at.dtype, a, b, moved(at.axes, left), moved(at.axes2, right), a_batch, b_batch);
  if (left && right) return {out};
  const size_t batches = at.batch.size();
  const size_t a_free = x[0].shape().size() - at.axes.size() - batches;
  return {to_front(out, static_cast<int>(left ? batches : batches + a_free))};
}

Factors dot_factors(const Attrs& at, TypeSpan in, TypeSpan) {
  Factors f{{std::vector<int>(in[0].shape.size()), std::vector<int>(in[1].shape.size())}, {{}}};
  int next = 0;
  const auto give = [&](size_t side, int64_t axis, bool result) {
    f.inputs[side][static_cast<size_t>(axis)] = next;
    if (result) f.outputs[0].push_back(next);
  };
  for (size_t k = 0; k < at.batch.size(); ++k, ++next) {
    give(0, at.batch[k], true);
    give(1, at.batch2[k], false);
  }
  for (int64_t axis : free_axes(in[0].rank(), at.axes, at.batch)) give(0, axis, true), ++next;
  for (int64_t axis : free_axes(in[1].rank(), at.axes2, at.batch2)) give(1, axis, true), ++next;
  for (size_t k = 0; k < at.axes.size(); ++k, ++next) {
    give(0, at.axes[k], false);
    give(1, at.axes2[k], false);
  }
  return f;
}

std::vector<HostTensor> dot_reference(const Attrs& at, std::span<const HostTensor> in, TypeSpan out) {
  const Axes a_shape = bounds(in[0].type.shape), b_shape = bounds(in[1].type.shape);
  const Axes a_free = free_axes(in[0].type.rank(), at.axes, at.batch),
             b_free = free_axes(in[1].type.rank(), at.axes2, at.batch2);
  Axes inner;
  for (int64_t axis : at.axes) inner.push_back(a_shape[static_cast<size_t>(axis)]);
  HostTensor result = host(out[0]);
  each_index(bounds(out[0].shape), [&](const auto& index, int64_t where) {
    Axes ia(a_shape.size()), ib(b_shape.size());
    size_t k = 0;
    for (size_t b = 0; b < at.batch.size(); ++b, ++k)
      ia[static_cast<size_t>(at.batch[b])] = ib[static_cast<size_t>(at.batch2[b])] = index[k];
    for (int64_t axis : a_free) ia[static_cast<size_t>(axis)] = index[k++];
    for (int64_t axis : b_free) ib[static_cast<size_t>(axis)] = index[k++];
    double total = 0;
    each_index(inner, [&](const auto& contracted, int64_t) {
      for (size_t c = 0; c < contracted.size(); ++c)
        ia[static_cast<size_t>(at.axes[c])] = ib[static_cast<size_t>(at.axes2[c])] = contracted[c];
      total += in[0].data[static_cast<size_t>(position(a_shape, ia))].real() *
               in[1].data[static_cast<size_t>(position(b_shape, ib))].real();
    });
    result.data[static_cast<size_t>(where)] = kernel::round_to(
        is_float(at.dtype) ? Number::of_real(total) : Number::of_int(static_cast<int64_t>(total)), at.dtype);
  });
  return {result};
}

constexpr auto dot_table = std::to_array<Row>({
    {Op::dot, "dot", 2, 2, dot_shape, dot_dtype, None::unbounded, dot_vjp, dot_jvp, dot_vmap, dot_factors, -1,
     dot_reference, 4,
     "products summed over contracted axes, in float32 at least; result axes: batch, free axes of a, free axes of b",
     "axes, axes2, batch, batch2, dtype", "floats, 8-bit integers, complex"},
});
static_assert(complete(dot_table, Op::dot));

}  // namespace

std::span<const Row> dot_rows() { return dot_table; }

}  // namespace weft::graph
