#include "compiler/eager/pending.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include "base/error.h"
#include "base/flat_set.h"
#include "base/half.h"
#include "base/strided.h"
#include "compiler/eager/held.h"
#include "compiler/ir/index_map.h"
#include "compiler/ir/ir.h"
#include "compiler/layout/view.h"
#include "graph/build.h"
#include "runtime/executor.h"

namespace weft::compiler {

namespace {

/// Returns whether a literal stays a constant of the program. Frequent constants of formulas do, so that they can be
/// folded; any other literal becomes an input, so that a changing value (a learning rate) does not need a new program.
bool stays_in_code(Number n) {
  double v = n.real();
  return v == 0 || v == 1 || v == -1 || v == 2 || v == 0.5 || std::isinf(v);
}

/// Returns new host storage that holds one number in `dtype`.
graph::Storage scalar_storage(Dtype dtype, Number n) {
  graph::Storage storage{runtime::allocate(dtype.size()), 0, {}};
  void* at = storage.buffer->data();
  auto put = [&](auto v) { std::memcpy(at, &v, sizeof v); };
  switch (dtype.val()) {
    case Dtype::Val::float32: put(static_cast<float>(n.real())); break;
    case Dtype::Val::float64: put(n.real()); break;
    case Dtype::Val::float16: put(float_to_f16(static_cast<float>(n.real()))); break;
    case Dtype::Val::bfloat16: put(float_to_bf16(static_cast<float>(n.real()))); break;
    case Dtype::Val::float8_e4m3:
    case Dtype::Val::float8_e5m2: put(static_cast<uint8_t>(float_to_low(static_cast<float>(n.real()), dtype))); break;
    case Dtype::Val::bool_: put(static_cast<uint8_t>(n.i != 0)); break;
    case Dtype::Val::complex64: put(complex64_t(static_cast<float>(n.real()), 0)); break;
    case Dtype::Val::complex128: put(complex128_t(n.real(), 0)); break;
    default: std::memcpy(at, &n.i, dtype.size());  // little-endian: the low bytes
  }
  return storage;
}

/// Replaces computed nodes with several results by one leaf for each: a Program's input is one buffer.
graph::Values split_leaves(const graph::Values& outputs, const graph::NodeRefs& order) {
  graph::Values from, to;
  for (const std::shared_ptr<graph::Node>* node : order) {
    if (!(*node)->storage(0)) continue;
    for (int k = 0; (*node)->outputs() > 1 && k < (*node)->outputs(); ++k) {
      from.push_back({*node, k});
      to.push_back(graph::data((*node)->types()[static_cast<size_t>(k)], *(*node)->storage(k)));
    }
  }
  return graph::substitute(outputs, from, to);
}

/// Adds the pending values that a `depends` node ties to its results, so that they are computed as well.
void add_dependencies(const graph::Node& node, graph::Values& to) {
  if (node.op() != graph::Op::composite || node.attrs().composite->name != "depends") return;
  for (size_t k = static_cast<size_t>(node.outputs()); k < node.inputs().size(); ++k) {
    const graph::Value& v = node.inputs()[k];
    if (v.node->op() != graph::Op::constant && !v.node->storage(v.index)) to.push_back(v);
  }
}

/// The graph of a Program: a Source that has not been made yet, since most Programs are found by its digest.
struct PendingGraph {
  graph::Values outputs, dependencies;
  graph::NodeRefs order, inputs;
  std::vector<const Strides*> layouts;

  Digest digest() const { return source_digest(graph::digest(inputs, order, outputs), layouts, {}); }
  Source source() const {
    Source made{{{}, outputs}, {}, {}};
    for (const std::shared_ptr<graph::Node>* node : inputs) made.graph.inputs.push_back({*node, 0});
    for (const Strides* strides : layouts) made.layouts.push_back({*strides});
    return made;
  }
};

/// Finds the nodes that are computed, by views of them or themselves, and the values that need no Program.
void find_nodes(std::span<const graph::Value> values, Pending& pending, FlatSet& wanted) {
  for (const graph::Value& v : values) {
    if (v.node->storage(v.index) || !wanted.insert(v.node.get())) continue;
    if (!moves_only(v.node->op())) {
      pending.nodes.push_back(v.node);
    } else if (std::optional<graph::Storage> view = view_of(v)) {
      pending.views.emplace_back(v.node, std::move(*view));
    } else {
      const std::optional<graph::Value> base = packed_base(v);
      if (base) pending.views_of_results.push_back(v);
      if (!base || wanted.insert(base->node.get())) pending.nodes.push_back(base ? base->node : v.node);
    }
  }
}

graph::Values outputs_of(std::span<const std::shared_ptr<graph::Node>> nodes) {
  graph::Values outputs;
  outputs.reserve(nodes.size());
  for (const std::shared_ptr<graph::Node>& node : nodes)
    for (int k = 0; k < node->outputs(); ++k) outputs.push_back({node, k});
  return outputs;
}

/// Walks the graph of the nodes, and adds their Program's inputs, and nodes whose values are kept.
PendingGraph walk(Pending& pending, FlatSet& wanted, Keep keep) {
  static const Strides none;
  PendingGraph graph;
  graph.outputs = outputs_of(pending.nodes);
  graph.order = graph::reachable(graph.outputs);
  if (keep == Keep::held && keeps_held()) {
    const size_t asked = pending.nodes.size();
    find_nodes(held_values(graph.order), pending, wanted);
    const graph::Values kept = outputs_of(std::span(pending.nodes).subspan(asked));
    if (!kept.empty()) {
      graph.outputs.insert(graph.outputs.end(), kept.begin(), kept.end());
      graph.order = graph::reachable(graph.outputs);
    }
  }
  if (std::any_of(graph.order.begin(), graph.order.end(),
                  [](const auto* node) { return (*node)->storage(0) && (*node)->outputs() > 1; })) {
    graph.outputs = split_leaves(graph.outputs, graph.order);
    graph.order = graph::reachable(graph.outputs);
  }
  graph.inputs.reserve(graph.order.size());
  graph.layouts.reserve(graph.order.size());
  pending.inputs.reserve(graph.order.size());
  const auto add_input = [&](const std::shared_ptr<graph::Node>* node, const Strides& strides, graph::Storage storage) {
    graph.inputs.push_back(node);
    graph.layouts.push_back(&strides);
    pending.inputs.push_back(std::move(storage));
  };
  for (const std::shared_ptr<graph::Node>* ref : graph.order) {
    const graph::Node& node = **ref;
    if (const graph::Storage* storage = node.storage(0)) {
      add_input(ref, storage->strides, {storage->buffer, storage->offset, {}});
    } else if (node.op() == graph::Op::constant && node.attrs().literal && !stays_in_code(node.attrs().number) &&
               !wanted.contains(ref->get())) {
      add_input(ref, none, scalar_storage(node.types()[0].dtype, node.attrs().number));
    } else if (node.op() == graph::Op::composite) {
      add_dependencies(node, graph.dependencies);
    } else if (node.op() == graph::Op::parameter) {
      throw_invalid("eval",
                    "the value is being traced and has no data: it cannot be looked at inside grad, compile or another "
                    "transform");
    }
  }
  return graph;
}

/// Returns a row-major copy of a result that is an input passed through, if it is not row-major already.
graph::Storage packed(const graph::Type& type, graph::Storage storage) {
  if (is_row_major(type.shape, storage.strides)) return storage;
  graph::Storage copy{runtime::allocate(static_cast<size_t>(num_elements(type.shape)) * type.dtype.size()), 0,
                      row_major_strides(type.shape)};
  const auto* from =
      static_cast<const std::byte*>(storage.buffer->data()) + storage.offset * static_cast<int64_t>(type.dtype.size());
  copy_strided(from, storage.strides, copy.buffer->data(), copy.strides, type.shape, type.dtype.size());
  return copy;
}

}  // namespace

Pending collect(std::span<const graph::Value> values, target::Target& target, Unbuilt unbuilt, Keep keep) {
  Pending pending;
  FlatSet wanted;
  find_nodes(values, pending, wanted);
  if (pending.nodes.empty()) return pending;
  PendingGraph graph = walk(pending, wanted, keep);
  std::erase_if(graph.dependencies, [&](const graph::Value& v) { return wanted.contains(v.node.get()); });
  if (!graph.dependencies.empty()) {
    graph.dependencies.insert(graph.dependencies.end(), values.begin(), values.end());
    return collect(graph.dependencies, target, unbuilt, keep);
  }
  const DigestedPolicy& policy = eager_policy();
  pending.program = lookup(program_key(graph.digest(), target, policy.digest));
  if (unbuilt == Unbuilt::leave) return pending;
  if (!pending.program) pending.program = lookup_or_build(graph.source(), target, policy.policy);
  else if (pending.program->outgrown()) pending.program = rebuild(graph.source(), target, policy.policy);
  return pending;
}

void finish(Pending pending) {
  std::vector<Output> results;
  if (pending.program) {
    std::vector<const graph::Storage*> inputs;
    inputs.reserve(pending.inputs.size());
    for (const graph::Storage& input : pending.inputs) inputs.push_back(&input);
    results = pending.program->execute(inputs, {});
  }
  size_t next = 0;
  for (const auto& node : pending.nodes)
    for (int k = 0; k < node->outputs(); ++k, ++next)
      if (node->attrs().packed)
        results[next].storage = packed(node->types()[static_cast<size_t>(k)], std::move(results[next].storage));
  std::unique_lock lock(graph::structure());
  for (auto& [node, view] : pending.views)
    if (!node->storage(0)) node->materialise({std::move(view)});
  next = 0;
  for (const auto& node : pending.nodes) {
    std::vector<graph::Storage> computed(static_cast<size_t>(node->outputs()));
    for (graph::Storage& storage : computed) storage = std::move(results[next++].storage);
    if (!node->storage(0)) node->materialise(std::move(computed));
  }
  for (const graph::Value& v : pending.views_of_results)
    if (!v.node->storage(0)) v.node->materialise({*view_of(v)});
}

bool is_brief(const Pending& pending, target::Target& target) {
  constexpr size_t small = 4096;  // bytes that are copied to a device sooner than handed over
  if (!pending.program) return true;
  if (pending.program->host_seconds() > runtime::hand_over_seconds) return false;
  runtime::Accelerator* const device = target.device();
  const auto at_hand = [&](const graph::Storage& s) {
    return s.buffer->is_on(device) || (s.buffer->bytes() <= small && s.buffer->is_on(nullptr));
  };
  const auto is_packed = [](const auto& node) { return node->attrs().packed; };  // may be copied by the host
  return std::all_of(pending.inputs.begin(), pending.inputs.end(), at_hand) &&
         (!device || std::none_of(pending.nodes.begin(), pending.nodes.end(), is_packed));
}

}  // namespace weft::compiler
