// Optimizers for shares of the parameters.
#include "base/error.h"
#include "weft/optim/optimizer.h"

namespace weft::optim {

MultiOptimizer::MultiOptimizer(Parameters all, const std::vector<Share>& shares) : Optimizer(0) {
  set_parameters(std::move(all));
  for (const Share& share : shares) shares_.push_back({share.takes, nullptr, {}});
  std::vector<Parameters> taken(shares.size());
  for (size_t i = 0; i < parameters().size(); ++i) {
    const auto& [name, handle] = parameters()[i];
    const size_t k = owner_of(name, *handle);
    taken[k].push_back(parameters()[i]);
    shares_[k].indices.push_back(i);
  }
  for (size_t k = 0; k < shares.size(); ++k) {
    if (taken[k].empty()) throw_invalid("MultiOptimizer", "share " + std::to_string(k) + " takes no parameter");
    shares_[k].optimizer = shares[k].make(std::move(taken[k]));
  }
  learning_rate = shares_.front().optimizer->learning_rate;
}

MultiOptimizer::MultiOptimizer(std::vector<std::shared_ptr<Optimizer>> optimizers, std::vector<DecayPredicate> filters)
    : Optimizer(0) {
  if (filters.size() + 1 != optimizers.size())
    throw_invalid("MultiOptimizer", std::to_string(optimizers.size()) + " optimizers take one filter less, not " +
                                        std::to_string(filters.size()));
  filters.emplace_back(every);
  for (size_t k = 0; k < optimizers.size(); ++k)
    shares_.push_back({std::move(filters[k]), std::move(optimizers[k]), {}});
  learning_rate = shares_.front().optimizer->learning_rate;
}

size_t MultiOptimizer::owner_of(const std::string& path, const array& parameter) const {
  for (size_t k = 0; k < shares_.size(); ++k)
    if (shares_[k].takes(path, parameter)) return k;
  throw_invalid("MultiOptimizer", "no share takes the parameter " + path + "; end with a share of optim::every");
}

/// Returns the tree with what the other shares own left empty.
Tree MultiOptimizer::part_of(const Tree& tree, size_t share) const {
  return tree_map_with_path(
      [&](const std::string& path, const std::vector<Tree>& at) {
        return owner_of(path, at[0]) == share ? at[0] : Tree();
      },
      {tree});
}

void MultiOptimizer::init(const Tree& parameters) {
  for (size_t k = 0; k < shares_.size(); ++k) shares_[k].optimizer->init(part_of(parameters, k));
}

Tree MultiOptimizer::apply_gradients(const Tree& gradients, const Tree& parameters) {
  begin_step();
  Tree updated;
  for (size_t k = 0; k < shares_.size(); ++k)
    updated = tree_merge(updated, shares_[k].optimizer->apply_gradients(part_of(gradients, k), parameters));
  learning_rate = shares_.front().optimizer->learning_rate;
  return updated;
}

Tree MultiOptimizer::state_tree() {
  Tree::List states;
  for (auto& part : shares_) states.push_back(part.optimizer->state_tree());
  return Tree::dict({{"states", Tree::list(std::move(states))}});
}

void MultiOptimizer::set_state(const Tree& state) {
  const Tree* states = state.find("states");
  if (!states || !states->is_list() || states->size() != shares_.size())
    throw_invalid("MultiOptimizer.set_state",
                  "the state must be {\"states\": […]} with " + std::to_string(shares_.size()) + " entries");
  for (size_t k = 0; k < shares_.size(); ++k) shares_[k].optimizer->set_state(states->at(k));
  learning_rate = shares_.front().optimizer->learning_rate;
  step = shares_.front().optimizer->step;
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
  learning_rate = shares_.front().optimizer->learning_rate;
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

}  // namespace weft::optim
