// weft/fft.h: axes are transformed one after the other, each as the last one, on pairs of float32 or float64.
#include "weft/fft.h"

#include <algorithm>
#include <cmath>

#include "array/op_support.h"
#include "base/error.h"
#include "graph/calls/call.h"
#include "weft/ops.h"

namespace weft::fft {
namespace {

using detail::describe;

/// How a transform treats the last of its axes.
enum class Kind { complex, to_half, from_half };

struct Plan {
  std::vector<int> axes;         // counted from the front
  std::vector<int64_t> lengths;  // of the transforms
};

Plan plan(const char* op, const array& a, const std::optional<Shape>& n, const std::optional<std::vector<int>>& axes,
          Kind kind) {
  if (a.ndim() == 0 && !axes) throw_invalid(op, "an array with at least one dimension is needed, got " + describe(a));
  if (axes && axes->empty()) throw_invalid(op, "at least one axis is needed");
  if (n && axes && n->size() != axes->size())
    throw_invalid(op,
                  "there are " + std::to_string(n->size()) + " lengths for " + std::to_string(axes->size()) + " axes");
  Plan out;
  for (const int axis : axes ? *axes : detail::all_axes(a)) {
    const int at = static_cast<int>(detail::one_axis(op, axis, a.ndim()));
    if (std::count(out.axes.begin(), out.axes.end(), at) > 0)
      throw_invalid(op, "axis " + std::to_string(axis) + " is given twice");
    out.axes.push_back(at);
  }
  for (size_t k = 0; k < out.axes.size(); ++k) {
    const Dim size = n ? (*n)[k] : a.shape()[static_cast<size_t>(out.axes[k])];
    if (!size.is_static())
      throw_invalid(op, "axis " + std::to_string(out.axes[k]) + " of " + describe(a) +
                            " is symbolic: transform along an axis of fixed length");
    const bool half = !n && kind == Kind::from_half && k + 1 == out.axes.size();
    out.lengths.push_back(half ? 2 * (size.bound() - 1) : size.bound());
    if (out.lengths.back() < 1)
      throw_invalid(op, "axis " + std::to_string(out.axes[k]) + " of " + describe(a) + " would have " +
                            std::to_string(out.lengths.back()) + " elements: a transform needs at least one");
  }
  return out;
}

/// Cuts the axis off or pads it with zeros.
array resized(const array& a, int axis, int64_t length, StreamOrDevice s) {
  const auto at = static_cast<size_t>(axis);
  const int64_t has = a.shape()[at].bound();
  if (length == has) return a;
  if (length < has) {
    Shape stop = a.shape();
    stop[at] = length;
    return slice(a, Shape(a.ndim(), 0), stop, s);
  }
  return pad(a, std::vector<int>{axis}, Shape{0}, Shape{length - has}, array(0, a.dtype()), "constant", s);
}

/// Calls a routine along one axis of pairs [..., 2], or of real numbers as input or output.
array along(const array& a, int axis, const char* routine, std::vector<int64_t> integers, StreamOrDevice s) {
  const std::string name = routine;
  const int from = static_cast<int>(a.ndim()) - (name == "rfft" ? 1 : 2);
  const array moved = axis == from ? a : moveaxis(a, axis, from, s);
  const array out(graph::call(name, {moved.value()}, std::move(integers))[0]);
  const int last = static_cast<int>(out.ndim()) - (name == "irfft" ? 1 : 2);
  return axis == last ? out : moveaxis(out, last, axis, s);
}

array as_pairs(const array& z, StreamOrDevice s) { return stack({real(z, s), imag(z, s)}, -1, s); }

array as_complex(const array& pairs, StreamOrDevice s) {
  const std::vector<array> parts = unstack(pairs, -1, s);
  return array(graph::complex(parts[0].value(), parts[1].value()));
}

array transform(const char* op, const array& a, const std::optional<Shape>& n,
                const std::optional<std::vector<int>>& axes, Kind kind, bool inverse, FFTNorm norm, StreamOrDevice s) {
  const detail::OnStream on_stream(op, s);
  const Plan p = plan(op, a, n, axes, kind);
  const int last = p.axes.back();
  const Dtype dtype = complex_of(a.dtype());
  array x = astype(a, kind == Kind::to_half ? real_of(dtype) : dtype, s);
  double elements = 1;
  for (size_t k = 0; k < p.axes.size(); ++k) {
    const bool half = kind == Kind::from_half && p.axes[k] == last;
    x = resized(x, p.axes[k], half ? p.lengths[k] / 2 + 1 : p.lengths[k], s);
    elements *= static_cast<double>(p.lengths[k]);
  }
  x = kind == Kind::to_half ? along(x, last, "rfft", {}, s) : as_pairs(x, s);
  for (size_t k = 0; k < p.axes.size(); ++k)
    if (p.axes[k] != last || kind == Kind::complex) x = along(x, p.axes[k], "fft", {inverse}, s);
  if (kind == Kind::from_half) x = along(x, last, "irfft", {p.lengths.back()}, s);
  const double divisor = norm == FFTNorm::Ortho                   ? std::sqrt(elements)
                         : (norm == FFTNorm::Backward) == inverse ? elements
                                                                  : 1;
  if (divisor != 1) x = multiply(x, array(1 / divisor, x.dtype()), s);
  return kind == Kind::from_half ? x : as_complex(x, s);
}

array shifted(const array& a, const std::vector<int>& axes, bool back, StreamOrDevice s) {
  Shape by;
  for (const int axis : axes) {
    const int64_t n = a.shape()[static_cast<size_t>(
                                    normalize_axis(back ? "ifftshift" : "fftshift", axis, static_cast<int>(a.ndim())))]
                          .bound();
    by.push_back(back ? -(n / 2) : n / 2);
  }
  return axes.empty() ? a : roll(a, by, axes, s);
}

void check_sampling(const char* op, int n, double d) {
  if (n < 1) throw_invalid(op, "the number of samples must be positive, got " + std::to_string(n));
  if (d == 0) throw_invalid(op, "the distance of samples must not be 0");
}

}  // namespace

array fftn(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm, StreamOrDevice s) {
  return transform("fftn", a, n, axes, Kind::complex, false, norm, s);
}
array fftn(const array& a, const std::vector<int>& axes, FFTNorm norm, StreamOrDevice s) {
  return transform("fftn", a, {}, axes, Kind::complex, false, norm, s);
}
array fftn(const array& a, FFTNorm norm, StreamOrDevice s) {
  return transform("fftn", a, {}, {}, Kind::complex, false, norm, s);
}
array ifftn(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm, StreamOrDevice s) {
  return transform("ifftn", a, n, axes, Kind::complex, true, norm, s);
}
array ifftn(const array& a, const std::vector<int>& axes, FFTNorm norm, StreamOrDevice s) {
  return transform("ifftn", a, {}, axes, Kind::complex, true, norm, s);
}
array ifftn(const array& a, FFTNorm norm, StreamOrDevice s) {
  return transform("ifftn", a, {}, {}, Kind::complex, true, norm, s);
}
array rfftn(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm, StreamOrDevice s) {
  return transform("rfftn", a, n, axes, Kind::to_half, false, norm, s);
}
array rfftn(const array& a, const std::vector<int>& axes, FFTNorm norm, StreamOrDevice s) {
  return transform("rfftn", a, {}, axes, Kind::to_half, false, norm, s);
}
array rfftn(const array& a, FFTNorm norm, StreamOrDevice s) {
  return transform("rfftn", a, {}, {}, Kind::to_half, false, norm, s);
}
array irfftn(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm, StreamOrDevice s) {
  return transform("irfftn", a, n, axes, Kind::from_half, true, norm, s);
}
array irfftn(const array& a, const std::vector<int>& axes, FFTNorm norm, StreamOrDevice s) {
  return transform("irfftn", a, {}, axes, Kind::from_half, true, norm, s);
}
array irfftn(const array& a, FFTNorm norm, StreamOrDevice s) {
  return transform("irfftn", a, {}, {}, Kind::from_half, true, norm, s);
}

array fftfreq(int n, double d, StreamOrDevice s) {
  check_sampling("fftfreq", n, d);
  const int negative = n / 2, others = n - negative;
  const array frequencies = concatenate({arange(0, others, float32, s), arange(-negative, 0, float32, s)}, 0, s);
  return multiply(frequencies, array(static_cast<float>(1 / (n * d))), s);
}

array rfftfreq(int n, double d, StreamOrDevice s) {
  check_sampling("rfftfreq", n, d);
  const int count = n / 2 + 1;
  return multiply(arange(0, count, float32, s), array(static_cast<float>(1 / (n * d))), s);
}

array fftshift(const array& a, const std::vector<int>& axes, StreamOrDevice s) { return shifted(a, axes, false, s); }
array fftshift(const array& a, StreamOrDevice s) { return shifted(a, detail::all_axes(a), false, s); }
array ifftshift(const array& a, const std::vector<int>& axes, StreamOrDevice s) { return shifted(a, axes, true, s); }
array ifftshift(const array& a, StreamOrDevice s) { return shifted(a, detail::all_axes(a), true, s); }

}  // namespace weft::fft
