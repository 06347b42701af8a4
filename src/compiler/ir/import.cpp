// Writes a graph as an Ir: composites are replaced by their bodies on the way, without a copy of the graph.
#include <algorithm>
#include <deque>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/flat_set.h"
#include "compiler/ir/index_map.h"
#include "compiler/ir/ir.h"
#include "graph/control/control.h"
#include "graph/walks/inlined.h"

namespace weft::compiler {

using graph::Op;

namespace {

using Kept = std::function<bool(const graph::Node&)>;

class Importer {
 public:
  Importer(const Source& source, const graph::Graph& graph, const Kept& kept) : kept_(kept) {
    for (const graph::Value& input : graph.inputs) add_input(source, input);
  }

  /// Adds what the outputs need. Returns false, before all of it is added, where that has control flow and `control`
  /// is not set.
  bool run(std::span<const graph::Value> outputs, bool control) {
    takes_control_ = control;
    if (!add(outputs)) return false;
    for (const graph::Value& v : outputs) ir_.outputs.push_back(id_of(v));
    return true;
  }
  /// Names the composites that were inlined before.
  void add_regions(const std::vector<graph::InlinedComposite>& regions) {
    for (const graph::InlinedComposite& region : regions)
      if (knows(*region.input.node) && knows(*region.result.node))
        ir_.regions.push_back({region.name, id_of(region.input), id_of(region.result)});
  }
  /// Returns the Ir, without what only composites read whose bodies do not.
  Ir finish() {
    sort_regions(ir_);
    return bodies_.empty() ? std::move(ir_) : eliminate_dead_code(std::move(ir_));
  }

 private:
  void add_input(const Source& source, const graph::Value& input) {
    const size_t k = ir_.inputs.size();
    check(ids_.insert(input.node.get(), ir_.size()).second, "import", "an input appears twice");
    ir_.inputs.push_back(ir_.size());
    const bool plain = k >= source.layouts.size() || source.layouts[k].strides.empty() ||
                       is_row_major(input.shape(), source.layouts[k].strides);
    // An input may be any node whose value is known, whose own attributes mean nothing for a parameter.
    const bool parameter = input.node->op() == Op::parameter;
    ir_.nodes.push_back(
        {Op::parameter, {}, parameter ? input.node->shared_attrs() : graph::SharedAttrs(), input.type(), plain});
  }

  /// Adds the nodes that `outputs` need and that are not there yet: first those that read no inlined composite.
  bool add(std::span<const graph::Value> outputs) {
    const graph::NodeRefs nodes = graph::reachable(outputs, [&](const graph::Node& node) { return knows(node); });
    if (!takes_control_ && std::ranges::any_of(nodes, [](auto* node) { return graph::is_control((*node)->op()); }))
      return false;
    ir_.nodes.reserve(ir_.nodes.size() + nodes.size());
    FlatSet follow;                                         // inlined composites, and what reads them
    std::vector<std::pair<const graph::Node*, bool>> rest;  // the same in their order; whether it is inlined
    for (const auto* ref : nodes) {
      const graph::Node& node = **ref;
      const bool inlined = graph::is_region(node) && !(kept_ && kept_(node));
      if (inlined ||
          std::ranges::any_of(node.inputs(), [&](const graph::Value& v) { return follow.contains(v.node.get()); })) {
        follow.insert(&node);
        rest.emplace_back(&node, inlined);
      } else {
        append(node);
      }
    }
    for (const auto& [node, inlined] : rest) {
      if (!inlined) append(*node);
      else if (!expand(*node)) return false;
    }
    return true;
  }

  /// Adds a composite's body in its place.
  bool expand(const graph::Node& node) {
    const graph::Values& results = bodies_.emplace_back(graph::body_of(node, node.inputs()));
    if (!add(results)) return false;
    std::vector<NodeId> ids;
    for (const graph::Value& v : results) ids.push_back(id_of(v));
    if (node.inputs().size() == 1 && ids.size() == 1)
      ir_.regions.push_back({node.attrs().composite->name, id_of(node.inputs()[0]), ids[0]});
    inlined_.insert(&node, static_cast<int>(results_.size()));
    results_.push_back(std::move(ids));
    return true;
  }

  void append(const graph::Node& node) {
    check(node.op() != Op::parameter && !node.storage(0), "import", "a leaf is not among the graph's inputs");
    if (node.op() == Op::scheduled) return schedule(node);
    const bool several = is_call(node.op()) || (node.op() == Op::reduce && node.outputs() > 1);
    check(node.outputs() == 1 || several, "import", "a primitive with several results");
    ids_.insert(&node, ir_.size());
    for (int k = 0; k < node.outputs(); ++k) {
      ir_.nodes.push_back({node.op(), {}, node.shared_attrs(), node.types()[static_cast<size_t>(k)], true, k});
      IrNode& flat = ir_.nodes.back();
      if (several) flat.results = node.types();
      flat.inputs.reserve(node.inputs().size());
      for (const graph::Value& v : node.inputs()) flat.inputs.push_back(id_of(v));
    }
  }

  /// Gives the input its steps: it is the node's value.
  void schedule(const graph::Node& node) {
    const NodeId value = id_of(node.inputs()[0]);
    ids_.insert(&node, value);
    ir_.scheduled.push_back({value, schedule::parse(node.attrs().call)});
  }

  bool knows(const graph::Node& node) const { return ids_.find(&node) >= 0 || inlined_.find(&node) >= 0; }
  NodeId id_of(const graph::Value& v) const {
    if (const int first = ids_.find(v.node.get()); first >= 0) return first + v.index;
    return results_[static_cast<size_t>(inlined_.find(v.node.get()))][static_cast<size_t>(v.index)];
  }

  const Kept& kept_;
  bool takes_control_ = false;
  Ir ir_;
  FlatMap ids_;                               // by node: that of its first result
  FlatMap inlined_;                           // by inlined composite: where its results are
  std::vector<std::vector<NodeId>> results_;  // those of inlined composites
  std::deque<graph::Values> bodies_;          // held, so that the address of a node means that node
};

}  // namespace

Ir import(const Source& source, const Kept& kept) {
  if (Importer direct(source, source.graph, kept); direct.run(source.graph.outputs, false)) return direct.finish();
  std::vector<graph::InlinedComposite> regions;
  const graph::Graph inlined = graph::inline_composites(source.graph, kept, regions);
  // Work that leaves a scan may have composites of its own.
  const graph::Graph simplified = graph::simplify_scans(graph::share_extended(inlined), kept);
  Importer importer(source, simplified, kept);
  importer.run(simplified.outputs, true);
  importer.add_regions(regions);
  return importer.finish();
}

}  // namespace weft::compiler
