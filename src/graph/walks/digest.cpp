// The structural digest of a graph: operators, attributes, types and edges. Graphs with the same structure have the
// same digest.
#include <bit>

#include "base/flat_set.h"
#include "base/hash.h"
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
  for (const bool there :
       {!a.shape.empty(), number, a.number.integral, !a.call.empty(), a.control != nullptr, a.composite != nullptr})
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
}

Digest digest(const Graph& graph) {
  Hasher h;
  FlatMap ids;
  for (const Value& v : graph.inputs) {
    ids.insert(v.node.get(), ids.size());
    hash_shape(h, v.shape());
    h.number(v.dtype().val());
  }
  for (const auto& node : topological(graph.outputs)) {
    if (!ids.insert(node.get(), ids.size()).second) continue;
    h.number(node->op());
    hash(h, node->attrs());
    h.number(node->inputs().size());
    for (const Value& v : node->inputs()) h.number(ids.find(v.node.get())).number(v.index);
    for (const Type& t : node->types()) {
      hash_shape(h, t.shape);
      h.number(t.dtype.val());
    }
  }
  for (const Value& v : graph.outputs) h.number(ids.find(v.node.get())).number(v.index);
  return h.finish();
}

}  // namespace weft::graph
