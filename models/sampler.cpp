// Draws tokens from logits, on the host in double precision.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "models/decoder.h"
#include "weft/data.h"

namespace weft::models {

Sampler::Sampler(SamplerOptions options) : options_(options) {
  if (!(options_.temperature >= 0) || std::isinf(options_.temperature))
    throw_invalid("Sampler", "temperature must be 0 or positive; it is " + std::to_string(options_.temperature));
  if (options_.top_k < 0)
    throw_invalid("Sampler", "top_k must be 0 (all) or positive; it is " + std::to_string(options_.top_k));
  if (!(options_.top_p > 0 && options_.top_p <= 1))
    throw_invalid("Sampler", "top_p must be more than 0 and at most 1; it is " + std::to_string(options_.top_p));
}

int32_t Sampler::operator()(std::span<const float> logits) {
  if (logits.empty()) throw_invalid("Sampler", "there are no logits");
  if (std::any_of(logits.begin(), logits.end(), [](float l) { return std::isnan(l); }))
    throw_invalid("Sampler", "the logits hold NaN: the model's weights are damaged or have diverged");
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto more_likely = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  if (options_.temperature == 0) return *std::min_element(ids.begin(), ids.end(), more_likely);

  const bool all = options_.top_k == 0 || static_cast<size_t>(options_.top_k) >= ids.size();
  const size_t count = all ? ids.size() : static_cast<size_t>(options_.top_k);
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end(), more_likely);
  ids.resize(count);

  const double top = logits[static_cast<size_t>(ids[0])];
  std::vector<double> weights;
  for (const int32_t id : ids) {
    const double distance = logits[static_cast<size_t>(id)] - top;
    weights.push_back(
        distance == 0 || std::isnan(distance) ? 1 : std::exp(distance / options_.temperature));  // NaN: both infinite
  }
  double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (options_.top_p < 1) {
    const double enough = total * options_.top_p;
    double sum = 0;
    size_t kept = 0;
    while (kept < weights.size() && sum < enough) sum += weights[kept++];
    weights.resize(kept);
    total = sum;
  }
  double rest = data::CounterRandom(options_.seed).uniform(draws_++) * total;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (rest < weights[i]) return ids[i];
    rest -= weights[i];
  }
  // Rounding left nothing of the total: take the last token with a weight.
  size_t last = weights.size() - 1;
  while (last > 0 && weights[last] == 0) --last;
  return ids[last];
}

}  // namespace weft::models
