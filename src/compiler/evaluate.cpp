// Eager evaluation: the pending graph behind some values becomes a Program (looked up by structure), is run, and its nodes are materialised.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/half.h"
#include "compiler/program.h"
#include "graph/build.h"

namespace weft::compiler {

namespace {

/// Numbers that users write again and again in formulas stay in the code, where they can be folded; any other literal is data, so that a changing
/// number (a learning rate) does not mean a new program.
bool stays_in_code(Number n) {
  double v = n.real();
  return v == 0 || v == 1 || v == -1 || v == 2 || v == 0.5 || std::isinf(v);
}

graph::Storage scalar_storage(Dtype dtype, Number n) {
  graph::Storage storage{runtime::allocate(dtype.size), 0, {}};
  void* at = storage.buffer->data();
  auto put = [&](auto v) { std::memcpy(at, &v, sizeof v); };
  switch (dtype.val) {
    case Dtype::Val::float32: put(static_cast<float>(n.real())); break;
    case Dtype::Val::float64: put(n.real()); break;
    case Dtype::Val::float16: put(float_to_f16(static_cast<float>(n.real()))); break;
    case Dtype::Val::bfloat16: put(float_to_bf16(static_cast<float>(n.real()))); break;
    case Dtype::Val::bool_: put(static_cast<uint8_t>(n.i != 0)); break;
    case Dtype::Val::complex64: throw_invalid("eval", "complex64 literals cannot be evaluated");
    default: std::memcpy(at, &n.i, dtype.size);  // little-endian: the low bytes
  }
  return storage;
}

struct Pending {
  Source source;
  std::vector<graph::Storage> inputs;
  std::vector<std::shared_ptr<graph::Node>> nodes;  // whose outputs the graph's outputs are, in order
};

/// Computed nodes with several results become one leaf for each: a Program's input is one buffer.
graph::Values split_leaves(const graph::Values& outputs) {
  graph::Values from, to;
  for (const auto& node : graph::topological(outputs)) {
    if (!node->storage(0) || node->outputs() == 1) continue;
    for (int k = 0; k < node->outputs(); ++k) {
      from.push_back({node, k});
      to.push_back(graph::data(node->types()[static_cast<size_t>(k)], *node->storage(k)));
    }
  }
  return from.empty() ? outputs : graph::substitute(outputs, from, to);
}

Pending collect(std::span<const graph::Value> values) {
  Pending pending;
  std::set<const graph::Node*> wanted;
  for (const graph::Value& v : values) {
    if (v.node->storage(v.index) || !wanted.insert(v.node.get()).second) continue;
    pending.nodes.push_back(v.node);
    for (int k = 0; k < v.node->outputs(); ++k) pending.source.graph.outputs.push_back({v.node, k});
  }
  pending.source.graph.outputs = split_leaves(pending.source.graph.outputs);
  for (const auto& node : graph::topological(pending.source.graph.outputs)) {
    const graph::Attrs& attrs = node->attrs();
    if (const graph::Storage* storage = node->storage(0)) {
      pending.source.graph.inputs.push_back({node, 0});
      pending.source.layouts.push_back({storage->strides});
      pending.inputs.push_back(*storage);
    } else if (node->op() == graph::Op::constant && attrs.literal && !stays_in_code(attrs.number) && !wanted.contains(node.get())) {
      pending.source.graph.inputs.push_back({node, 0});
      pending.source.layouts.push_back({});
      pending.inputs.push_back(scalar_storage(node->types()[0].dtype, attrs.number));
    } else if (node->op() == graph::Op::parameter) {
      throw_invalid("eval", "the value is being traced and has no data: it cannot be looked at inside grad, compile or another transform");
    }
  }
  return pending;
}

}  // namespace

void evaluate(std::span<const graph::Value> values) {
  static auto& executor = *new std::mutex;  // one executor: evaluations of several threads take turns
  std::lock_guard turn(executor);
  Pending pending;
  {
    std::shared_lock lock(graph::structure());
    pending = collect(values);
  }
  if (pending.nodes.empty()) return;
  auto program = lookup_or_build(pending.source, default_target());
  std::vector<graph::Storage> results = program->run(pending.inputs);
  std::unique_lock lock(graph::structure());
  size_t next = 0;
  for (const auto& node : pending.nodes) {
    auto begin = results.begin() + static_cast<std::ptrdiff_t>(next);
    next += static_cast<size_t>(node->outputs());
    node->materialise(std::vector<graph::Storage>(begin, results.begin() + static_cast<std::ptrdiff_t>(next)));
  }
}

}  // namespace weft::compiler
