// Linear layers whose parameters are divided among the processes of a group.
#include "nn/sharding.h"

#include "nn/support.h"
#include "weft/transforms.h"

namespace weft::nn {

namespace {

using Group = distributed::Group;

Group chosen(const std::optional<Group>& group) { return group ? *group : distributed::init(); }

int64_t size_of_share(const char* op, const char* what, int64_t size, const std::optional<Group>& group) {
  const int processes = chosen(group).size();
  if (size % processes != 0)
    throw_invalid(op, std::to_string(processes) + " processes cannot share " + what + " of " + std::to_string(size));
  return size / processes;
}

/// Returns the identity whose gradient is the sum of the gradients of all processes.
std::function<array(const array&)> with_summed_gradient(const Group& group) {
  if (group.size() == 1) return [](const array& x) { return x; };
  const ArrayFunction identity =
      custom_vjp([](const std::vector<array>& in) { return in; },
                 [group](const std::vector<array>&, const std::vector<array>& cotangents, const std::vector<array>&) {
                   return std::vector<array>{distributed::all_sum(cotangents[0], group)};
                 });
  return [identity](const array& x) { return identity({x})[0]; };
}

std::vector<array> segments_of(const array& parameter, const Division& division) {
  if (const int* count = std::get_if<int>(&division.segments)) return split(parameter, *count, division.axis);
  if (const auto* at = std::get_if<std::vector<int>>(&division.segments)) {
    Shape positions(at->begin(), at->end());
    return split(parameter, positions, division.axis);
  }
  const double length = static_cast<double>(parameter.shape(division.axis).bound());
  Shape positions;
  for (const double share : std::get<std::vector<double>>(division.segments))
    positions.emplace_back(static_cast<int64_t>(share * length));
  return split(parameter, positions, division.axis);
}

Tree divided(Module& module, const Sharding& sharding, const Group& group) {
  return tree_map_with_path(
      [&](const std::string& name, const array& parameter) {
        const auto division = sharding(name, parameter);
        return division ? part_of(parameter, *division, group.rank(), group.size()) : parameter;
      },
      module.parameter_tree());
}

template <class T>
std::unique_ptr<T> sharded(Linear& linear, const Sharding& sharding, const std::optional<Group>& group) {
  const auto& codes = linear.quantized;
  const int64_t in = codes ? codes->width() : linear.weight.value().shape(1).bound();
  auto layer = std::make_unique<T>(in, linear.weight.value().shape(0).bound(), linear.bias.has_value(), group);
  if (codes) layer->quantize(codes->how);
  layer->update(divided(linear, sharding, chosen(group)));
  return layer;
}

bool is_bias(const std::string& name) { return name.ends_with("bias"); }

}  // namespace

array part_of(const array& parameter, const Division& division, int rank, int size) {
  std::vector<array> parts;
  for (const array& segment : segments_of(parameter, division))
    parts.push_back(split(segment, size, division.axis)[static_cast<size_t>(rank)]);
  return contiguous(concatenate(parts, division.axis));
}

AllToShardedLinear::AllToShardedLinear(Scope scope, int64_t in, int64_t out, bool with_bias,
                                       const std::optional<Group>& group)
    : Linear(std::move(scope), in, size_of_share("AllToShardedLinear", "results", out, group), with_bias),
      group_(chosen(group)), sum_gradients_(with_summed_gradient(group_)) {}

array AllToShardedLinear::operator()(const array& x) const { return Linear::operator()(sum_gradients_(x)); }

std::string AllToShardedLinear::describe() const { return "AllToSharded" + Linear::describe(); }

// The whole layer's weights are uniform in ±1/√in, whatever part of the columns is here.
ShardedToAllLinear::ShardedToAllLinear(Scope scope, int64_t in, int64_t out, bool with_bias,
                                       const std::optional<Group>& group)
    : Linear(std::move(scope), size_of_share("ShardedToAllLinear", "inputs", in, group), out, with_bias),
      group_(chosen(group)) {
  if (group_.size() == 1) return;
  const array narrower(bound_of(in) / bound_of(in / group_.size()));
  weight = weight * narrower;
  if (bias) *bias = *bias * narrower;
}

array ShardedToAllLinear::operator()(const array& x) const {
  if (group_.size() == 1) return Linear::operator()(x);
  const array part = quantized ? quantized->times(x) : linear_matmul(x, weight);
  const array y = distributed::all_sum(part, group_);
  return bias ? y + astype(*bias, y.dtype()) : y;
}

std::string ShardedToAllLinear::describe() const { return "ShardedToAll" + Linear::describe(); }

Sharding all_to_sharded(Segments segments) {
  return [segments = std::move(segments)](const std::string& name, const array& parameter) {
    const int axis = is_bias(name) ? -1 : std::max(static_cast<int>(parameter.ndim()) - 2, 0);
    return std::optional(Division{axis, segments});
  };
}

Sharding sharded_to_all(Segments segments) {
  return [segments = std::move(segments)](const std::string& name, const array&) {
    return is_bias(name) ? std::nullopt : std::optional(Division{-1, segments});
  };
}

void shard_inplace(Module& module, const Sharding& sharding, const std::optional<Group>& group) {
  module.update(divided(module, sharding, chosen(group)));
}

std::unique_ptr<AllToShardedLinear> shard_all_to_sharded(Linear& linear, const Segments& segments,
                                                         const std::optional<Group>& group) {
  return sharded<AllToShardedLinear>(linear, all_to_sharded(segments), group);
}

std::unique_ptr<ShardedToAllLinear> shard_sharded_to_all(Linear& linear, const Segments& segments,
                                                         const std::optional<Group>& group) {
  return sharded<ShardedToAllLinear>(linear, sharded_to_all(segments), group);
}

Tree average_gradients(const Tree& gradients, const std::optional<Group>& group) {
  const Group all = chosen(group);
  if (all.size() == 1) return gradients;
  return tree_map([&](const array& g) { return distributed::all_sum(g, all) / array(all.size(), g.dtype()); },
                  gradients);
}

std::pair<Tree, array> clip_grad_norm_sharded(const Tree& gradients, float max_norm,
                                              const std::optional<Group>& group) {
  const auto add = [](const array& total, const array& g) { return total + sum(square(astype(g, float32))); };
  const array norm = sqrt(distributed::all_sum(tree_reduce(add, gradients, array(0.0f)), chosen(group)));
  const array factor = minimum(array(max_norm) / (norm + array(1e-6f)), array(1.0f));
  return {tree_map([&](const array& g) { return g * astype(factor, g.dtype()); }, gradients), norm};
}

}  // namespace weft::nn
