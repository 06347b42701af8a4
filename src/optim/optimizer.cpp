// What all optimizers share: handles, state by name, master copies, the learning rate as a buffer.
#include "weft/optim.h"

#include <algorithm>

#include "base/error.h"
#include "weft/ops.h"

namespace weft::optim {

namespace {

// Data rather than a literal: these are state, and state lies in buffers.
array scalar(float value) { return array::from_data(&value, {}, float32); }

bool needs_master(const array& p) { return p.dtype() == float16 || p.dtype() == bfloat16; }

}  // namespace

bool is_matrix(const std::string&, const array& parameter) { return parameter.ndim() >= 2; }

Optimizer::Optimizer(Parameters parameters, float rate, const std::vector<std::string>& slots, std::vector<std::pair<std::string, double>> numbers,
                     double weight_decay, const DecayPredicate& decays)
    : learning_rate(scalar(rate)), step(array::from_data(std::vector<int32_t>{0}.data(), {}, int32)), parameters_(std::move(parameters)),
      slot_names_(slots), decay_(scalar(static_cast<float>(weight_decay))), no_decay_(scalar(0)) {
  if (parameters_.empty()) throw_invalid("Optimizer", "there are no parameters to optimize (all frozen?)");
  for (const auto& [name, value] : numbers) numbers_.emplace_back(name, scalar(static_cast<float>(value)));
  for (const auto& [name, handle] : parameters_) {
    if (!issubdtype(handle->dtype(), floating))
      throw_invalid("Optimizer", "parameter " + name + " is " + dtype_name(handle->dtype()) + "; only floating parameters can be optimized");
    const Dtype dtype = needs_master(*handle) ? float32 : handle->dtype();
    Entry entry{{}, std::nullopt, decays(name, *handle)};
    for (size_t k = 0; k < slots.size(); ++k) entry.slots.push_back(zeros(handle->shape(), dtype));
    if (needs_master(*handle)) entry.master = astype(*handle, float32);
    entries_.push_back(std::move(entry));
  }
}

Optimizer::~Optimizer() = default;

void Optimizer::set_learning_rate(float value) { learning_rate = scalar(value); }

void Optimizer::update(const std::vector<array>& gradients) {
  if (gradients.size() != parameters_.size())
    throw_invalid("Optimizer.update", std::to_string(gradients.size()) + " gradients for " + std::to_string(parameters_.size()) + " parameters");
  for (size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].shape() != parameters_[i].second->shape())
      throw_invalid("Optimizer.update", "the gradient of " + parameters_[i].first + " has shape " + to_string(gradients[i].shape()) + ", the parameter " +
                                            to_string(parameters_[i].second->shape()));
  step = step + array(1, int32);
  advance();
  for (size_t i = 0; i < gradients.size(); ++i) {
    array& parameter = *parameters_[i].second;
    Entry& entry = entries_[i];
    const array value = entry.master ? *entry.master : parameter;
    const array next = rule(i, value, astype(gradients[i], value.dtype()), entry.slots);
    if (entry.master) entry.master = next;
    parameter = astype(next, parameter.dtype());
  }
}

std::vector<array*> Optimizer::state() {
  std::vector<array*> out{&learning_rate, &step, &decay_, &no_decay_};
  for (auto& n : numbers_) out.push_back(&n.second);
  for (auto& entry : entries_) {
    for (auto& slot : entry.slots) out.push_back(&slot);
    if (entry.master) out.push_back(&*entry.master);
  }
  return out;
}

Parameters Optimizer::named_state() {
  Parameters out{{"learning_rate", &learning_rate}, {"step", &step}};
  for (auto& [name, value] : numbers_) out.emplace_back(name, &value);
  for (size_t i = 0; i < entries_.size(); ++i) {
    for (size_t k = 0; k < slot_names_.size(); ++k) out.emplace_back(slot_names_[k] + "." + parameters_[i].first, &entries_[i].slots[k]);
    if (entries_[i].master) out.emplace_back("master." + parameters_[i].first, &*entries_[i].master);
  }
  return out;
}

void Optimizer::load_state(const std::unordered_map<std::string, array>& arrays) {
  const Parameters mine = named_state();
  for (const auto& [name, handle] : mine) {
    const auto it = arrays.find(name);
    if (it == arrays.end()) throw_invalid("Optimizer.load_state", "the state lacks " + name);
    if (it->second.shape() != handle->shape() || it->second.dtype() != handle->dtype())
      throw_invalid("Optimizer.load_state", name + " is " + to_string(it->second.shape()) + " " + dtype_name(it->second.dtype()) + " and should be " +
                                                to_string(handle->shape()) + " " + dtype_name(handle->dtype()));
  }
  for (const auto& entry : arrays)
    if (std::none_of(mine.begin(), mine.end(), [&](const auto& m) { return m.first == entry.first; }))
      throw_invalid("Optimizer.load_state", entry.first + " is not part of this optimizer's state");
  for (const auto& [name, handle] : mine) *handle = arrays.at(name);
}

std::pair<std::vector<array>, array> clip_grad_norm(const std::vector<array>& gradients, float max_norm) {
  if (gradients.empty()) throw_invalid("clip_grad_norm", "there are no gradients");
  if (!(max_norm > 0)) throw_invalid("clip_grad_norm", "max_norm must be positive; it is " + std::to_string(max_norm));
  array total = sum(square(astype(gradients[0], float32)));
  for (size_t i = 1; i < gradients.size(); ++i) total = total + sum(square(astype(gradients[i], float32)));
  const array norm = sqrt(total);
  const array factor = minimum(array(max_norm) / (norm + array(1e-6f)), array(1.0f));
  std::vector<array> clipped;
  for (const auto& g : gradients) clipped.push_back(g * astype(factor, g.dtype()));
  return {std::move(clipped), norm};
}

}  // namespace weft::optim
