// The functional form of optimizers: parameters, gradients and state as trees. Each parameter's step is the one that
// the form with handles makes.
#include "base/error.h"
#include "weft/ops.h"
#include "weft/optim/optimizer.h"

namespace weft::optim {

namespace {

const char* const master_key = "master";
const char* const rounding_name = "rounding";

/// Returns the array of a state in the dtype of `like`; throws where it has another shape.
array fitting(const array& value, const array& like, const std::string& name) {
  if (value.shape() != like.shape())
    throw_invalid("Optimizer.set_state",
                  name + " is " + to_string(value.shape()) + " and should be " + to_string(like.shape()));
  return astype(value, like.dtype());
}

}  // namespace

void Optimizer::init(const Parameters& parameters) {
  Tree::Dict leaves;
  for (const auto& [name, handle] : parameters) leaves.emplace_back(name, *handle);
  const Tree tree = tree_unflatten(leaves);
  init(tree.is_dict() ? tree : Tree::dict(std::move(leaves)));
}

Tree Optimizer::init_single(const array&, const std::string&) {
  throw_invalid("Optimizer.init_single", "this optimizer has no rule of its own");
}

array Optimizer::apply_single(const array&, const array&, Tree&, const std::string&) {
  throw_invalid("Optimizer.apply_single", "this optimizer has no rule of its own");
}

size_t RuleOptimizer::index_of(const std::string& path) const {
  const auto it = indices_.find(path);
  if (it == indices_.end()) throw_out_of_range("Optimizer.apply_gradients", "there is no state of " + path);
  return it->second;
}

void RuleOptimizer::init(const Tree& parameters) {
  if (!parameters.is_dict()) throw_invalid("Optimizer.init", "the parameters must be a dict");
  for (const auto& [path, parameter] : tree_flatten(parameters))
    if (!indices_.contains(path)) {
      Entry entry = entry_of(path, parameter);
      load(entry, false);
      add(std::move(entry));
    }
  initialized_ = true;
}

Tree RuleOptimizer::apply_gradients(const Tree& gradients, const Tree& parameters) {
  const std::vector<Tree> both{gradients, parameters};
  const auto check = [](const std::string& path, const std::vector<Tree>& at) {
    if (at[0].leaf().shape() != at[1].leaf().shape())
      throw_invalid("Optimizer.apply_gradients", "the gradient of " + path + " has shape " +
                                                     to_string(at[0].leaf().shape()) + ", the parameter " +
                                                     to_string(at[1].leaf().shape()));
    return at[1];
  };
  const Tree values = tree_map_with_path(check, both);
  if (!initialized_) init(values);
  for (const auto& entry : tree_flatten(values)) index_of(entry.first);  // all are there before anything changes
  begin_step();
  advance();
  return tree_map_with_path(
      [&](const std::string& path, const std::vector<Tree>& at) -> Tree {
        return stepped_from(index_of(path), at[1], at[0]);
      },
      both);
}

/// Makes the step of one parameter from a value that the caller chose. The master counts where the value is its
/// rounding.
array RuleOptimizer::stepped_from(size_t index, const array& parameter, const array& gradient) {
  const std::optional<array>& master = entries_[index].master;
  const bool narrow = parameter.dtype() == float16 || parameter.dtype() == bfloat16;
  const array wide = narrow ? astype(parameter, float32) : parameter;
  const array value = master ? where(equal(astype(*master, parameter.dtype()), parameter), *master, wide) : wide;
  return stepped(index, value, gradient, parameter.dtype());
}

Tree RuleOptimizer::init_single(const array& parameter, const std::string& name) {
  const Entry entry = entry_of(name, parameter);
  Tree state = Tree::dict();
  for (size_t k = 0; k < entry.slots.size(); ++k) state[entry.names[k].key] = entry.slots[k];
  if (entry.master) state[master_key] = *entry.master;
  if (entry.rounding_key) state[rounding_name] = *entry.rounding_key;
  return state;
}

array RuleOptimizer::apply_single(const array& gradient, const array& parameter, Tree& state, const std::string& name) {
  Entry made = entry_of(name, parameter);
  for (size_t k = 0; k < made.slots.size(); ++k) made.slots[k] = state.at(made.names[k].key);
  if (made.master) made.master = state.at(master_key);
  if (made.rounding_key) made.rounding_key = state.at(rounding_name);
  struct Last {  // the entry is the last one meanwhile, for which `rule` is called
    std::deque<Entry>& entries;
    ~Last() { entries.pop_back(); }
  };
  entries_.push_back(std::move(made));
  const Last last{entries_};
  const array next = stepped_from(entries_.size() - 1, parameter, gradient);
  const Entry& entry = entries_.back();
  for (size_t k = 0; k < entry.slots.size(); ++k) state[entry.names[k].key] = entry.slots[k];
  if (entry.master) state[master_key] = *entry.master;
  return next;
}

Tree RuleOptimizer::state_tree() {
  Tree::Dict leaves{{"step", step}, {"learning_rate", learning_rate}};
  for (const auto& [name, value] : numbers_) leaves.emplace_back(name, value);
  for (const Entry& entry : entries_) {
    for (size_t k = 0; k < entry.slots.size(); ++k)
      leaves.emplace_back(entry.path + "." + entry.names[k].key, entry.slots[k]);
    if (entry.master) leaves.emplace_back(entry.path + "." + master_key, *entry.master);
    if (entry.rounding_key) leaves.emplace_back(entry.path + "." + rounding_name, *entry.rounding_key);
  }
  leaves.insert(leaves.end(), restored_.begin(), restored_.end());
  return tree_unflatten(leaves);
}

void RuleOptimizer::set_state(const Tree& state) {
  step = fitting(state.at("step"), step, "step");
  if (const Tree* rate = state.find("learning_rate")) learning_rate = fitting(*rate, learning_rate, "learning_rate");
  restored_ = tree_to_map(state);
  restored_.erase("step");
  restored_.erase("learning_rate");
  bool known = true;
  for (auto& [name, value] : numbers_) {
    const Tree* number = state.find(name);
    known = known && number;
    if (number) value = fitting(*number, value, name);
    restored_.erase(name);
  }
  if (!known) restore();
  for (Entry& entry : entries_) load(entry, true);
  initialized_ = false;
}

/// Takes an entry's arrays from the state that was set. Without any of them a new entry stays as it begins.
void RuleOptimizer::load(Entry& entry, bool required) {
  const std::string prefix = entry.path + ".";
  size_t found = 0;
  std::string missing;
  for (const SlotName& name : entry.names) {
    if (restored_.contains(prefix + name.key)) ++found;
    else missing = prefix + name.key;
  }
  if (!missing.empty() && (required || found > 0))
    throw_out_of_range("Optimizer.set_state", "the state lacks " + missing);
  const auto take_into = [&](array& value, const std::string& path) {
    const auto it = restored_.find(path);
    if (it == restored_.end()) return;
    value = fitting(it->second, value, path);
    restored_.erase(it);
  };
  for (size_t k = 0; k < entry.slots.size(); ++k) take_into(entry.slots[k], prefix + entry.names[k].key);
  if (entry.master) take_into(*entry.master, prefix + master_key);
  if (entry.rounding_key) take_into(*entry.rounding_key, prefix + rounding_name);
}

}  // namespace weft::optim
