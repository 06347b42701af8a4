// FullyShardedModule of weft/nn/distributed.h.
#include <algorithm>

#include "nn/support.h"
#include "weft/nn/activations.h"
#include "weft/nn/distributed.h"
#include "weft/transforms.h"

namespace weft::nn {

namespace {

using Group = distributed::Group;
using Arrays = std::vector<array>;
using NamedParameters = std::vector<std::pair<std::string, Parameter*>>;

/// Appends all parameters but those of modules inside that are divided by themselves.
void collect_own(const Module& module, const std::string& prefix, NamedParameters& out) {
  if (dynamic_cast<const FullyShardedModule*>(&module)) return;
  for (const auto& [name, item] : module.items())
    if (item.is_module()) collect_own(*item.module, prefix + name + ".", out);
    else out.emplace_back(prefix + name, item.parameter);
}

NamedParameters own_parameters(const Module& module) {
  NamedParameters all;
  collect_own(module, "", all);
  return all;
}

array part_of_first_axis(const std::string& name, const array& parameter, const Group& group) {
  if (parameter.ndim() == 0) throw_invalid("fully_shard", "parameter " + name + " is a scalar, which has no parts");
  if (parameter.shape(0).bound() % group.size() != 0)
    throw_invalid("fully_shard", std::to_string(group.size()) + " processes cannot share the first axis of parameter " +
                                     name + ", " + to_string(parameter.shape()));
  return contiguous(split(parameter, group.size(), 0)[static_cast<size_t>(group.rank())]);
}

/// Applies an exchange to matrices side by side, those of each dtype in one call.
template <class Exchange>
Arrays exchanged(const Arrays& rows, const Exchange& exchange) {
  Arrays results = rows;
  std::vector<Dtype> dtypes;
  for (const array& row : rows)
    if (std::find(dtypes.begin(), dtypes.end(), row.dtype()) == dtypes.end()) dtypes.push_back(row.dtype());
  for (const Dtype dtype : dtypes) {
    Arrays chosen;
    Shape ends;
    for (const array& row : rows) {
      if (row.dtype() != dtype) continue;
      chosen.push_back(row);
      ends.push_back(row.shape(1).bound() + (ends.empty() ? 0 : ends.back().bound()));
    }
    ends.pop_back();
    const Arrays parts = split(exchange(concatenate(chosen, 1)), ends, 1);
    for (size_t k = 0, part = 0; k < rows.size(); ++k)
      if (rows[k].dtype() == dtype) results[k] = parts[part++];
  }
  return results;
}

/// Returns the function from the parts of parameters to the whole ones. The gradient of a part is the mean of all
/// processes' gradients.
ArrayFunction gather_of(const Group& group, const std::optional<Dtype>& compute_dtype) {
  const auto gather = [group, compute_dtype](const Arrays& parts) {
    Arrays rows;
    for (const array& part : parts)
      rows.push_back(reshape(compute_dtype ? astype(part, *compute_dtype) : part, {1, -1}));
    Arrays whole = exchanged(rows, [&](const array& x) { return distributed::all_gather(x, group); });
    for (size_t k = 0; k < parts.size(); ++k) {
      Shape shape = parts[k].shape();
      shape[0] = shape[0].bound() * group.size();
      whole[k] = reshape(whole[k], shape);
    }
    return whole;
  };
  const auto scatter = [group](const Arrays& parts, const Arrays& cotangents, const Arrays&) {
    Arrays rows;
    for (const array& cotangent : cotangents) rows.push_back(reshape(cotangent, {group.size(), -1}));
    Arrays gradients = exchanged(rows, [&](const array& x) {
      return divide(distributed::sum_scatter(x, group), array(group.size(), x.dtype()));
    });
    for (size_t k = 0; k < parts.size(); ++k)
      gradients[k] = astype(reshape(gradients[k], parts[k].shape()), parts[k].dtype());
    return gradients;
  };
  return custom_vjp(gather, scatter);
}

}  // namespace

FullyShardedModule::FullyShardedModule(Scope scope, std::unique_ptr<Layer> module, const std::optional<Group>& group,
                                       std::optional<Dtype> compute_dtype)
    : Layer(std::move(scope)), module_(std::make_unique<Identity>(*this, "module")) {
  if (!module) throw_invalid("fully_shard", "there is no layer");
  const Group processes = group ? *group : distributed::init();
  const NamedParameters own = own_parameters(*module);
  Arrays parts;
  for (const auto& [name, parameter] : own) parts.push_back(part_of_first_axis(name, parameter->value(), processes));
  for (size_t k = 0; k < own.size(); ++k) *own[k].second->handle() = parts[k];
  std::map<std::string, std::unique_ptr<Module>> replaced;
  replaced.emplace("module", std::move(module));
  update_modules(std::move(replaced));
  gather_ = gather_of(processes, compute_dtype);
}

array FullyShardedModule::operator()(const array& x) const {
  return gathered([&] { return (*module_)(x); });
}

array FullyShardedModule::gathered(const std::function<array()>& fn) const {
  const NamedParameters own = own_parameters(*module_);
  if (own.empty()) return fn();
  Arrays parts;
  for (const auto& [name, parameter] : own) parts.push_back(parameter->value());
  const auto assign = [&](const Arrays& values) {
    for (size_t k = 0; k < own.size(); ++k) *own[k].second->handle() = values[k];
  };
  assign(gather_(parts));
  try {
    array result = fn();
    assign(parts);
    return result;
  } catch (...) {
    assign(parts);
    throw;
  }
}

std::string FullyShardedModule::describe() const {
  return "FullyShardedModule(" + std::to_string(own_parameters(*module_).size()) + ")";
}

bool FullyShardedModule::can_hold(const std::string&, const Module& part) const {
  return dynamic_cast<const Layer*>(&part) != nullptr;
}
void FullyShardedModule::hold(const std::string&, std::unique_ptr<Module> part) {
  detail::put(module_, std::move(part));
}

std::unique_ptr<Layer> fully_shard(std::unique_ptr<Layer> layer, const std::optional<Group>& group,
                                   std::optional<Dtype> compute_dtype) {
  if (!layer) throw_invalid("fully_shard", "there is no layer");
  const Group processes = group ? *group : distributed::init();
  if (processes.size() == 1 || own_parameters(*layer).empty()) return layer;
  return std::make_unique<FullyShardedModule>(std::move(layer), processes, compute_dtype);
}

}  // namespace weft::nn
