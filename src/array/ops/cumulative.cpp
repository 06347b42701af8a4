// weft/ops/ordering.h: cumulative operations. 16-bit floats accumulate in float32, and each element is rounded once.
#include "array/op_support.h"
#include "base/error.h"
#include "weft/ops.h"

namespace weft {
namespace {

using kernel::Reducer;

array cumulative(const char* op, Reducer reducer, const array& a, int axis, bool reverse, bool inclusive,
                 const StreamOrDevice& s, bool logs = false) {
  const detail::OnStream on_stream(op, s);
  const auto at = static_cast<int>(detail::one_axis(op, axis, a.ndim()));
  return array(graph::cumulative(reducer, a.value(), at, reverse, !inclusive, logs));
}

}  // namespace

array cumsum(const array& a, int axis, bool reverse, bool inclusive, std::optional<Dtype> dtype, StreamOrDevice s) {
  const array x = dtype ? astype(a, *dtype, s) : a;
  return cumulative("cumsum", Reducer::sum, x.dtype() == bool_ ? astype(x, int32, s) : x, axis, reverse, inclusive, s);
}
array cumsum(const array& a, bool reverse, bool inclusive, std::optional<Dtype> dtype, StreamOrDevice s) {
  return cumsum(flatten(a, s), 0, reverse, inclusive, dtype, s);
}

array cumprod(const array& a, int axis, bool reverse, bool inclusive, std::optional<Dtype> dtype, StreamOrDevice s) {
  const array x = dtype ? astype(a, *dtype, s) : a;
  return cumulative("cumprod", x.dtype() == bool_ ? Reducer::all : Reducer::prod, x, axis, reverse, inclusive, s);
}
array cumprod(const array& a, bool reverse, bool inclusive, std::optional<Dtype> dtype, StreamOrDevice s) {
  return cumprod(flatten(a, s), 0, reverse, inclusive, dtype, s);
}

array cummax(const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) {
  return cumulative("cummax", a.dtype() == bool_ ? Reducer::any : Reducer::max, a, axis, reverse, inclusive, s);
}
array cummax(const array& a, bool reverse, bool inclusive, StreamOrDevice s) {
  return cummax(flatten(a, s), 0, reverse, inclusive, s);
}

array cummin(const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) {
  return cumulative("cummin", a.dtype() == bool_ ? Reducer::all : Reducer::min, a, axis, reverse, inclusive, s);
}
array cummin(const array& a, bool reverse, bool inclusive, StreamOrDevice s) {
  return cummin(flatten(a, s), 0, reverse, inclusive, s);
}

array logcumsumexp(const array& a, int axis, bool reverse, bool inclusive, StreamOrDevice s) {
  return cumulative("logcumsumexp", Reducer::sum, astype(a, detail::floating_of(a.dtype()), s), axis, reverse,
                    inclusive, s, true);
}
array logcumsumexp(const array& a, bool reverse, bool inclusive, StreamOrDevice s) {
  return logcumsumexp(flatten(a, s), 0, reverse, inclusive, s);
}

array diff(const array& a, int n, int axis, StreamOrDevice s) {
  const detail::OnStream on_stream("diff", s);
  if (n < 0) throw_invalid("diff", "the order must not be negative, got " + std::to_string(n));
  const auto at = static_cast<int>(detail::one_axis("diff", axis, a.ndim()));
  array d = a;
  for (int k = 0; k < n; ++k) {
    const int64_t left = d.shape()[static_cast<size_t>(at)];
    if (left == 0) return d;
    const array later(graph::slice_axis(d.value(), at, 1, left - 1)),
        earlier(graph::slice_axis(d.value(), at, 0, left - 1));
    d = d.dtype() == bool_ ? not_equal(later, earlier, s) : subtract(later, earlier, s);
  }
  return d;
}

}  // namespace weft
