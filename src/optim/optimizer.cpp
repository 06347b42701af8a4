// The base of optimizers: handles, state by name, master copies, the learning rate as a buffer; and optimizers for
// shares of the parameters.
#include "weft/optim.h"

#include <algorithm>

#include "base/error.h"
#include "optim/rounding.h"
#include "weft/ops.h"

namespace weft::optim {

namespace {

// Makes data, not a constant: it is state, and state needs a buffer.
array scalar(float value) { return array::from_data(&value, {}, float32); }

bool needs_master(const array& p) { return p.dtype() == float16 || p.dtype() == bfloat16; }

}  // namespace

bool is_matrix(const std::string&, const array& parameter) { return parameter.ndim() >= 2; }
bool every(const std::string&, const array&) { return true; }

Optimizer::Optimizer(Parameters parameters, float rate)
    : learning_rate(scalar(rate)), step(array::from_data(std::vector<int32_t>{0}.data(), {}, int32)),
      parameters_(std::move(parameters)) {
  if (parameters_.empty()) throw_invalid("Optimizer", "there are no parameters to optimize (all frozen?)");
  for (const auto& [name, handle] : parameters_)
    if (!issubdtype(handle->dtype(), floating))
      throw_invalid("Optimizer", "parameter " + name + " is " + dtype_name(handle->dtype()) +
                                     "; only floating parameters can be optimized");
}

Optimizer::~Optimizer() = default;

void Optimizer::set_learning_rate(float value) { learning_rate = scalar(value); }

void Optimizer::update(const std::vector<array>& gradients) {
  if (gradients.size() != parameters_.size())
    throw_invalid("Optimizer.update", std::to_string(gradients.size()) + " gradients for " +
                                          std::to_string(parameters_.size()) + " parameters");
  for (size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].shape() != parameters_[i].second->shape())
      throw_invalid("Optimizer.update", "the gradient of " + parameters_[i].first + " has shape " +
                                            to_string(gradients[i].shape()) + ", the parameter " +
                                            to_string(parameters_[i].second->shape()));
  step = step + array(1, int32);
  apply(gradients);
}

void Optimizer::update(const std::vector<array>& gradients, const array& when) {
  std::vector<array*> handles = state();
  for (const auto& [name, handle] : parameters_) handles.push_back(handle);
  std::vector<array> before;
  for (const array* handle : handles) before.push_back(*handle);
  update(gradients);
  for (size_t i = 0; i < handles.size(); ++i) *handles[i] = where(when, *handles[i], before[i]);
}

std::unordered_map<std::string, array> Optimizer::precise_parameters() const {
  std::unordered_map<std::string, array> out;
  for (const auto& [name, handle] : parameters_) out.emplace(name, *handle);
  return out;
}

std::vector<array*> Optimizer::state() { return {&learning_rate, &step}; }
Parameters Optimizer::named_state() { return {{"learning_rate", &learning_rate}, {"step", &step}}; }

void Optimizer::load_state(const std::unordered_map<std::string, array>& arrays) {
  const Parameters mine = named_state();
  for (const auto& [name, handle] : mine) {
    const auto it = arrays.find(name);
    if (it == arrays.end()) throw_invalid("Optimizer.load_state", "the state lacks " + name);
    if (it->second.shape() != handle->shape() || it->second.dtype() != handle->dtype())
      throw_invalid("Optimizer.load_state", name + " is " + to_string(it->second.shape()) + " " +
                                                dtype_name(it->second.dtype()) + " and should be " +
                                                to_string(handle->shape()) + " " + dtype_name(handle->dtype()));
  }
  for (const auto& entry : arrays)
    if (std::none_of(mine.begin(), mine.end(), [&](const auto& m) { return m.first == entry.first; }))
      throw_invalid("Optimizer.load_state", entry.first + " is not part of this optimizer's state");
  for (const auto& [name, handle] : mine) *handle = arrays.at(name);
}

RuleOptimizer::Slots RuleOptimizer::alike(std::vector<std::string> names, double start) {
  return [names = std::move(names), start](const Shape& parameter) {
    std::vector<Slot> slots;
    for (const auto& name : names) slots.push_back({name, parameter, start});
    return slots;
  };
}

RuleOptimizer::RuleOptimizer(Parameters all, float rate, const Slots& slots,
                             std::vector<std::pair<std::string, double>> numbers, double weight_decay,
                             const DecayPredicate& decays)
    : Optimizer(std::move(all), rate), decay_(scalar(static_cast<float>(weight_decay))), no_decay_(scalar(0)) {
  for (const auto& [name, value] : numbers) numbers_.emplace_back(name, scalar(static_cast<float>(value)));
  for (const auto& [name, handle] : parameters()) {
    const Dtype dtype = needs_master(*handle) ? float32 : handle->dtype();
    Entry entry{{}, {}, std::nullopt, std::nullopt, decays(name, *handle)};
    for (const Slot& slot : slots(handle->shape())) {
      entry.slot_names.push_back(slot.name);
      entry.slots.push_back(full(slot.shape, array(slot.start, dtype), dtype));
    }
    if (needs_master(*handle)) entry.master = astype(*handle, float32);
    entries_.push_back(std::move(entry));
  }
}

void RuleOptimizer::apply(const std::vector<array>& gradients) {
  advance();
  for (size_t i = 0; i < gradients.size(); ++i) {
    array& parameter = *parameters()[i].second;
    Entry& entry = entries_[i];
    const array value = entry.master ? *entry.master : needs_master(parameter) ? astype(parameter, float32) : parameter;
    const array next = rule(i, value, astype(gradients[i], value.dtype()), entry.slots);
    if (entry.master) entry.master = next;
    parameter =
        entry.rounding_key ? round_stochastically(next, *entry.rounding_key, step) : astype(next, parameter.dtype());
  }
}

void RuleOptimizer::set_rounding(Rounding rounding, uint64_t seed) {
  if (rounding == Rounding::stochastic)
    for (const auto& [name, handle] : parameters())
      if (handle->dtype() == float16)
        throw_invalid("Optimizer.set_rounding",
                      "parameter " + name + " is float16; stochastic rounding is for bfloat16");
  for (size_t i = 0; i < entries_.size(); ++i) {
    const array& parameter = *parameters()[i].second;
    if (!needs_master(parameter)) continue;
    Entry& entry = entries_[i];
    entry.master.reset();
    entry.rounding_key.reset();
    if (rounding == Rounding::master) entry.master = astype(parameter, float32);
    if (rounding == Rounding::stochastic) entry.rounding_key = rounding_key(seed, i);
  }
}

void RuleOptimizer::set_masters(const std::unordered_map<std::string, array>& values) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    const auto& [name, handle] = parameters()[i];
    const auto it = values.find(name);
    if (it == values.end() || !entries_[i].master) continue;
    if (it->second.shape() != handle->shape())
      throw_invalid("Optimizer.set_masters",
                    name + " is " + to_string(it->second.shape()) + " and should be " + to_string(handle->shape()));
    const array value = astype(it->second, float32);
    entries_[i].master = where(equal(astype(value, handle->dtype()), *handle), value, *entries_[i].master);
  }
}

std::unordered_map<std::string, array> RuleOptimizer::precise_parameters() const {
  std::unordered_map<std::string, array> out = Optimizer::precise_parameters();
  for (size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].master) out.insert_or_assign(parameters()[i].first, *entries_[i].master);
  return out;
}

array RuleOptimizer::rate(const array& value) const { return astype(learning_rate, value.dtype()); }

array RuleOptimizer::decayed(size_t index, const array& value, const array& gradient, double amount) const {
  return amount != 0 ? gradient + value * astype(decay(index), value.dtype()) : gradient;
}

std::vector<array*> RuleOptimizer::state() {
  std::vector<array*> out{&learning_rate, &step, &decay_, &no_decay_};
  for (auto& n : numbers_) out.push_back(&n.second);
  for (auto& entry : entries_) {
    for (auto& slot : entry.slots) out.push_back(&slot);
    if (entry.master) out.push_back(&*entry.master);
    if (entry.rounding_key) out.push_back(&*entry.rounding_key);
  }
  return out;
}

Parameters RuleOptimizer::named_state() {
  Parameters out = Optimizer::named_state();
  for (auto& [name, value] : numbers_) out.emplace_back(name, &value);
  for (size_t i = 0; i < entries_.size(); ++i) {
    const std::string& parameter = parameters()[i].first;
    for (size_t k = 0; k < entries_[i].slots.size(); ++k)
      out.emplace_back(entries_[i].slot_names[k] + "." + parameter, &entries_[i].slots[k]);
    if (entries_[i].master) out.emplace_back("master." + parameter, &*entries_[i].master);
    if (entries_[i].rounding_key) out.emplace_back("rounding." + parameter, &*entries_[i].rounding_key);
  }
  return out;
}

MultiOptimizer::MultiOptimizer(Parameters all, const std::vector<Share>& shares) : Optimizer(std::move(all), 0) {
  std::vector<Parameters> taken(shares.size());
  shares_.resize(shares.size());
  for (size_t i = 0; i < parameters().size(); ++i) {
    const auto& [name, handle] = parameters()[i];
    size_t k = 0;
    while (k < shares.size() && !shares[k].takes(name, *handle)) ++k;
    if (k == shares.size())
      throw_invalid("MultiOptimizer", "no share takes the parameter " + name + "; end with a share of optim::every");
    taken[k].push_back(parameters()[i]);
    shares_[k].indices.push_back(i);
  }
  for (size_t k = 0; k < shares.size(); ++k) {
    if (taken[k].empty()) throw_invalid("MultiOptimizer", "share " + std::to_string(k) + " takes no parameter");
    shares_[k].optimizer = shares[k].make(std::move(taken[k]));
  }
  learning_rate = shares_.front().optimizer->learning_rate;
}

void MultiOptimizer::set_learning_rate(float value) {
  Optimizer::set_learning_rate(value);
  for (auto& part : shares_) part.optimizer->set_learning_rate(value);
}

void MultiOptimizer::apply(const std::vector<array>& gradients) {
  for (auto& part : shares_) {
    std::vector<array> own;
    for (const size_t i : part.indices) own.push_back(gradients[i]);
    part.optimizer->update(own);
  }
}

std::vector<array*> MultiOptimizer::state() {
  std::vector<array*> out = Optimizer::state();
  for (auto& part : shares_)
    for (array* handle : part.optimizer->state()) out.push_back(handle);
  return out;
}

Parameters MultiOptimizer::named_state() {
  Parameters out = Optimizer::named_state();
  for (size_t k = 0; k < shares_.size(); ++k)
    for (const auto& [name, handle] : shares_[k].optimizer->named_state())
      out.emplace_back(std::to_string(k) + "." + name, handle);
  return out;
}

void MultiOptimizer::set_rounding(Rounding rounding, uint64_t seed) {
  for (size_t k = 0; k < shares_.size(); ++k) shares_[k].optimizer->set_rounding(rounding, seed + k);
}

void MultiOptimizer::set_masters(const std::unordered_map<std::string, array>& values) {
  for (auto& part : shares_) part.optimizer->set_masters(values);
}

std::unordered_map<std::string, array> MultiOptimizer::precise_parameters() const {
  std::unordered_map<std::string, array> out;
  for (const auto& part : shares_) out.merge(part.optimizer->precise_parameters());
  return out;
}

std::pair<std::vector<array>, array> clip_grad_norm(const std::vector<array>& gradients, float max_norm) {
  if (gradients.empty()) throw_invalid("clip_grad_norm", "there are no gradients");
  if (!(max_norm >= 0))
    throw_invalid("clip_grad_norm", "max_norm must not be negative; it is " + std::to_string(max_norm));
  array total = sum(square(astype(gradients[0], float32)));
  for (size_t i = 1; i < gradients.size(); ++i) total = total + sum(square(astype(gradients[i], float32)));
  const array norm = sqrt(total);
  const array factor = minimum(array(max_norm) / (norm + array(1e-6f)), array(1.0f));
  std::vector<array> clipped;
  for (const auto& g : gradients) clipped.push_back(g * astype(factor, g.dtype()));
  return {std::move(clipped), norm};
}

}  // namespace weft::optim
