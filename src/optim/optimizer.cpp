// The base of optimizers: handles, state by name, master copies, the learning rate as a buffer.
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

void check_floating(const std::string& name, const array& p) {
  if (!issubdtype(p.dtype(), floating))
    throw_invalid("Optimizer",
                  "parameter " + name + " is " + dtype_name(p.dtype()) + "; only floating parameters can be optimized");
}

}  // namespace

bool is_matrix(const std::string&, const array& parameter) { return parameter.ndim() >= 2; }
bool every(const std::string&, const array&) { return true; }

Optimizer::Optimizer(const LearningRate& rate)
    : learning_rate(scalar(rate.value())), step(array::from_data(std::vector<int32_t>{0}.data(), {}, int32)),
      schedule_(rate.schedule()) {}

void Optimizer::set_parameters(Parameters parameters) {
  if (parameters.empty()) throw_invalid("Optimizer", "there are no parameters to optimize (all frozen?)");
  for (const auto& [name, handle] : parameters) check_floating(name, *handle);
  parameters_ = std::move(parameters);
}

Optimizer::~Optimizer() = default;

void Optimizer::set_learning_rate(float value) { learning_rate = scalar(value); }

void Optimizer::begin_step() {
  if (schedule_) learning_rate = astype((*schedule_)(step), float32);
  step = step + array(1, int32);
}

void Optimizer::update(const std::vector<array>& gradients) {
  if (parameters_.empty())
    throw_invalid("Optimizer.update", "the optimizer was made without handles of parameters; call apply_gradients");
  if (gradients.size() != parameters_.size())
    throw_invalid("Optimizer.update", std::to_string(gradients.size()) + " gradients for " +
                                          std::to_string(parameters_.size()) + " parameters");
  for (size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].shape() != parameters_[i].second->shape())
      throw_invalid("Optimizer.update", "the gradient of " + parameters_[i].first + " has shape " +
                                            to_string(gradients[i].shape()) + ", the parameter " +
                                            to_string(parameters_[i].second->shape()));
  begin_step();
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

RuleOptimizer::Slots RuleOptimizer::alike(std::vector<SlotName> names, double start) {
  return [names = std::move(names), start](const Shape& parameter) {
    std::vector<Slot> slots;
    for (const auto& name : names) slots.push_back({name, parameter, start});
    return slots;
  };
}

RuleOptimizer::RuleOptimizer(const LearningRate& rate, Slots slots,
                             const std::vector<std::pair<std::string, double>>& numbers, double weight_decay,
                             DecayPredicate decays)
    : Optimizer(rate), slots_(std::move(slots)), decays_(std::move(decays)),
      decay_(scalar(static_cast<float>(weight_decay))), no_decay_(scalar(0)) {
  for (const auto& [name, value] : numbers) numbers_.emplace_back(name, scalar(static_cast<float>(value)));
}

void RuleOptimizer::take(Handles handles) {
  set_parameters(std::move(handles.parameters));
  for (const auto& [name, handle] : parameters()) add(entry_of(name, *handle));
  initialized_ = true;
}

RuleOptimizer::Entry RuleOptimizer::entry_of(const std::string& path, const array& parameter) const {
  check_floating(path, parameter);
  const Dtype dtype = needs_master(parameter) ? float32 : parameter.dtype();
  Entry entry{path, {}, {}, std::nullopt, std::nullopt, decays_(path, parameter)};
  for (const Slot& slot : slots_(parameter.shape())) {
    entry.names.push_back(slot.name);
    entry.slots.push_back(full(slot.shape, array(slot.start, dtype), dtype));
  }
  if (!needs_master(parameter)) return entry;
  if (rounding_ == Rounding::stochastic && parameter.dtype() == float16)
    throw_invalid("Optimizer.set_rounding", "parameter " + path + " is float16; stochastic rounding is for bfloat16");
  if (rounding_ == Rounding::master) entry.master = astype(parameter, float32);
  if (rounding_ == Rounding::stochastic) entry.rounding_key = rounding_key(seed_, entries_.size());
  return entry;
}

void RuleOptimizer::add(Entry entry) {
  indices_.emplace(entry.path, entries_.size());
  entries_.push_back(std::move(entry));
}

array RuleOptimizer::stepped(size_t index, const array& value, const array& gradient, Dtype dtype) {
  Entry& entry = entries_[index];
  const array next = rule(index, value, astype(gradient, value.dtype()), entry.slots);
  if (entry.master) entry.master = next;
  return entry.rounding_key ? round_stochastically(next, *entry.rounding_key, step) : astype(next, dtype);
}

void RuleOptimizer::apply(const std::vector<array>& gradients) {
  advance();
  for (size_t i = 0; i < gradients.size(); ++i) {
    array& parameter = *parameters()[i].second;
    const std::optional<array>& master = entries_[i].master;
    const array value = master ? *master : needs_master(parameter) ? astype(parameter, float32) : parameter;
    parameter = stepped(i, value, gradients[i], parameter.dtype());
  }
}

void RuleOptimizer::set_rounding(Rounding rounding, uint64_t seed) {
  if (entries_.size() != parameters().size())
    throw_invalid("Optimizer.set_rounding", "there is state of parameters without handles; call it before init");
  if (rounding == Rounding::stochastic)
    for (const auto& [name, handle] : parameters())
      if (handle->dtype() == float16)
        throw_invalid("Optimizer.set_rounding",
                      "parameter " + name + " is float16; stochastic rounding is for bfloat16");
  rounding_ = rounding;
  seed_ = seed;
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
  for (size_t i = 0; i < parameters().size(); ++i) {
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
  for (const Entry& entry : entries_)
    if (entry.master) out.insert_or_assign(entry.path, *entry.master);
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
  for (Entry& entry : entries_) {
    for (size_t k = 0; k < entry.slots.size(); ++k)
      out.emplace_back(entry.names[k].name + "." + entry.path, &entry.slots[k]);
    if (entry.master) out.emplace_back("master." + entry.path, &*entry.master);
    if (entry.rounding_key) out.emplace_back("rounding." + entry.path, &*entry.rounding_key);
  }
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
