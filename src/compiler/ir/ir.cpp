#include "compiler/ir/ir.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "compiler/ir/index_map.h"
#include "graph/calls/kernel_call.h"
#include "graph/control/control.h"
#include "graph/table.h"

namespace weft::compiler {

using graph::Op;

void sort_regions(Ir& ir) {
  std::stable_sort(ir.regions.begin(), ir.regions.end(),
                   [](const InlinedRegion& a, const InlinedRegion& b) { return a.result < b.result; });
}

std::span<const InlinedRegion> regions_of(const Ir& ir, NodeId result) {
  const auto first = std::partition_point(ir.regions.begin(), ir.regions.end(),
                                          [&](const InlinedRegion& region) { return region.result < result; });
  const auto last = std::partition_point(first, ir.regions.end(),
                                         [&](const InlinedRegion& region) { return region.result == result; });
  return {first, last};
}

void carry_labels(const Ir& from, Ir& to, const std::function<NodeId(NodeId)>& renamed) {
  for (const InlinedRegion& region : from.regions) {
    const NodeId input = renamed(region.input), result = renamed(region.result);
    if (input >= 0 && result >= 0 && input != result) to.regions.push_back({region.name, input, result});
  }
  sort_regions(to);
  for (const ScheduledValue& value : from.scheduled)
    if (const NodeId node = renamed(value.node); node >= 0) to.scheduled.push_back({node, value.steps});
}

Ir eliminate_dead_code(Ir ir) {
  NodeFlags live(ir.nodes.size());
  for (const auto* list : {&ir.inputs, &ir.outputs})
    for (NodeId id : *list) live[id] = true;
  for (NodeId id = ir.size(); id-- > 0;)
    if (live[id])
      for (NodeId input : ir[id].inputs) live[input] = true;
  Ir result;
  result.nodes.reserve(ir.nodes.size());
  IndexedVector<NodeId, NodeId> renumbered(ir.nodes.size(), -1);
  for (NodeId id = 0; id < ir.size(); ++id) {
    if (!live[id]) continue;
    renumbered[id] = result.size();
    result.nodes.push_back(std::move(ir.nodes[id]));
    for (NodeId& input : result.nodes.back().inputs) input = renumbered[input];
  }
  for (NodeId id : ir.inputs) result.inputs.push_back(renumbered[id]);
  for (NodeId id : ir.outputs) result.outputs.push_back(renumbered[id]);
  carry_labels(ir, result, [&](NodeId id) { return renumbered[id]; });
  return result;
}

Users::Users(const Ir& ir)
    : Lists(ir.nodes.size(), [&](const auto& add) {
        IndexedVector<NodeId, int> last(ir.nodes.size(), -1);  // by node: the reader that was met last
        for (NodeId id = 0; id < ir.size(); ++id)
          for (const NodeId input : ir[id].inputs)
            if (std::exchange(last[input], id) != id) add(input, id);
      }) {}

bool has_axis(const std::vector<int64_t>& axes, int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

bool is_movement(Op op) {
  return op == Op::reshape || op == Op::permute || op == Op::broadcast || op == Op::slice || op == Op::pad ||
         op == Op::concat || op == Op::window || op == Op::stop_gradient || op == Op::depends;
}

bool is_elementwise(Op op) { return op >= Op::neg && op <= Op::bitcast; }

bool is_call(Op op) { return op == Op::call || op == Op::composite || graph::is_control(op); }

bool has_results(const IrNode& node) {
  return is_call(node.op) || (node.op == Op::reduce && kernel::components_of(node.attrs->reducer) > 1);
}

bool is_attention(const IrNode& node) {
  return node.op == Op::composite && node.attrs->composite->attention.has_value();
}

std::string call_key(const IrNode& node) {
  const graph::Attrs& a = node.attrs;
  std::string text = fmt::format("{} {} {} {}", static_cast<int>(node.op), a.call, fmt::join(a.integers, ","),
                                 fmt::join(node.inputs, ","));
  if (a.control) return text + " " + a.control->key.hex();
  if (a.kernel) return text + " " + a.kernel->key.hex();
  return a.composite ? text + " " + a.composite->name + " " + a.composite->key : text;
}

namespace {

std::vector<kernel::CallDesc::Array> arrays_of(std::span<const graph::Type> types) {
  std::vector<kernel::CallDesc::Array> out;
  for (const graph::Type& t : types) out.push_back({t.dtype, bounds(t.shape)});
  return out;
}

/// Refuses sorts along symbolic axes: what lies in memory past the axis's end would be sorted too.
void check_sorted_axis(const graph::Attrs& attrs, const graph::Type& sorted) {
  const int64_t axis = attrs.integers[0];
  if (!sorted.shape[static_cast<size_t>(axis)].is_static())
    throw_invalid(
        "sort", fmt::format("axis {} of {} is symbolic: sort along an axis of fixed length", axis, to_string(sorted)));
}

}  // namespace

kernel::CallDesc call_desc(const graph::Attrs& attrs, std::span<const graph::Type> inputs,
                           std::span<const graph::Type> results, const Numerics& numerics) {
  const bool region = attrs.composite != nullptr;
  if (attrs.kernel) return {attrs.kernel->kernel.name, arrays_of(inputs), arrays_of(results), {}, numerics};
  if (attrs.control) return {"control", arrays_of(inputs), arrays_of(results), {}, numerics};
  if (!region && attrs.call == "sort") check_sorted_axis(attrs, inputs[0]);
  return {region ? attrs.composite->call : attrs.call, arrays_of(inputs), arrays_of(results),
          region ? attrs.composite->integers : attrs.integers, numerics};
}
bool writes_operand(Op op) { return op == Op::scatter || op == Op::assign; }

size_t index_rank(const Ir& ir, NodeId node) {
  return ir[node].attrs->axes.empty() ? 0 : ir[ir[node].inputs[1]].type.shape.size();
}

namespace {

std::string call_name(const graph::Attrs& attrs) {
  if (attrs.control) return attrs.control->key.hex().substr(0, 8);
  if (attrs.kernel) return "kernel " + attrs.kernel->kernel.name;
  return attrs.composite ? attrs.composite->name : attrs.call;
}

}  // namespace

std::string print(const Ir& ir, NodeId id) {
  const IrNode& node = ir[id];
  std::string text = fmt::format("%{} = {}", id, graph::row(node.op).name);
  for (NodeId input : node.inputs) text += fmt::format(" %{}", input);
  auto list = [&](const char* name, const std::vector<int64_t>& v) {
    if (!v.empty()) text += fmt::format(" {}=[{}]", name, fmt::join(v, ","));
  };
  list("axes", node.attrs->axes);
  list("axes2", node.attrs->axes2);
  list("batch", node.attrs->batch);
  list("batch2", node.attrs->batch2);
  list("start", node.attrs->start);
  list("step", node.attrs->step);
  list("low", node.attrs->low);
  list("high", node.attrs->high);
  if (is_call(node.op))
    text += fmt::format(" {}({}) result {}", call_name(node.attrs), fmt::join(node.attrs->integers, ","), node.output);
  list("window", node.attrs->window);
  if (node.op == Op::constant) text += fmt::format(" {}", node.attrs->number.real());
  if (node.op == Op::reduce) text += fmt::format(" {}", kernel::name(node.attrs->reducer));
  if (node.op == Op::reduce && has_results(node)) text += fmt::format(" result {}", node.output);
  if (node.whole) text += " whole";
  if (node.compute != Compute::chosen) text += node.compute == Compute::root ? " stored" : " where read";
  return text + " : " + graph::to_string(node.type);
}

std::string print(const Ir& ir) {
  std::string text;
  for (NodeId id = 0; id < ir.size(); ++id) text += print(ir, id) + "\n";
  for (const ScheduledValue& value : ir.scheduled)
    text += fmt::format("schedule %{} by {}\n", value.node, to_string(value.steps));
  return text + fmt::format("return %{}\n", fmt::join(ir.outputs, " %"));
}

Digest source_digest(const Digest& graph, std::span<const Strides* const> layouts, std::span<const Update> updates) {
  Hasher h;
  h.digest(graph);
  for (const Strides* strides : layouts)
    h.number(strides->size()).bytes(strides->data(), strides->size() * sizeof(int64_t));
  for (const Update& update : updates) h.number(update.output).number(update.input).number(update.optional);
  return h.finish();
}

Digest digest(const Source& source) {
  std::vector<const Strides*> layouts;
  for (const Layout& layout : source.layouts) layouts.push_back(&layout.strides);
  return source_digest(graph::digest(source.graph), layouts, source.updates);
}

}  // namespace weft::compiler
