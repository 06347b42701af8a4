#include "compiler/program/declined.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "compiler/ir/index_map.h"
#include "graph/build.h"

namespace weft::compiler {

namespace {

using graph::Op;
using graph::Value;

constexpr int64_t arena_alignment = 256;  // bytes: of the part of the arena that the new steps use

// ---------------------------------------------------------------- a group as a source

class GroupExtraction {
 public:
  GroupExtraction(const Ir& ir, const Grouping& grouping, const Ordering& ordering, GroupId group)
      : ir_(ir), grouping_(grouping), ordering_(ordering), group_(group) {}

  GroupSource run() {
    for (const Root& root : grouping_.groups[group_].roots)
      if (ordering_.has_buffer[root.node]) add_output(root.node);
    out_.source.graph = graph::inline_composites(out_.source.graph);
    return std::move(out_);
  }

 private:
  bool in_memory(NodeId node) const {
    const GroupId group = grouping_.group_of[node];
    return is_leaf(ir_, node) || (grouping_.is_root[node] && group >= 0 && group != group_);
  }

  /// Returns the axes of a node from the outermost in memory to the innermost.
  std::vector<int64_t> memory_order(NodeId node) const {
    const Strides& strides = grouping_.strides[node];
    const Shape& shape = ir_[node].type.shape;
    std::vector<int64_t> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    const auto longer = [&](int64_t axis) { return !(shape[static_cast<size_t>(axis)] == 1); };
    const auto first_longer = std::stable_partition(order.begin(), order.end(), std::not_fn(longer));
    std::stable_sort(first_longer, order.end(), [&](int64_t a, int64_t b) {
      return strides[static_cast<size_t>(a)] > strides[static_cast<size_t>(b)];
    });
    return order;
  }

  /// Returns the type of a node with its axes in `order`.
  graph::Type permuted_type(NodeId node, const std::vector<int64_t>& order) const {
    graph::Type type{{}, ir_[node].type.dtype};
    for (const int64_t axis : order) type.shape.push_back(ir_[node].type.shape[static_cast<size_t>(axis)]);
    return type;
  }

  /// Returns the elements from one row in memory to the next of a node with its axes in `order`: more than the last
  /// axis has where rows are padded (fusion/row_padding.cpp).
  int64_t row_pitch(NodeId node, const std::vector<int64_t>& order) const {
    const Shape& shape = ir_[node].type.shape;
    const int64_t row = order.empty() ? 1 : shape[static_cast<size_t>(order.back())].bound();
    return grouping_.is_root[node] && volume(shape) > 0
               ? stored_elements(shape, grouping_.strides[node]) / (volume(shape) / row)
               : row;
  }

  /// Returns the strides of a node's memory with its axes in `order`.
  Strides permuted_strides(NodeId node, const std::vector<int64_t>& order) const {
    Strides out;
    for (const int64_t axis : order) out.push_back(grouping_.strides[node][static_cast<size_t>(axis)]);
    return out;
  }

  bool is_padded(NodeId node, const std::vector<int64_t>& order) const {
    return !order.empty() && row_pitch(node, order) > ir_[node].type.shape[static_cast<size_t>(order.back())].bound();
  }

  Value input(NodeId node) {
    const std::vector<int64_t> order = memory_order(node);
    const graph::Type own = permuted_type(node, order);
    graph::Type type = own;
    if (is_padded(node, order)) type.shape.back() = row_pitch(node, order);
    const Value parameter = graph::parameter(type, static_cast<int64_t>(out_.inputs.size()));
    out_.source.graph.inputs.push_back(parameter);
    Strides strides = permuted_strides(node, order);
    if (is_row_major(type.shape, strides)) strides.clear();
    out_.source.layouts.push_back({std::move(strides)});
    out_.inputs.push_back(node);
    std::vector<int64_t> inverse(order.size());
    for (size_t k = 0; k < order.size(); ++k) inverse[static_cast<size_t>(order[k])] = static_cast<int64_t>(k);
    const bool padded = !(type.shape == own.shape);
    const int last = static_cast<int>(own.shape.size()) - 1;
    return graph::permute(padded ? graph::slice_axis(parameter, last, 0, own.shape.back()) : parameter, inverse);
  }

  /// Makes the operator of `node` on values that exist. The results of one call are one node of the graph.
  Value make(NodeId node) {
    const IrNode& n = ir_[node];
    graph::Values inputs;
    for (const int k : n.inputs) inputs.push_back(values_.at(k));
    if (!is_call(n.op)) return {std::make_shared<graph::Node>(n.op, std::move(inputs), n.attrs, std::vector{n.type})};
    graph::Values& results = calls_[call_key(n)];
    if (results.empty() && n.op == Op::composite) results = n.attrs->composite->body(inputs);
    if (results.empty()) {
      const auto call = std::make_shared<graph::Node>(n.op, std::move(inputs), n.attrs, n.results);
      for (int k = 0; k < call->outputs(); ++k) results.push_back({call, k});
    }
    return results[static_cast<size_t>(n.output)];
  }

  /// Makes the value of a node and of all that it is computed from; a list in place of recursion, for long chains.
  const Value& value(NodeId node) {
    std::vector<int> waiting{node};
    while (!waiting.empty()) {
      const NodeId id = waiting.back();
      const size_t before = waiting.size();
      if (!values_.contains(id) && !in_memory(id))
        for (const int k : ir_[id].inputs)
          if (!values_.contains(k)) waiting.push_back(k);
      if (waiting.size() > before) continue;
      waiting.pop_back();
      if (!values_.contains(id)) values_.emplace(id, in_memory(id) ? input(id) : make(id));
    }
    return values_.at(node);
  }

  void add_output(NodeId node) {
    const Value& result = value(node);
    const std::vector<int64_t> order = memory_order(node);
    Value stored = graph::permute(result, order);
    if (is_padded(node, order)) {
      std::vector<int64_t> low(order.size()), high(order.size());
      high.back() = row_pitch(node, order) - stored.shape().back().bound();
      stored = graph::pad(stored, std::move(low), std::move(high));
    }
    check(is_row_major(stored.shape(), permuted_strides(node, order)), "replace",
          "a result of a library does not lie densely in memory");
    const auto output = static_cast<int>(out_.outputs.size());
    for (size_t k = 0; k < out_.inputs.size(); ++k)
      if (owner(out_.inputs[k]) == owner(node)) out_.source.updates.push_back({output, static_cast<int>(k)});
    out_.source.graph.outputs.push_back(stored);
    out_.outputs.push_back(node);
  }

  NodeId owner(NodeId node) const { return ordering_.buffer_owner[node]; }

  const Ir& ir_;
  const Grouping& grouping_;
  const Ordering& ordering_;
  int group_;
  GroupSource out_;
  std::unordered_map<int, Value> values_;
  std::unordered_map<std::string, graph::Values> calls_;
};

// ---------------------------------------------------------------- steps in the place of another

class Replacement {
 public:
  Replacement(StepPlan& plan, const Ir& ir, const Grouping& grouping, const Ordering& ordering, const PassContext& cx)
      : plan_(plan), ir_(ir), grouping_(grouping), ordering_(ordering), cx_(cx),
        arena_((plan.arena_bytes + arena_alignment - 1) / arena_alignment * arena_alignment) {}

  bool run() {
    std::vector<Step> steps;
    bool any = false;
    for (Step& step : plan_.steps) {
      if (!step.call || step.call->ready()) {
        steps.push_back(std::move(step));
        continue;
      }
      any = true;
      replace(step, steps);
    }
    plan_.steps = std::move(steps);
    return any;
  }

 private:
  /// The steps of a compiled source, and where their kernels are in the plan.
  struct Compiled {
    StepPlan steps;
    size_t first_kernel = 0;
  };

  /// Groups of equal sources (the layers of a model) are compiled once.
  const Compiled& compiled(const Source& source) {
    const auto [known, fresh] = compiled_.try_emplace(digest(source));
    Compiled& made = known->second;
    if (!fresh) return made;
    const PassContext cx{source, cx_.target, cx_.policy};
    Compilation inner = run_passes(cx, false);
    made.steps = std::move(inner.steps);
    begin_calls(made.steps);
    replace_declined(made.steps, inner.ir, inner.grouping, inner.ordering, cx);
    made.first_kernel = plan_.kernels.size();
    for (kernel::Kernel& kernel : made.steps.kernels) {
      // An input of this source may be what the step before has just written.
      for (kernel::Param& p : kernel.params) p.constant = false;
      plan_.kernels.push_back(std::move(kernel));
    }
    plan_.digests.insert(plan_.digests.end(), made.steps.digests.begin(), made.steps.digests.end());
    plan_.arena_bytes = std::max(plan_.arena_bytes, arena_ + made.steps.arena_bytes);
    plan_.live_bytes = std::max(plan_.live_bytes, arena_ + made.steps.live_bytes);
    plan_.tune_ms += made.steps.tune_ms;
    plan_.tuning += made.steps.tuning;
    return made;
  }

  Location memory_of(NodeId node, const Step& step) const {
    const int owner = ordering_.buffer_owner[node];
    const auto at = plan_.locations.find(owner);
    const bool kept = at != plan_.locations.end() &&
                      (at->second.in == Location::In::input ||
                       std::find(step.nodes[0].begin(), step.nodes[0].end(), owner) != step.nodes[0].end());
    check(kept, "replace", fmt::format("%{} is not in memory while {} runs", node, step.name));
    return at->second;
  }

  void replace(const Step& declined, std::vector<Step>& steps) {
    const GroupId group = declined.groups[0];
    if (const Group& g = grouping_.groups[group]; g.kind == Group::Kind::call && g.call.op == Op::call)
      throw_failure(declined.name, "the library declined this routine, and no other code exists for it");
    const GroupSource of_group = group_source(ir_, grouping_, ordering_, group);
    const Compiled& made = compiled(of_group.source);
    std::vector<Location> inputs, outputs;
    for (const NodeId node : of_group.inputs) inputs.push_back(memory_of(node, declined));
    for (const NodeId node : of_group.outputs) outputs.push_back(memory_of(node, declined));
    const auto moved = [&](const Location& from) {
      Location to = from.in == Location::In::input    ? inputs[static_cast<size_t>(from.index)]
                    : from.in == Location::In::output ? outputs[static_cast<size_t>(from.index)]
                                                      : Location{Location::In::arena, 0, arena_};
      to.offset += from.offset;
      return to;
    };
    for (Step step : made.steps.steps) {
      step.kernel += made.first_kernel;
      for (StepSegment& segment : step.segments)
        for (Location& location : segment.buffers) location = moved(location);
      for (Location& location : step.operands) location = moved(location);
      for (Traffic& traffic : step.traffic) traffic.location = moved(traffic.location);
      step.groups = declined.groups;
      step.nodes.clear();
      steps.push_back(std::move(step));
    }
    copy_shared_outputs(of_group, made.steps, outputs, moved, steps);
  }

  /// A result that the new steps do not compute, because it is an input or an earlier result, is copied to its memory.
  template <class Moved>
  void copy_shared_outputs(const GroupSource& of_group, const StepPlan& made, const std::vector<Location>& outputs,
                           const Moved& moved, std::vector<Step>& steps) {
    for (size_t k = 0; k < made.outputs.size(); ++k) {
      const bool updated = std::any_of(of_group.source.updates.begin(), of_group.source.updates.end(),
                                       [&](const Update& u) { return u.output == static_cast<int>(k); });
      if (made.outputs[k].owns || updated) continue;
      const graph::Type& type = of_group.source.graph.outputs[k].type();
      Step copy;
      copy.kind = Step::Kind::copy;
      copy.name = fmt::format("copy to %{}", of_group.outputs[k]);
      copy.bytes = volume(type.shape) * type.dtype.size();
      copy.operands = {moved(made.outputs[k].location), outputs[k]};
      const auto bytes = static_cast<double>(copy.bytes);
      copy.cost.bytes = 2 * bytes;
      for (const Location& location : copy.operands) copy.traffic.push_back({NodeId{}, bytes, location});
      steps.push_back(std::move(copy));
    }
  }

  StepPlan& plan_;
  const Ir& ir_;
  const Grouping& grouping_;
  const Ordering& ordering_;
  const PassContext& cx_;
  const int64_t arena_;  // where the memory of new steps begins: they follow each other, so all use the same part
  std::unordered_map<Digest, Compiled> compiled_;
};

}  // namespace

GroupSource group_source(const Ir& ir, const Grouping& grouping, const Ordering& ordering, GroupId group) {
  return GroupExtraction(ir, grouping, ordering, group).run();
}

void begin_calls(const StepPlan& steps) {
  for (const Step& step : steps.steps)
    if (step.call) step.call->begin();
}

bool replace_declined(StepPlan& steps, const Ir& ir, const Grouping& grouping, const Ordering& ordering,
                      const PassContext& cx) {
  return Replacement(steps, ir, grouping, ordering, cx).run();
}

}  // namespace weft::compiler
