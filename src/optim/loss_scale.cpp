// Loss scaling for float16.
#include "weft/optim/loss_scale.h"

#include "base/error.h"
#include "weft/ops.h"

namespace weft::optim {

namespace {

template <class T>
array scalar_array(T value, Dtype dtype) {
  return array::from_data(&value, {}, dtype);
}

LossScaleOptions checked_scale(LossScaleOptions o) {
  if (!(o.initial > 0 && o.growth >= 1 && o.backoff > 0 && o.backoff < 1 && o.interval >= 1 && o.largest >= o.initial))
    throw_invalid("LossScale",
                  "initial must be positive, growth at least 1, backoff between 0 and 1, interval at least 1, largest "
                  "at least initial");
  return o;
}

array all_finite(const std::vector<array>& gradients) {
  array all = isfinite(sum(square(gradients[0])));
  for (size_t i = 1; i < gradients.size(); ++i) all = logical_and(all, isfinite(sum(square(gradients[i]))));
  return all;
}

}  // namespace

LossScale::LossScale(LossScaleOptions options)
    : scale(scalar_array(checked_scale(options).initial, float32)), good(scalar_array(0, int32)),
      skipped(scalar_array(0, int32)), options_(options) {}

array LossScale::operator()(const array& loss) const {
  const array wide = loss.dtype() == float64 ? loss : astype(loss, float32);
  return wide * astype(scale, wide.dtype());
}

array LossScale::unscaled(const array& loss) const { return loss / astype(scale, loss.dtype()); }

array LossScale::step(Optimizer& optimizer, const std::vector<array>& scaled_gradients, std::optional<float> max_norm) {
  if (scaled_gradients.empty()) throw_invalid("LossScale.step", "there are no gradients");
  std::vector<array> gradients;
  // In float32: what was scaled up to fit float16 would underflow there again.
  for (const array& g : scaled_gradients) {
    const array wide = g.dtype() == float64 ? g : astype(g, float32);
    gradients.push_back(wide / astype(scale, wide.dtype()));
  }
  array finite = array(true);
  if (max_norm) {
    auto [clipped, norm] = clip_grad_norm(gradients, *max_norm);
    gradients = std::move(clipped);
    finite = isfinite(norm);
  } else {
    finite = all_finite(gradients);
  }
  optimizer.update(gradients, finite);

  const array grown = greater_equal(good + array(1, int32), array(options_.interval, int32));
  const array next = minimum(scale * array(options_.growth), array(options_.largest));
  scale = where(finite, where(grown, next, scale), scale * array(options_.backoff));
  good = where(logical_and(finite, logical_not(grown)), good + array(1, int32), array(0, int32));
  skipped = skipped + where(finite, array(0, int32), array(1, int32));
  return finite;
}

Parameters LossScale::named_state() {
  return {{"loss_scale.scale", &scale}, {"loss_scale.good", &good}, {"loss_scale.skipped", &skipped}};
}

void LossScale::load_state(const std::unordered_map<std::string, array>& arrays) {
  for (const auto& [name, handle] : named_state()) {
    const auto it = arrays.find(name);
    if (it == arrays.end()) throw_invalid("LossScale.load_state", "the state lacks " + name);
    if (it->second.shape() != handle->shape() || it->second.dtype() != handle->dtype())
      throw_invalid("LossScale.load_state", name + " is not a scalar " + dtype_name(handle->dtype()));
  }
  for (const auto& [name, handle] : named_state()) *handle = arrays.at(name);
}

}  // namespace weft::optim
