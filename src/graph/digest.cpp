// The structural digest of a graph: operators, attributes, types and who reads whom; the same for graphs that mean the same in the same way.
#include <unordered_map>

#include "base/hash.h"
#include "graph/control.h"

namespace weft::graph {

namespace {

void hash_shape(Hasher& h, const Shape& shape) {
  h.number(shape.size());
  for (const Dim& d : shape) {
    h.number(d.bound());
    h.text(d.symbol() ? d.symbol()->name : "");
  }
}

void hash_list(Hasher& h, const std::vector<int64_t>& v) { h.number(v.size()).bytes(v.data(), v.size() * sizeof(int64_t)); }

}  // namespace

void hash(Hasher& h, const Attrs& a) {
  for (const auto* list : {&a.axes, &a.axes2, &a.batch, &a.batch2, &a.start, &a.step, &a.low, &a.high, &a.window}) hash_list(h, *list);
  hash_shape(h, a.shape);
  h.number(a.dtype.val).number(a.number.integral).number(a.number.i).number(a.number.f).number(a.reducer).number(a.mode).number(a.generator);
  h.text(a.call);
  hash_list(h, a.integers);
  if (a.control) h.digest(a.control->key);
  if (a.composite) h.text(a.composite->name).text(a.composite->key);
}

Digest digest(const Graph& graph) {
  Hasher h;
  std::unordered_map<const Node*, int> ids;
  for (const Value& v : graph.inputs) {
    ids[v.node.get()] = static_cast<int>(ids.size());
    hash_shape(h, v.shape());
    h.number(v.dtype().val);
  }
  for (const auto& node : topological(graph.outputs)) {
    if (ids.contains(node.get())) continue;
    ids[node.get()] = static_cast<int>(ids.size());
    h.number(node->op());
    hash(h, node->attrs());
    h.number(node->inputs().size());
    for (const Value& v : node->inputs()) h.number(ids.at(v.node.get())).number(v.index);
    for (const Type& t : node->types()) {
      hash_shape(h, t.shape);
      h.number(t.dtype.val);
    }
  }
  for (const Value& v : graph.outputs) h.number(ids.at(v.node.get())).number(v.index);
  return h.finish();
}

}  // namespace weft::graph
