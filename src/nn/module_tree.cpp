// Parameters of modules as trees, functions on all of them, parts that are replaced, parameters that are frozen.
#include <algorithm>

#include "base/error.h"
#include "weft/nn/module.h"

namespace weft::nn {

namespace {

/// Returns whether the names are "0", "1", …, as those of a list.
bool are_indices(const std::vector<std::pair<std::string, Item>>& items) {
  size_t next = 0;
  return !items.empty() && std::all_of(items.begin(), items.end(),
                                       [&](const auto& item) { return item.first == std::to_string(next++); });
}

Tree mapped(const Module& module, const ItemFilter& filter, const std::function<Tree(const Item&)>& map,
            const ItemFilter& is_leaf) {
  const auto items = module.items();
  const bool is_list = are_indices(items);
  Tree out = is_list ? Tree::list() : Tree::dict();
  for (const auto& [name, item] : items) {
    const bool wanted = filter(module, name, item);
    if (!wanted && !is_list) continue;
    Tree entry = Tree::dict();  // what a list lacks
    if (wanted) entry = is_leaf(module, name, item) ? map(item) : mapped(*item.module, filter, map, is_leaf);
    if (is_list) out.push_back(std::move(entry));
    else out[name] = std::move(entry);
  }
  return out;
}

using Changes = std::vector<std::pair<Parameter*, array>>;

/// Enters the parameters that a tree has values for; `path` is that of the module.
void collect_changes(const Module& module, const Tree& values, const std::string& path, bool strict, Changes& out) {
  const auto items = module.items();
  const auto visit = [&](const std::string& name, const Tree& value) {
    const std::string at = path.empty() ? name : path + "." + name;
    const auto it = std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.first == name; });
    const bool found = it != items.end();
    if (found && it->second.module) collect_changes(*it->second.module, value, at, strict, out);
    else if (found && value.is_leaf()) out.emplace_back(it->second.parameter, value.leaf());
    else if (strict && (!found || value.size() > 0))
      throw_invalid("Module.update",
                    found ? "the value of " + at + " is no array" : "the module does not have a parameter named " + at);
  };
  if (values.is_leaf()) {
    if (strict) throw_invalid("Module.update", (path.empty() ? "the value" : "the value of " + path) + " is an array");
  } else if (values.is_list()) {
    for (size_t i = 0; i < values.size(); ++i) visit(std::to_string(i), values.at(i));
  } else {
    for (const auto& [name, value] : values.items()) visit(name, value);
  }
}

}  // namespace

std::vector<std::pair<std::string, Item>> Module::items() const {
  std::vector<std::pair<std::string, Item>> out;
  for (const auto& [name, slot] : slots_) out.emplace_back(name, Item{slot.parameter, slot.module});
  return out;
}

bool Module::valid_child_filter(const Module&, const std::string&, const Item& item) { return item.is_module(); }

bool Module::valid_parameter_filter(const Module&, const std::string&, const Item&) { return true; }

bool Module::trainable_parameter_filter(const Module&, const std::string&, const Item& item) {
  return item.is_module() || item.parameter->trainable;
}

Tree Module::filter_and_map(const ItemFilter& filter, const std::function<Tree(const Item&)>& map,
                            const ItemFilter& is_leaf) {
  const auto value = [](const Item& item) -> Tree {
    if (item.is_module())
      throw_invalid("Module.filter_and_map", "a module is no array; a function that maps it is needed");
    return item.parameter->value();
  };
  const auto is_parameter = [](const Module&, const std::string&, const Item& item) { return !item.is_module(); };
  const ItemFilter leaves = [&](const Module& m, const std::string& name, const Item& item) {
    return is_parameter(m, name, item) || (is_leaf && is_leaf(m, name, item));
  };
  return mapped(*this, filter, map ? map : value, leaves);
}

Tree Module::parameter_tree() { return filter_and_map(valid_parameter_filter); }
Tree Module::trainable_tree() { return filter_and_map(trainable_parameter_filter); }

void Module::update(const Tree& values, bool strict) {
  Changes changes;
  collect_changes(*this, values, "", strict, changes);
  for (auto& [parameter, value] : changes) parameter->become(std::move(value), parameter->role());
}

void Module::apply(const std::function<array(const array&)>& map, const ItemFilter& filter) {
  update(filter_and_map(filter ? filter : valid_parameter_filter,
                        [&](const Item& item) -> Tree { return map(item.parameter->value()); }));
}

void Module::apply_to_modules(const std::function<void(const std::string&, Module&)>& fn) {
  for (auto& [name, module] : named_modules()) fn(name, *module);
}

std::vector<Module*> Module::modules() {
  std::vector<Module*> out;
  for (auto& entry : named_modules()) out.push_back(entry.second);
  return out;
}

std::vector<std::pair<std::string, Module*>> Module::leaf_modules() {
  std::vector<std::pair<std::string, Module*>> out;
  for (auto& entry : named_modules())
    if (!entry.first.empty() && entry.second->children().empty()) out.push_back(entry);
  return out;
}

void Module::update_modules(std::map<std::string, std::unique_ptr<Module>> parts, bool strict) {
  struct Change {
    Module* parent;
    std::string name;
    std::unique_ptr<Module> part;
  };
  std::vector<Change> changes;
  const auto known = named_modules();
  for (auto& [path, part] : parts) {
    const auto it = std::find_if(known.begin(), known.end(), [&, &at = path](const auto& m) { return m.first == at; });
    if (it == known.end() || path.empty()) {
      if (strict)
        throw_invalid("Module.update_modules", "the module does not have a sub-module named \"" + path + "\"");
      continue;
    }
    Module* const parent = it->second->parent_;
    if (!part || part->parent_)
      throw_invalid("Module.update_modules", "what replaces " + path + " must be a module by itself");
    if (!parent->can_hold(it->second->name_, *part))
      throw_invalid("Module.update_modules", path + " is a member of " + parent->describe() +
                                                 " that cannot be replaced by a " + part->describe());
    changes.push_back({parent, it->second->name_, std::move(part)});
  }
  // From the end: what is inside of a part comes after it.
  for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
    Module* const part = change->part.get();
    part->parent_ = change->parent;
    part->name_ = change->name;
    for (auto& [name, slot] : change->parent->slots_)
      if (name == change->name) slot.module = part;
    change->parent->hold(change->name, std::move(change->part));
  }
}

bool Module::can_hold(const std::string&, const Module&) const { return false; }

void Module::hold(const std::string& name, std::unique_ptr<Module>) {
  throw_internal("Module.hold", name + " is a member that cannot be replaced");
}

void Module::set_trainable(bool on, const FreezeOptions& options) {
  const std::vector<Module*> all = options.recurse ? modules() : std::vector<Module*>{this};
  const auto is_named = [&](const std::string& name) {
    return !options.keys || std::count(options.keys->begin(), options.keys->end(), name) > 0;
  };
  if (options.strict && options.keys)
    for (const std::string& key : *options.keys)
      if (std::none_of(all.begin(), all.end(), [&](const Module* m) {
            return std::any_of(m->slots_.begin(), m->slots_.end(), [&](const auto& s) { return s.first == key; });
          }))
        throw_out_of_range("Module", "the module does not contain a member named " + key);
  for (Module* module : all)
    for (auto& [name, slot] : module->slots_) {
      if (!is_named(name)) continue;
      if (slot.parameter) slot.parameter->trainable = on && slot.parameter->role() == Parameter::Role::learned;
      else if (options.keys) slot.module->set_trainable(on, {});
    }
}

void Module::freeze(const FreezeOptions& options) { set_trainable(false, options); }
void Module::unfreeze(const FreezeOptions& options) { set_trainable(true, options); }

std::function<std::pair<array, Tree>(const std::vector<array>&)> tree_value_and_grad(Module& model,
                                                                                     ScalarFunction fun) {
  return [&model, both = value_and_grad(model, std::move(fun))](const std::vector<array>& arguments) {
    auto [loss, slopes] = both(arguments);
    return std::pair(std::move(loss), tree_fill(model.trainable_tree(), slopes));
  };
}

}  // namespace weft::nn
