// weft/fast.h: rotary encoding, written as products and sums, so its derivative is the inverse rotation.
#include <cmath>

#include "array/op_support.h"
#include "base/error.h"
#include "weft/fast.h"
#include "weft/ops.h"

namespace weft::fast {
namespace {

using detail::describe;

void check_rope(const array& x, int dims, const std::optional<float>& base, const array& offset,
                const std::optional<array>& freqs) {
  if (x.ndim() < 3 || !is_float(x.dtype()))
    throw_invalid("rope", "a floating array (batch, …, time, width) is needed, got " + describe(x));
  if (dims <= 0 || dims % 2 != 0 || !x.shape().back().is_static() || dims > x.shape().back().bound())
    throw_invalid("rope", "what is rotated must be an even number of elements of the last axis, got " +
                              std::to_string(dims) + " of " + describe(x));
  if (base.has_value() == freqs.has_value()) throw_invalid("rope", "either a base or frequencies are needed");
  if (freqs && (freqs->ndim() != 1 || freqs->shape()[0] != dims / 2))
    throw_invalid(
        "rope", "one frequency for each of " + std::to_string(dims / 2) + " pairs is needed, got " + describe(*freqs));
  detail::require_integer("rope", "the offset", offset);
  const bool one = offset.ndim() <= 1 && num_elements(offset.shape()) == 1;
  if (!one && (offset.ndim() != 1 || !(offset.shape()[0] == x.shape()[0])))
    throw_invalid("rope", "the offset must be an integer, or one for each element of the batch, got " +
                              describe(offset) + " for " + describe(x));
}

/// Returns the angles [time, pairs], or [batch, 1 …, time, pairs] where each element of the batch has its own offset.
array angles(const array& x, int dims, const std::optional<float>& base, float scale, const array& offset,
             const std::optional<array>& freqs, Dtype t) {
  const Dim time = x.shape()[x.ndim() - 2];
  array position(graph::iota({time}, 0, t));
  if (num_elements(offset.shape()) == 1) {
    position = position + astype(reshape(offset, {1}), t);
  } else {
    Shape column(x.ndim() - 1, 1);
    column[0] = x.shape()[0];
    position = position + astype(reshape(offset, column), t);
  }
  if (freqs) return expand_dims(position * array(scale, t), -1) / astype(*freqs, t);
  std::vector<double> rates;
  for (int i = 0; i < dims / 2; ++i) rates.push_back(std::pow(static_cast<double>(*base), -2.0 * i / dims));
  return expand_dims(position * array(scale, t), -1) * astype(array(rates.begin(), {dims / 2}, float64), t);
}

}  // namespace

array rope(const array& x, int dims, bool traditional, std::optional<float> base, float scale, const array& offset,
           const std::optional<array>& freqs, StreamOrDevice s) {
  const detail::OnStream on_stream("rope", s);
  check_rope(x, dims, base, offset, freqs);
  const Dtype t = detail::accumulator(x.dtype());
  const array angle = angles(x, dims, base, scale, offset, freqs, t), c = cos(angle), d = sin(angle);
  const auto along = [&](const graph::Value& v, int64_t from, int64_t count) {
    return array(detail::to_dtype(graph::slice_axis(v, v.type().rank() - 1, from, count), t));
  };
  const int64_t width = x.shape().back().bound(), half = dims / 2;
  const graph::Value rotated = graph::slice_axis(x.value(), static_cast<int>(x.ndim()) - 1, 0, dims);
  std::vector<array> parts;
  if (traditional) {
    Shape pairs = rotated.shape();
    pairs.back() = half;
    pairs.push_back(2);
    const graph::Value v = graph::reshape(rotated, pairs);
    const array first = squeeze(along(v, 0, 1), -1), second = squeeze(along(v, 1, 1), -1);
    parts = {reshape(stack({first * c - second * d, first * d + second * c}, -1), rotated.shape())};
  } else {
    const array first = along(rotated, 0, half), second = along(rotated, half, half);
    parts = {first * c - second * d, first * d + second * c};
  }
  for (array& part : parts) part = astype(part, x.dtype());
  if (dims < width)
    parts.emplace_back(graph::slice_axis(x.value(), static_cast<int>(x.ndim()) - 1, dims, width - dims));
  return parts.size() == 1 ? parts[0] : concatenate(parts, -1);
}

array rope(const array& x, int dims, bool traditional, std::optional<float> base, float scale, int offset,
           const std::optional<array>& freqs, StreamOrDevice s) {
  return rope(x, dims, traditional, base, scale, array(offset), freqs, s);
}

}  // namespace weft::fast
