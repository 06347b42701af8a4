// Norms: layer, RMS, instance, group, batch. Statistics are float32 at least, results in the dtype of the input.
#include "weft/nn/norms.h"

#include "array/op_support.h"
#include "nn/support.h"
#include "weft/fast.h"
#include "weft/nn/init.h"

namespace weft::nn {

namespace {

array affine(array y, const std::optional<Parameter>& weight, const std::optional<Parameter>& bias) {
  if (weight) y = y * astype(*weight, y.dtype());
  return bias ? y + astype(*bias, y.dtype()) : y;
}

void start_affine(Module& module, std::optional<Parameter>& weight, std::optional<Parameter>& bias, int64_t channels) {
  weight.emplace(module, "weight", init::constant({channels}, 1));
  bias.emplace(module, "bias", init::constant({channels}, 0));
}

int64_t checked_channels(const char* op, int64_t channels) { return sizes(op, {channels})[0].bound(); }

float checked_eps(const char* op, float eps) {
  if (!(eps > 0)) throw_invalid(op, "eps must be positive; it is " + std::to_string(eps));
  return eps;
}

}  // namespace

LayerNorm::LayerNorm(Scope scope, int64_t width, LayerNormOptions options)
    : Layer(std::move(scope)), eps(checked_eps("LayerNorm", options.eps)),
      width_(checked_channels("LayerNorm", width)) {
  if (options.affine) weight.emplace(*this, "weight", init::constant({width}, 1));
  if (options.affine && options.bias) bias.emplace(*this, "bias", init::constant({width}, 0));
}

array LayerNorm::operator()(const array& x) const {
  check_float("LayerNorm", x, width_);
  const auto given = [](const std::optional<Parameter>& p) { return p ? std::optional<array>(*p) : std::nullopt; };
  // Weights that are wider than x are not rounded.
  return astype(fast::layer_norm(x, given(weight), given(bias), eps), x.dtype());
}

std::string LayerNorm::describe() const {
  return "LayerNorm(" + std::to_string(width_) +
         (weight ? ", bias=" + std::string(yes_or_no(bias.has_value())) : ", affine=false") + ")";
}

RMSNorm::RMSNorm(Scope scope, int64_t width, float epsilon)
    : Layer(std::move(scope)), weight(*this, "weight", init::constant(sizes("RMSNorm", {width}), 1)),
      eps(checked_eps("RMSNorm", epsilon)) {}

array RMSNorm::operator()(const array& x) const {
  check_float("RMSNorm", x, weight.value().shape(0));
  const array wide = astype(x, x.dtype() == float64 ? float64 : float32);
  const array y = wide * rsqrt(mean(square(wide), -1, true) + array(eps, wide.dtype()));
  return astype(y, x.dtype()) * astype(weight, x.dtype());
}

std::string RMSNorm::describe() const { return "RMSNorm(" + number(weight.value().shape(0)) + ")"; }

InstanceNorm::InstanceNorm(Scope scope, int64_t channels, InstanceNormOptions options)
    : Layer(std::move(scope)), channels_(checked_channels("InstanceNorm", channels)),
      eps_(checked_eps("InstanceNorm", options.eps)) {
  if (options.affine) start_affine(*this, weight, bias, channels);
}

array InstanceNorm::operator()(const array& x) const {
  check_float("InstanceNorm", x, channels_);
  if (x.ndim() < 3)
    throw_invalid("InstanceNorm",
                  "the input must be [batch, …, channels] with axes between; its shape is " + to_string(x.shape()));
  std::vector<int> axes;
  for (int k = 1; k + 1 < static_cast<int>(x.ndim()); ++k) axes.push_back(k);
  return affine(fast::standardize(x, axes, std::nullopt, std::nullopt, eps_)[0], weight, bias);
}

std::string InstanceNorm::describe() const {
  return "InstanceNorm(" + std::to_string(channels_) + ", affine=" + yes_or_no(weight.has_value()) + ")";
}

GroupNorm::GroupNorm(Scope scope, int64_t groups, int64_t channels, GroupNormOptions options)
    : Layer(std::move(scope)), groups_(checked_channels("GroupNorm", groups)),
      channels_(checked_channels("GroupNorm", channels)), options_(options) {
  checked_eps("GroupNorm", options.eps);
  if (channels % groups != 0)
    throw_invalid("GroupNorm", std::to_string(channels) + " channels cannot be divided into " + std::to_string(groups) +
                                   " groups of one size");
  if (options.affine) start_affine(*this, weight, bias, channels);
}

array GroupNorm::operator()(const array& x) const {
  check_float("GroupNorm", x, channels_);
  if (x.ndim() < 2)
    throw_invalid("GroupNorm", "the input must be [batch, …, channels]; its shape is " + to_string(x.shape()));
  const int64_t size = channels_ / groups_;
  Shape grouped = x.shape();
  grouped.back() = options_.pytorch_compatible ? groups_ : size;
  grouped.push_back(options_.pytorch_compatible ? size : groups_);
  const size_t group_axis = grouped.size() - (options_.pytorch_compatible ? 2 : 1);
  std::vector<int> axes;
  for (size_t k = 1; k < grouped.size(); ++k)
    if (k != group_axis) axes.push_back(static_cast<int>(k));
  const array y = fast::standardize(reshape(x, grouped), axes, std::nullopt, std::nullopt, options_.eps)[0];
  return affine(reshape(y, x.shape()), weight, bias);
}

std::string GroupNorm::describe() const {
  return "GroupNorm(" + std::to_string(groups_) + ", " + std::to_string(channels_) +
         ", affine=" + yes_or_no(weight.has_value()) +
         (options_.pytorch_compatible ? ", pytorch_compatible=true)" : ")");
}

BatchNorm::BatchNorm(Scope scope, int64_t channels, BatchNormOptions options)
    : Layer(std::move(scope)), channels_(checked_channels("BatchNorm", channels)), options_(options) {
  checked_eps("BatchNorm", options.eps);
  if (options.affine) start_affine(*this, weight, bias, channels);
  if (options.track_running_stats) {
    running_mean.emplace(*this, "running_mean", init::constant({channels}, 0), Parameter::Role::statistic);
    running_var.emplace(*this, "running_var", init::constant({channels}, 1), Parameter::Role::statistic);
  }
}

array BatchNorm::operator()(const array& x) const {
  check_float("BatchNorm", x, channels_);
  if (x.ndim() < 2)
    throw_invalid("BatchNorm", "the input must be [batch, …, channels]; its shape is " + to_string(x.shape()));
  const Dtype wide = x.dtype() == float64 ? float64 : float32;
  if (!training() && running_mean) {
    const array scale = rsqrt(astype(*running_var, wide) + array(options_.eps, wide));
    array y = (astype(x, wide) - astype(*running_mean, wide)) * scale;
    return astype(affine(y, weight, bias), x.dtype());
  }
  std::vector<int> axes;
  int64_t count = 1;
  for (size_t k = 0; k + 1 < x.ndim(); ++k) {
    axes.push_back(static_cast<int>(k));
    count *= x.shape()[k].bound();
  }
  if (training() && count == 1)
    throw_invalid("BatchNorm", "training needs more than one value for each channel; the shape of the input is " +
                                   to_string(x.shape()));
  const auto given = [](const std::optional<Parameter>& p) { return p ? std::optional<array>(*p) : std::nullopt; };
  const std::vector<array> normed = fast::standardize(x, axes, given(weight), given(bias), options_.eps);
  if (running_mean) {
    const double unbiased = static_cast<double>(count) / static_cast<double>(count - 1);
    const auto move = [&](Parameter& running, const array& fresh) {
      const array now = astype(reshape(stop_gradient(fresh), {channels_}), float32);
      running = running.value() * array(1 - options_.momentum) + now * array(options_.momentum);
    };
    const array &mean = normed[1], &variance = normed[2];
    move(*running_mean, mean);
    move(*running_var, variance * array(unbiased, variance.dtype()));
  }
  return normed[0];
}

std::string BatchNorm::describe() const {
  return "BatchNorm(" + std::to_string(channels_) + ", eps=" + digits(options_.eps) +
         ", momentum=" + digits(options_.momentum) + ", affine=" + yes_or_no(weight.has_value()) +
         ", track_running_stats=" + yes_or_no(running_mean.has_value()) + ")";
}

}  // namespace weft::nn
