// The tree of modules: registration by declaration, names, modes, weights by name.
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <ostream>
#include <typeinfo>

#include "base/error.h"
#include "weft/io.h"
#include "weft/nn/module.h"

namespace weft::nn {

namespace {

std::string type_name(const Module& module) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(typeid(module).name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? demangled : typeid(module).name();
  std::free(demangled);
  const size_t template_start = std::min(name.find('<'), name.size());
  const size_t colon = name.rfind(':', template_start);
  return colon == std::string::npos || colon > template_start ? name : name.substr(colon + 1);
}

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

std::string joined_names(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& n : names) out += (out.empty() ? "" : ", ") + n;
  return out;
}

/// Throws where `values` do not fit the parameters; `where` is the operation that messages name.
void check_values(const std::string& where, const std::string& file,
                  const std::vector<std::pair<std::string, array*>>& parameters,
                  const std::unordered_map<std::string, array>& values, bool strict) {
  std::vector<std::string> missing, unknown, misshapen;
  std::map<std::string, array*> known(parameters.begin(), parameters.end());
  for (const auto& [name, handle] : parameters) {
    const auto it = values.find(name);
    if (it == values.end()) missing.push_back(name);
    else if (it->second.shape() != handle->shape())
      misshapen.push_back(name + " is " + to_string(it->second.shape()) + " and should be " +
                          to_string(handle->shape()));
  }
  for (const auto& entry : values)
    if (!known.count(entry.first)) unknown.push_back(entry.first);
  std::sort(unknown.begin(), unknown.end());
  std::string message;
  auto say = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) message += (message.empty() ? "" : "; ") + std::string(what) + joined_names(names);
  };
  say("wrong shape: ", misshapen);
  if (strict) say("missing: ", missing);
  if (strict) say("not in the model: ", unknown);
  if (!message.empty())
    throw_invalid(where,
                  (file.empty() ? "the values do not fit the model: " : file + " does not fit the model: ") + message);
}

bool is_archive(const std::string& file) { return file.ends_with(".npz"); }

void assign(const std::vector<std::pair<std::string, array*>>& parameters,
            const std::unordered_map<std::string, array>& values) {
  for (const auto& [name, handle] : parameters)
    if (const auto it = values.find(name); it != values.end()) *handle = astype(it->second, handle->dtype());
}

}  // namespace

Parameter::Parameter(Module& parent, std::string name, array value, Role role)
    : trainable(role == Role::learned), parent_(&parent), name_(std::move(name)), value_(std::move(value)),
      role_(role) {
  parent_->register_slot(name_, {this, nullptr});
}

Parameter::~Parameter() { parent_->leave(this); }

Parameter& Parameter::operator=(array value) {
  if (value.shape() != value_.shape() || value.dtype() != value_.dtype())
    throw_invalid("Parameter", name_ + " is " + to_string(value_.shape()) + " " + dtype_name(value_.dtype()) +
                                   "; a value of " + to_string(value.shape()) + " " + dtype_name(value.dtype()) +
                                   " cannot replace it");
  value_ = std::move(value);
  return *this;
}

void Parameter::set_dtype(Dtype dtype) {
  if (!issubdtype(dtype, floating))
    throw_invalid("Parameter.set_dtype", "parameters are floating; " + std::string(dtype_name(dtype)) + " is not");
  if (dtype != value_.dtype()) value_ = astype(value_, dtype);
}

void Parameter::become(array value, Role role) {
  value_ = std::move(value);
  role_ = role;
  trainable = trainable && role == Role::learned;
}

Module::Module(Scope scope) : parent_(scope.parent), name_(std::move(scope.name)) {
  if (parent_) parent_->register_slot(name_, {nullptr, this});
}

Module::~Module() {
  if (parent_) parent_->leave(this);
}

void Module::register_slot(const std::string& name, Slot slot) {
  if (name.empty() || name.find('.') != std::string::npos)
    throw_invalid("Module", "'" + name + "' is no name for a part of a module: it must not be empty and holds no dots");
  for (const auto& entry : slots_)
    if (entry.first == name) throw_invalid("Module", "the name '" + name + "' is taken twice in one module");
  slots_.emplace_back(name, slot);
}

void Module::leave(const void* slot) {
  std::erase_if(slots_, [&](const auto& s) {
    return static_cast<const void*>(s.second.parameter) == slot || static_cast<const void*>(s.second.module) == slot;
  });
}

void Module::collect(const std::string& prefix, bool trainable_only, std::vector<std::pair<std::string, array*>>& out) {
  for (auto& [name, slot] : slots_) {
    if (slot.module) slot.module->collect(joined(prefix, name), trainable_only, out);
    else if (slot.parameter->trainable || !trainable_only)
      out.emplace_back(joined(prefix, name), slot.parameter->handle());
  }
}

std::vector<std::pair<std::string, array*>> Module::parameters() {
  std::vector<std::pair<std::string, array*>> out;
  collect("", false, out);
  return out;
}

std::vector<std::pair<std::string, array*>> Module::trainable_parameters() {
  std::vector<std::pair<std::string, array*>> out;
  collect("", true, out);
  return out;
}

std::vector<array*> Module::state() {
  std::vector<array*> out;
  for (auto& p : parameters()) out.push_back(p.second);
  return out;
}

int64_t Module::num_parameters() {
  int64_t n = 0;
  for (auto& p : parameters()) n += num_elements(p.second->shape());
  return n;
}

std::vector<std::pair<std::string, Module*>> Module::children() const {
  std::vector<std::pair<std::string, Module*>> out;
  for (const auto& [name, slot] : slots_)
    if (slot.module) out.emplace_back(name, slot.module);
  return out;
}

void Module::collect_modules(const std::string& prefix, std::vector<std::pair<std::string, Module*>>& out) {
  out.emplace_back(prefix, this);
  for (auto& [name, child] : children()) child->collect_modules(joined(prefix, name), out);
}

std::vector<std::pair<std::string, Module*>> Module::named_modules() {
  std::vector<std::pair<std::string, Module*>> out;
  collect_modules("", out);
  return out;
}

void Module::train(bool on) {
  for (auto& entry : named_modules()) entry.second->training_ = on;
}

std::unordered_map<std::string, array> Module::set_dtype(Dtype dtype) {
  std::unordered_map<std::string, array> before;
  for (auto& [path, module] : named_modules())
    for (auto& [name, slot] : module->slots_) {
      if (!slot.parameter || slot.parameter->role() != Parameter::Role::learned ||
          slot.parameter->value().dtype() == dtype)
        continue;
      before.emplace(joined(path, name), slot.parameter->value());
      slot.parameter->set_dtype(dtype);
    }
  return before;
}

void Module::update(const std::unordered_map<std::string, array>& values, bool strict) {
  const auto mine = parameters();
  check_values("Module.update", "", mine, values, strict);
  assign(mine, values);
}

void Module::load_weights(const std::string& file, bool strict) {
  const auto mine = parameters();
  const auto values = is_archive(file) ? load_npz(file) : load_safetensors(file).first;
  check_values("load_weights", file, mine, values, strict);
  assign(mine, values);
}

void Module::save_weights(const std::string& file, const std::unordered_map<std::string, std::string>& metadata) {
  std::unordered_map<std::string, array> values;
  for (auto& [name, handle] : parameters()) values.emplace(name, *handle);
  if (!is_archive(file)) return save_safetensors(file, values, metadata);
  if (!metadata.empty()) throw_invalid("save_weights", file + " has no place for metadata; write a safetensors file");
  savez(file, values);
}

std::string Module::describe() const {
  std::string own;
  for (const auto& [name, slot] : slots_)
    if (slot.parameter)
      own += (own.empty() ? "" : ", ") + name + " " + to_string(slot.parameter->value().shape()) + " " +
             dtype_name(slot.parameter->value().dtype());
  return own.empty() ? type_name(*this) : type_name(*this) + "(" + own + ")";
}

void Module::print(std::ostream& os, const std::string& label, int depth) const {
  os << std::string(static_cast<size_t>(depth) * 2, ' ') << (label.empty() ? "" : label + ": ") << describe() << "\n";
  for (const auto& [child_name, child] : children()) child->print(os, child_name, depth + 1);
}

std::ostream& operator<<(std::ostream& os, const Module& module) {
  module.print(os, "", 0);
  return os;
}

std::function<std::pair<array, std::vector<array>>(const std::vector<array>&)> value_and_grad(Module& model,
                                                                                              ScalarFunction fun) {
  return [&model, fun = std::move(fun)](const std::vector<array>& arguments) {
    std::vector<array> learned;
    for (auto& p : model.trainable_parameters()) learned.push_back(*p.second);
    if (learned.empty()) throw_invalid("nn.value_and_grad", "the model has no trainable parameters (all frozen?)");
    array loss = fun(arguments);
    auto slopes = gradients(loss, learned);
    return std::pair(std::move(loss), std::move(slopes));
  };
}

}  // namespace weft::nn
