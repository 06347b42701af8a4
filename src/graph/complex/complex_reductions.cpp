// Products, extremes, cumulative reductions and orders of complex numbers, in real operators. Order is by real parts,
// equal ones by imaginary parts; a number with a NaN in either part comes last and wins as an extreme, as NaN does
// among real numbers.
#include <limits>

#include "base/error.h"
#include "graph/calls/call.h"
#include "graph/complex/complex.h"
#include "graph/complex/complex_math.h"

namespace weft::graph {
namespace {

using kernel::Reducer;

Value is_nan(const Parts& z) { return binary(Op::bit_or, is_nan(z.re), is_nan(z.im)); }

int64_t extent(const Value& v, size_t axis, const char* what) {
  const Dim& n = v.shape()[axis];
  if (!n.is_static())
    throw_invalid(what, "complex numbers along a symbolic axis are not supported: " + to_string(v.type()));
  return n.bound();
}

/// Returns elements [from, from + size) of the axis.
Parts piece(const Parts& z, size_t axis, int64_t from, int64_t size) {
  const auto cut = [&](const Value& v) { return slice_axis(v, static_cast<int>(axis), from, size); };
  return {cut(z.re), cut(z.im)};
}

/// Pads the axis with `low` and `high` copies of a number.
Parts padded(const Parts& z, size_t axis, int64_t low, int64_t high, double re, double im) {
  std::vector<int64_t> before(z.re.shape().size(), 0), behind = before;
  before[axis] = low;
  behind[axis] = high;
  return {pad(z.re, before, behind, Number::of_real(re)), pad(z.im, before, behind, Number::of_real(im))};
}

Parts joined_along(const Parts& a, const Parts& b, size_t axis) {
  const int at = static_cast<int>(axis);
  return {concat({a.re, b.re}, at), concat({a.im, b.im}, at)};
}

Parts flipped(const Parts& z, size_t axis) {
  std::vector<int64_t> start(z.re.shape().size(), 0), step(z.re.shape().size(), 1);
  start[axis] = std::max<int64_t>(z.re.shape()[axis].bound() - 1, 0);
  step[axis] = -1;
  const auto reversed = [&](const Value& v) { return slice(v, start, v.shape(), step); };
  return {reversed(z.re), reversed(z.im)};
}

/// Multiplies halves with each other until one element is left.
Parts product_over(Parts z, const std::vector<int64_t>& axes) {
  for (int64_t axis : axes) {
    const auto at = static_cast<size_t>(axis);
    for (int64_t n = extent(z.re, at, "prod"); n != 1; n = extent(z.re, at, "prod")) {
      const int64_t half = n == 0 ? 1 : (n + 1) / 2;
      const Parts all = padded(z, at, 0, 2 * half - n, 1, 0);
      z = multiply(piece(all, at, 0, half), piece(all, at, half, half));
    }
  }
  return {squeeze(z.re, axes), squeeze(z.im, axes)};
}

/// Returns the extreme real part, then the extreme imaginary part among elements that have it. With any NaN, both are
/// NaN.
Parts extreme_over(const Parts& z, Reducer reducer, const std::vector<int64_t>& axes) {
  const Value re = select(is_nan(z), full_like(z.re, std::numeric_limits<double>::quiet_NaN()), z.re);
  const Value best = reduce(reducer, re, axes), broadcast_like = broadcast(expand_dims(best, axes), re.shape());
  const Value out = full_like(z.im, reducer == Reducer::max ? -infinity : infinity);
  const Value im = reduce(reducer, select(binary(Op::eq, re, broadcast_like), z.im, out), axes);
  return {best, select(is_nan(best), best, im)};
}

/// The combination a ∘ b of a cumulative reduction, and its identity.
struct Combination {
  Op op;
  double re, im;
};

Combination combination(const Attrs& attrs) {
  if (attrs.integers[2] != 0) return {Op::logaddexp, -infinity, 0};
  switch (attrs.reducer) {
    case Reducer::prod: return {Op::mul, 1, 0};
    case Reducer::max: return {Op::max, -infinity, -infinity};
    case Reducer::min: return {Op::min, infinity, infinity};
    default:
      throw_internal("cumulative", std::string(kernel::name(attrs.reducer)) + " is not defined on complex numbers");
  }
}

/// Returns v[…, order[…, i, …], …] along the axis.
Value along(const Value& v, const Value& order, int axis) {
  Values indices;
  std::vector<int64_t> axes;
  for (int k = 0; k < v.type().rank(); ++k) {
    indices.push_back(k == axis ? order : iota(order.shape(), k, uint32));
    axes.push_back(k);
  }
  return reshape(gather(v, indices, axes, Shape(v.shape().size(), Dim(1))), order.shape());
}

}  // namespace

Parts complex_reduce(const Node& node, const Parts& z) {
  const Attrs& attrs = node.attrs();
  return attrs.reducer == Reducer::prod ? product_over(z, attrs.axes) : extreme_over(z, attrs.reducer, attrs.axes);
}

/// Computes log2(n) steps; step l combines elements 2^l apart.
Parts complex_cumulative(const Node& node, const Parts& z) {
  const Attrs& attrs = node.attrs();
  const auto axis = static_cast<size_t>(attrs.axes[0]);
  const bool reverse = attrs.integers[0] != 0, exclusive = attrs.integers[1] != 0;
  const Combination c = combination(attrs);
  const int64_t n = extent(z.re, axis, "cumulative");
  if (n == 0) return z;
  Parts x = reverse ? flipped(z, axis) : z;
  if (exclusive) x = padded(piece(x, axis, 0, n - 1), axis, 1, 0, c.re, c.im);
  for (int64_t far = 1; far < n; far *= 2)
    x = joined_along(piece(x, axis, 0, far),
                     complex_elementwise(c.op, {piece(x, axis, 0, n - far), piece(x, axis, far, n - far)}), axis);
  return reverse ? flipped(x, axis) : x;
}

/// Stable sorts by imaginary, then by real parts.
SortedParts complex_sort(const Node& node, const Parts& z) {
  const auto axis = static_cast<int>(node.attrs().integers[0]);
  const SortWindow w = sort_window(node.attrs().integers, z.re.shape()[static_cast<size_t>(axis)].bound());
  const auto wanted = [&](const Value& v) { return slice_axis(v, axis, w.first, w.count); };
  if (num_elements(z.re.shape()) == 0) return {{wanted(z.re), wanted(z.im)}, wanted(sort(z.re, axis).order)};
  const Value nan = full_like(z.re, std::numeric_limits<double>::quiet_NaN()), bad = is_nan(z);
  const Value first = sort(select(bad, nan, z.im), axis).order;
  const Value second = sort(along(select(bad, nan, z.re), first, axis), axis).order;
  const Value order = wanted(along(first, second, axis));
  return {{along(z.re, order, axis), along(z.im, order, axis)}, order};
}

}  // namespace weft::graph
