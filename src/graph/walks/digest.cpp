// The structural digest of a graph: operators, attributes, types and edges. Graphs with the same structure have the
// same digest.
#include <bit>

#include "base/flat_set.h"
#include "base/hash.h"
#include "graph/calls/kernel_call.h"
#include "graph/control/control.h"

namespace weft::graph {

namespace {

void hash_shape(Hasher& h, const Shape& shape) {
  h.number(shape.size());
  for (const Dim& d : shape) {
    h.number(2 * static_cast<uint64_t>(d.bound()) + (d.symbol() ? 1 : 0));
    if (d.symbol()) h.text(d.symbol()->name);
  }
}

void hash_list(Hasher& h, const std::vector<int64_t>& v) {
  h.number(v.size()).bytes(v.data(), v.size() * sizeof(int64_t));
}

}  // namespace

/// Most attributes are unset: hashes which ones are set, then their values.
void hash(Hasher& h, const Attrs& a) {
  const auto lists = {&a.axes, &a.axes2, &a.batch, &a.batch2, &a.start,
                      &a.step, &a.low,   &a.high,  &a.window, &a.integers};
  uint64_t given = 0;
  for (const auto* list : lists) given = 2 * given + (list->empty() ? 0 : 1);
  const bool number = a.number.i != 0 || std::bit_cast<uint64_t>(a.number.f) != 0;
  for (const bool there : {!a.shape.empty(), number, a.number.integral, !a.call.empty(), a.control != nullptr,
                           a.composite != nullptr, a.kernel != nullptr})
    given = 2 * given + (there ? 1 : 0);
  for (const auto small : {static_cast<uint64_t>(a.dtype.val()), static_cast<uint64_t>(a.reducer),
                           static_cast<uint64_t>(a.mode), static_cast<uint64_t>(a.generator)})
    given = given << 8 | small;
  h.number(given);
  for (const auto* list : lists)
    if (!list->empty()) hash_list(h, *list);
  if (!a.shape.empty()) hash_shape(h, a.shape);
  if (number) h.number(a.number.i).number(a.number.f);
  if (!a.call.empty()) h.text(a.call);
  if (a.control) h.digest(a.control->key);
  if (a.composite) h.text(a.composite->name).text(a.composite->key);
  if (a.kernel) h.digest(a.kernel->key);
}

namespace {

/// Hashes nodes in the order in which they are numbered: inputs by their types alone, then each new node.
class GraphHasher {
 public:
  void add_input(const Node& node, const Type& type) {
    ids_.insert(&node, ids_.size());
    hash_shape(h_, type.shape);
    h_.number(type.dtype.val());
  }
  void add(const Node& node) {
    if (!ids_.insert(&node, ids_.size()).second) return;
    h_.number(node.op());
    hash(h_, node.attrs());
    h_.number(node.inputs().size());
    for (const Value& v : node.inputs()) add_use(v);
    for (const Type& t : node.types()) {
      hash_shape(h_, t.shape);
      h_.number(t.dtype.val());
    }
  }
  void add_use(const Value& v) { h_.number(ids_.find(v.node.get())).number(v.index); }
  Digest finish() const { return h_.finish(); }

 private:
  Hasher h_;
  FlatMap ids_;
};

}  // namespace

Digest digest(const Graph& graph) {
  GraphHasher hasher;
  for (const Value& v : graph.inputs) hasher.add_input(*v.node, v.type());
  for (const std::shared_ptr<Node>* node : reachable(graph.outputs)) hasher.add(**node);
  for (const Value& v : graph.outputs) hasher.add_use(v);
  return hasher.finish();
}

Digest digest(const NodeRefs& inputs, const NodeRefs& nodes, std::span<const Value> outputs) {
  GraphHasher hasher;
  for (const std::shared_ptr<Node>* input : inputs) hasher.add_input(**input, (*input)->types()[0]);
  for (const std::shared_ptr<Node>* node : nodes) hasher.add(**node);
  for (const Value& v : outputs) hasher.add_use(v);
  return hasher.finish();
}

}  // namespace weft::graph
