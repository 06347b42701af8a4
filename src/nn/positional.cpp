// Positional encodings.
#include "weft/nn/positional.h"

#include <cmath>
#include <numbers>

#include "nn/support.h"
#include "weft/fast.h"

namespace weft::nn {

array RoPE::operator()(const array& x, int offset) const {
  return fast::rope(x, dims_, options_.traditional, options_.base, options_.scale, offset);
}
array RoPE::operator()(const array& x, const array& offset) const {
  return fast::rope(x, dims_, options_.traditional, options_.base, options_.scale, offset);
}
std::string RoPE::describe() const {
  return "RoPE(" + std::to_string(dims_) + ", traditional=" + yes_or_no(options_.traditional) + ")";
}

namespace {

array falling_frequencies(int dims, const SinusoidalOptions& options) {
  if (dims <= 0 || dims % 2 != 0)
    throw_invalid("SinusoidalPositionalEncoding", "the width must be positive and even; got " + std::to_string(dims));
  if (!(options.min_freq > 0) || !(options.max_freq > 0))
    throw_invalid("SinusoidalPositionalEncoding", "frequencies must be positive");
  const double low = std::log(static_cast<double>(options.min_freq)),
               high = std::log(static_cast<double>(options.max_freq));
  const int count = dims / 2;
  std::vector<float> all;
  for (int k = 0; k < count; ++k) {
    const double share = count == 1 ? 1 : 1 - static_cast<double>(k) / (count - 1);
    all.push_back(
        static_cast<float>(std::exp(share * (high - low) + low) * (options.full_turns ? 2 * std::numbers::pi : 1)));
  }
  return array::from_data(all.data(), {count}, float32);
}

}  // namespace

SinusoidalPositionalEncoding::SinusoidalPositionalEncoding(Scope scope, int dims, SinusoidalOptions options)
    : Layer(std::move(scope)), dims_(dims), options_(options), frequencies_(falling_frequencies(dims, options)) {}

array SinusoidalPositionalEncoding::operator()(const array& x) const {
  const array angle = expand_dims(x, -1) * frequencies_, sines = sin(angle), cosines = cos(angle);
  const float scale = options_.scale.value_or(std::sqrt(2.0f / static_cast<float>(dims_)));
  return concatenate(options_.cos_first ? std::vector<array>{cosines, sines} : std::vector<array>{sines, cosines}, -1) *
         array(scale, angle.dtype());
}

std::string SinusoidalPositionalEncoding::describe() const {
  return "SinusoidalPositionalEncoding(" + std::to_string(dims_) + ")";
}

std::vector<double> ALiBi::alibi_get_slopes(int num_heads) {
  if (num_heads < 1) throw_invalid("ALiBi", "there must be at least one head; got " + std::to_string(num_heads));
  int power = 1;
  while (2 * power <= num_heads) power *= 2;
  std::vector<double> slopes;
  for (int k = 1; k <= power; ++k) slopes.push_back(std::exp2(-8.0 * k / power));
  for (int k = 0; k < num_heads - power; ++k) slopes.push_back(std::exp2(-8.0 * (2 * k + 1) / (2 * power)));
  return slopes;
}

array ALiBi::create_alibi_slope(int num_heads, Dtype dtype) {
  const std::vector<double> slopes = alibi_get_slopes(num_heads);
  return astype(array(slopes.begin(), {num_heads, 1, 1}, float64), dtype);
}

array ALiBi::create_alibi_matrix(int q_sequence_length, int k_sequence_length, int num_heads, int offset, Dtype dtype) {
  const array from = expand_dims(arange(offset, q_sequence_length), 1),
              to = expand_dims(arange(0, k_sequence_length), 0);
  const array distance = expand_dims(astype(abs(from - to), float32), std::vector<int>{0, 1});
  return astype(-(distance * create_alibi_slope(num_heads, float32)), dtype);
}

array ALiBi::operator()(const array& attention_scores, int offset, const std::optional<array>& mask) const {
  const array& s = attention_scores;
  if (s.ndim() != 4 || !issubdtype(s.dtype(), floating))
    throw_invalid("ALiBi", "the scores must be floating, [batch, heads, queries, keys]; they are " +
                               to_string(s.shape()) + " " + dtype_name(s.dtype()));
  const auto size = [&](int axis) { return static_cast<int>(static_cast<int64_t>(s.shape(axis))); };
  const array penalty = create_alibi_matrix(size(2) + offset, size(3), size(1), offset, s.dtype());
  return s + (mask ? penalty + *mask : penalty);
}

}  // namespace weft::nn
