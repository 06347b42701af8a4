// weft/ops/ordering.h: sorting, and functions that sort.
#include <algorithm>

#include "array/op_support.h"
#include "base/error.h"
#include "graph/calls/call.h"
#include "weft/ops.h"

namespace weft {
namespace {

using detail::describe;

struct Along {
  detail::OnStream on_stream;  // while the operation is built
  array a;
  int axis;
};

Along along(const char* op, const array& a, int axis, const StreamOrDevice& s) {
  return {detail::OnStream(op, s), a, static_cast<int>(detail::one_axis(op, axis, a.ndim()))};
}

/// Returns `kth` counted from the front; throws where it is out of range.
int64_t position_of(const char* op, const Along& at, int kth) {
  const int64_t n = at.a.shape()[static_cast<size_t>(at.axis)];
  const int64_t k = kth < 0 ? kth + n : kth;
  if (k < 0 || k >= n)
    throw_invalid(op, "position " + std::to_string(kth) + " is outside the " + std::to_string(n) +
                          " elements along axis " + std::to_string(at.axis) + " of " + describe(at.a));
  return k;
}

}  // namespace

array sort(const array& a, int axis, StreamOrDevice s) {
  const Along at = along("sort", a, axis, s);
  return array(graph::sort(at.a.value(), at.axis).values);
}
array sort(const array& a, StreamOrDevice s) { return sort(flatten(a, s), 0, s); }

array argsort(const array& a, int axis, StreamOrDevice s) {
  const Along at = along("argsort", a, axis, s);
  return array(graph::sort(at.a.value(), at.axis).order);
}
array argsort(const array& a, StreamOrDevice s) { return argsort(flatten(a, s), 0, s); }

// A sorted row is partitioned at every position.
array partition(const array& a, int kth, int axis, StreamOrDevice s) {
  const Along at = along("partition", a, axis, s);
  position_of("partition", at, kth);
  return array(graph::sort(at.a.value(), at.axis).values);
}
array partition(const array& a, int kth, StreamOrDevice s) { return partition(flatten(a, s), kth, 0, s); }

array argpartition(const array& a, int kth, int axis, StreamOrDevice s) {
  const Along at = along("argpartition", a, axis, s);
  position_of("argpartition", at, kth);
  return array(graph::sort(at.a.value(), at.axis).order);
}
array argpartition(const array& a, int kth, StreamOrDevice s) { return argpartition(flatten(a, s), kth, 0, s); }

array topk(const array& a, int k, int axis, StreamOrDevice s) {
  const Along at = along("topk", a, axis, s);
  const int64_t n = at.a.shape()[static_cast<size_t>(at.axis)];
  if (k < 0 || k > n)
    throw_invalid("topk", "there are no " + std::to_string(k) + " elements along axis " + std::to_string(axis) +
                              " of " + describe(a));
  return array(graph::slice_axis(graph::sort(at.a.value(), at.axis).values, at.axis, n - k, k));
}
array topk(const array& a, int k, StreamOrDevice s) { return topk(flatten(a, s), k, 0, s); }

array median(const array& a, const std::vector<int>& axes, bool keepdims, StreamOrDevice s) {
  const detail::OnStream on_stream("median", s);
  const std::vector<int64_t> over = detail::sorted_axes("median", axes, a.ndim());
  const Dtype result = detail::floating_of(a.dtype());
  std::vector<int> order;
  Shape rest, kept = a.shape();
  int64_t n = 1;
  for (size_t k = 0; k < a.ndim(); ++k) {
    if (std::binary_search(over.begin(), over.end(), static_cast<int64_t>(k))) continue;
    order.push_back(static_cast<int>(k));
    rest.push_back(a.shape()[k]);
  }
  for (int64_t axis : over) {
    order.push_back(static_cast<int>(axis));
    n *= int64_t{a.shape()[static_cast<size_t>(axis)]};
    kept[static_cast<size_t>(axis)] = 1;
  }
  if (n == 0) throw_invalid("median", "there is no median of nothing: " + describe(a));
  Shape rows = rest;
  rows.push_back(n);
  const int last = static_cast<int>(rest.size());
  const array sorted = astype(sort(reshape(transpose(a, order, s), rows, s), last, s), result, s);
  const auto at = [&](int64_t k) {
    return array(graph::squeeze(graph::slice_axis(sorted.value(), last, k, 1), {last}));
  };
  array middle = n % 2 ? at(n / 2) : (at(n / 2 - 1) + at(n / 2)) * array(0.5f, result);
  const array greatest = at(n - 1);  // NaN where any element is NaN
  middle = where(isnan(greatest, s), greatest, middle, s);
  return keepdims ? reshape(middle, kept, s) : middle;
}
array median(const array& a, int axis, bool keepdims, StreamOrDevice s) {
  return median(a, std::vector<int>{axis}, keepdims, s);
}
array median(const array& a, bool keepdims, StreamOrDevice s) { return median(a, detail::all_axes(a), keepdims, s); }

array searchsorted(const array& a, const array& v, const std::string& side, StreamOrDevice s) {
  const detail::OnStream on_stream("searchsorted", s);
  if (side != "left" && side != "right")
    throw_invalid("searchsorted", "side is \"left\" or \"right\", got \"" + side + "\"");
  if (a.ndim() != 1) throw_invalid("searchsorted", "the sorted array must have one dimension, got " + describe(a));
  const Dtype dtype = promote_types(a.dtype(), v.dtype());
  return array(
      graph::searchsorted(detail::to_dtype(a.value(), dtype), detail::to_dtype(v.value(), dtype), side == "right"));
}

}  // namespace weft
