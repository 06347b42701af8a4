// Upsampling along one axis after the other: each element of the result is a weighted sum of elements.
#include <algorithm>
#include <cmath>

#include "nn/support.h"
#include "weft/nn/convolution.h"

namespace weft::nn {

namespace {

using Mode = UpsampleOptions::Mode;

/// One term of the sum: for each element of the result, the index of an element of the axis and its weight.
struct Tap {
  std::vector<int32_t> index;
  std::vector<float> weight;  // none: 1
};

/// Returns the nearest elements as MLX, in float32: where the axis grows, the element with the nearest center, else the
/// last one that begins before the position.
Tap nearest_tap(int64_t from, int64_t to) {
  const float step = static_cast<float>(static_cast<double>(from) / static_cast<double>(to));
  Tap tap;
  for (int64_t i = 0; i < to; ++i) {
    const float position = static_cast<float>(i);
    const float at = to > from ? std::nearbyint((position + 0.5f) * step - 0.5f) : std::trunc(position * step);
    tap.index.push_back(static_cast<int32_t>(std::clamp(at, 0.0f, static_cast<float>(from - 1))));
  }
  return tap;
}

/// Returns the positions of the result's elements on the axis: the centers of both axes coincide, or with align_corners
/// their ends.
std::vector<double> source_positions(int64_t from, int64_t to, double scale, bool align_corners) {
  const double step =
      align_corners ? static_cast<double>(from - 1) / static_cast<double>(std::max<int64_t>(to - 1, 1)) : 1 / scale;
  const double start = align_corners ? 0 : (static_cast<double>(to - 1) * step - static_cast<double>(from - 1)) / 2;
  std::vector<double> positions;
  for (int64_t i = 0; i < to; ++i) positions.push_back(static_cast<double>(i) * step - start);
  return positions;
}

double triangle(double x) { return std::max(1 - x, 0.0); }

/// Returns Keys' cubic kernel (1981) at a distance.
double cubic(double x, double a) {
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x <= 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// Returns the terms of a kernel at the elements around each position. Elements beyond the ends are those at the ends;
/// the cubic has a = -0.75, as in PyTorch and MLX.
std::vector<Tap> kernel_taps(const std::vector<double>& positions, int64_t from, Mode mode) {
  const int before = mode == Mode::cubic ? 1 : 0, after = mode == Mode::cubic ? 2 : 1;
  const double last = static_cast<double>(from - 1);
  std::vector<Tap> taps;
  for (int k = -before; k <= after; ++k) {
    Tap tap;
    for (const double p : positions) {
      const double position = mode == Mode::linear ? std::clamp(p, 0.0, last) : p;
      const double at = std::floor(position) + k, away = std::abs(position - at);
      tap.index.push_back(static_cast<int32_t>(std::clamp(at, 0.0, last)));
      tap.weight.push_back(static_cast<float>(mode == Mode::cubic ? cubic(away, -0.75) : triangle(away)));
    }
    taps.push_back(std::move(tap));
  }
  return taps;
}

/// Returns the terms of a kernel that is as wide as 1 / scale where the axis shrinks, which removes frequencies that
/// the result cannot hold. Elements beyond the ends count nothing, and weights sum to 1; the cubic has a = -0.5, as in
/// Pillow, PyTorch and MLX.
std::vector<Tap> wide_taps(const std::vector<double>& positions, int64_t from, double scale, Mode mode) {
  const double width = scale < 1 ? 1 / scale : 1;
  const int reach = static_cast<int>(std::ceil((mode == Mode::cubic ? 2 : 1) * width));
  const auto weight_at = [&](double position, double at) {
    const double away = std::abs(position - at) / width;
    if (at < 0 || at > static_cast<double>(from - 1)) return 0.0;
    return mode == Mode::cubic ? cubic(away, -0.5) : triangle(away);
  };
  std::vector<double> sums;
  for (const double position : positions) {
    double sum = 0;
    for (int k = -reach; k <= reach; ++k) sum += weight_at(position, std::floor(position) + k);
    sums.push_back(sum > 0 ? sum : 1);
  }
  std::vector<Tap> taps;
  for (int k = -reach; k <= reach; ++k) {
    Tap tap;
    for (size_t i = 0; i < positions.size(); ++i) {
      const double at = std::floor(positions[i]) + k;
      tap.index.push_back(static_cast<int32_t>(std::clamp(at, 0.0, static_cast<double>(from - 1))));
      tap.weight.push_back(static_cast<float>(weight_at(positions[i], at) / sums[i]));
    }
    taps.push_back(std::move(tap));
  }
  return taps;
}

std::vector<Tap> taps_of(int64_t from, int64_t to, double scale, const UpsampleOptions& options) {
  if (options.mode == Mode::nearest) return {nearest_tap(from, to)};
  const std::vector<double> positions = source_positions(from, to, scale, options.align_corners);
  return options.antialias ? wide_taps(positions, from, scale, options.mode)
                           : kernel_taps(positions, from, options.mode);
}

/// Returns how often a tap takes each element of an axis in turn; 0 where it does not.
int64_t repeats_of(const Tap& tap, int64_t from) {
  const auto to = static_cast<int64_t>(tap.index.size()), count = to / from;
  if (count * from != to || !tap.weight.empty()) return 0;
  for (int64_t i = 0; i < to; ++i)
    if (tap.index[static_cast<size_t>(i)] != i / count) return 0;
  return count;
}

array stretched(const array& x, int axis, double scale, const UpsampleOptions& options) {
  const int64_t from = x.shape(axis).bound(), to = static_cast<int64_t>(static_cast<double>(from) * scale);
  if (to < 1)
    throw_invalid("Upsample", "a scale of " + digits(static_cast<float>(scale)) + " leaves nothing of an axis of " +
                                  std::to_string(from));
  Shape shape(x.ndim(), 1);
  shape[static_cast<size_t>(axis)] = to;
  const std::vector<Tap> taps = taps_of(from, to, scale, options);
  // Repeated elements are a view, which whatever reads them can be computed with.
  if (const int64_t count = repeats_of(taps[0], from); count > 0) return repeat(x, static_cast<int>(count), axis);
  std::optional<array> sum;
  for (const Tap& tap : taps) {
    array part = take(x, array::from_data(tap.index.data(), {to}, int32), axis);
    if (!tap.weight.empty())
      part = part * astype(reshape(array::from_data(tap.weight.data(), {to}, float32), shape), part.dtype());
    sum = sum ? *sum + part : part;
  }
  return *sum;
}

}  // namespace

Upsample::Upsample(Scope scope, UpsampleOptions options) : Layer(std::move(scope)), options_(std::move(options)) {
  for (const double s : options_.scale)
    if (!(s > 0)) throw_invalid("Upsample", "scales must be positive; got " + digits(static_cast<float>(s)));
  if (options_.antialias && (options_.mode == Mode::nearest || options_.align_corners))
    throw_invalid("Upsample", "antialias is for the modes linear and cubic without align_corners");
}

array Upsample::operator()(const array& x) const {
  if (x.ndim() < 3)
    throw_invalid("Upsample", "the input must be [batch, space…, channels]; its shape is " + to_string(x.shape()));
  const size_t space = x.ndim() - 2;
  if (options_.scale.size() != 1 && options_.scale.size() != space)
    throw_invalid("Upsample", "one scale, or one for each of " + std::to_string(space) + " axes is needed; got " +
                                  std::to_string(options_.scale.size()));
  const bool floating_point = options_.mode == Mode::nearest || issubdtype(x.dtype(), inexact);
  array y = floating_point ? x : astype(x, float32);
  for (size_t k = 0; k < space; ++k)
    y = stretched(y, static_cast<int>(k) + 1, options_.scale[options_.scale.size() == 1 ? 0 : k], options_);
  return y;
}

std::string Upsample::describe() const {
  const char* modes[] = {"nearest", "linear", "cubic"};
  std::string scale;
  for (const double s : options_.scale) scale += (scale.empty() ? "" : ", ") + digits(static_cast<float>(s));
  return "Upsample(" + scale + ", " + modes[static_cast<int>(options_.mode)] +
         (options_.antialias ? ", antialias=true)" : ")");
}

}  // namespace weft::nn
