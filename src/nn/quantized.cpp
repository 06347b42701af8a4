// Layers whose matrices are codes of a few bits.
#include "weft/nn/quantized.h"

#include "nn/support.h"
#include "weft/nn/layers.h"

namespace weft::nn {

QuantizedWeight::QuantizedWeight(Module& layer, Parameter& weight, const Quantization& way)
    : QuantizedWeight(layer, weight, way, weft::quantize(weight, way.group_size, way.bits, way.mode)) {}

QuantizedWeight::QuantizedWeight(Module& layer, Parameter& weight, const Quantization& way, std::vector<array> made)
    : how(way), scales(layer, "scales", made[1], Parameter::Role::statistic), codes_(&weight),
      dtype_(weight.value().dtype()) {
  if (made.size() > 2) biases.emplace(layer, "biases", made[2], Parameter::Role::statistic);
  const int64_t width = weight.value().shape(1).bound();
  how.group_size = static_cast<int>(width / made[1].shape(1).bound());
  how.bits = static_cast<int>(made[0].shape(1).bound() * 32 / width);
  weight.become(made[0], Parameter::Role::statistic);
}

int64_t QuantizedWeight::width() const { return codes_->value().shape(1).bound() * 32 / *how.bits; }

array QuantizedWeight::times(const array& x) const {
  if (how.input) return qqmm(x, *codes_, scales, how.group_size, how.bits, how.mode);
  const array scale = biases ? astype(scales, x.dtype()) : scales.value();
  return quantized_matmul(x, *codes_, scale, in_dtype_of(x, biases), true, how.group_size, how.bits, how.mode);
}

array QuantizedWeight::rows(const array& ids) const {
  const array flat = reshape(ids, {-1});
  const auto of = [&](const array& a) { return take(a, flat, 0); };
  const array out = dequantize(of(*codes_), of(scales), biases ? std::optional(of(*biases)) : std::nullopt,
                               how.group_size, how.bits, how.mode, std::nullopt, dtype_);
  Shape shape = ids.shape();
  shape.push_back(width());
  return reshape(out, shape);
}

std::string QuantizedWeight::describe() const {
  return ", group_size=" + std::to_string(*how.group_size) + ", bits=" + std::to_string(*how.bits) +
         ", mode=" + how.mode + (how.input ? ", input=true" : "");
}

void quantize(Module& module, const Quantization& how,
              const std::function<bool(const std::string&, const Module&)>& wanted) {
  std::vector<std::function<void()>> changes;
  for (auto& [name, part] : module.named_modules()) {
    auto* const linear = dynamic_cast<Linear*>(part);
    auto* const embedding = dynamic_cast<Embedding*>(part);
    if ((!linear && !embedding) || (wanted && !wanted(name, *part))) continue;
    try {
      if (linear) linear->check_quantization(how), changes.emplace_back([=, &how] { linear->quantize(how); });
      else embedding->check_quantization(how), changes.emplace_back([=, &how] { embedding->quantize(how); });
    } catch (const std::invalid_argument& e) {
      throw_invalid("nn::quantize", (name.empty() ? "" : name + ", ") + part->describe() + ": " + e.what());
    }
  }
  for (const auto& change : changes) change();
}

}  // namespace weft::nn
