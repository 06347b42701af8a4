#include "compiler/region/kv_append.h"

#include <algorithm>
#include <optional>
#include <set>

#include "compiler/ir/index_map.h"
#include "compiler/region/attention_plan.h"
#include "graph/node.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;

namespace {

/// Returns the node behind reshapes, broadcasts and casts between integers of at least 32 bits, which all preserve
/// numbers below 2³¹.
NodeId scalar_source(const Ir& ir, NodeId id) {
  const auto is_whole = [&](NodeId node) { return is_integer(ir[node].type.dtype) && ir[node].type.dtype.size() >= 4; };
  while (ir[id].op == Op::reshape || ir[id].op == Op::broadcast ||
         (ir[id].op == Op::cast && is_whole(id) && is_whole(ir[id].inputs[0])))
    id = ir[id].inputs[0];
  return id;
}

/// Returns whether `index` is `count` - 1.
bool is_last_of(const Ir& ir, int index, int count) {
  const IrNode& n = ir[scalar_source(ir, index)];
  const auto is = [&](NodeId id, double v) {
    return ir[scalar_source(ir, id)].op == Op::constant && ir[scalar_source(ir, id)].attrs->number.real() == v;
  };
  const auto counted = [&](NodeId id) { return scalar_source(ir, id) == scalar_source(ir, count); };
  if (n.op == Op::sub) return counted(n.inputs[0]) && is(n.inputs[1], 1);
  return n.op == Op::add &&
         ((counted(n.inputs[0]) && is(n.inputs[1], -1)) || (counted(n.inputs[1]) && is(n.inputs[0], -1)));
}

/// Returns whether only the region reads the node, through movement, and as keys or values alone.
bool read_by_region_alone(const Ir& ir, const Users& users, NodeId node, NodeId attention) {
  const std::string call = call_key(ir[attention]);
  std::vector<NodeId> pending{node};
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    for (const int reader : users[id]) {
      const IrNode& n = ir[reader];
      if (is_movement(n.op) && n.op != Op::concat && n.op != Op::depends) pending.push_back(reader);
      else if (!is_attention(n) || call_key(n) != call || n.inputs[0] == id || n.inputs[3] == id) return false;
    }
  }
  return true;
}

/// Returns whether a node is a scatter that sets one position along one axis and everything along the others.
bool appends_one_row(const Ir& ir, NodeId node) {
  const IrNode& n = ir[node];
  if (n.op != Op::scatter || n.attrs->mode != graph::ScatterMode::set || n.attrs->axes.size() != 1 ||
      !is_static(n.type.shape))
    return false;
  const Shape& updates = ir[n.inputs.back()].type.shape;
  const size_t points = updates.size() - n.type.shape.size();
  for (size_t axis = 0; axis < updates.size(); ++axis) {
    const bool single = axis < points || static_cast<int64_t>(axis - points) == n.attrs->axes[0];
    if (!(updates[axis] == (single ? Dim(1) : n.type.shape[axis - points]))) return false;
  }
  return true;
}

/// Returns the offsets in `cache` at which the rows of keys (or values) at position 0 begin, one for each head; nothing
/// if the operand does not consist of whole rows of `cache`.
std::optional<std::set<int64_t>> rows_of(const Ir& ir, NodeId operand, NodeId cache) {
  const Shape &shape = ir[operand].type.shape, &whole = ir[cache].type.shape;
  const size_t rank = shape.size(), axis = static_cast<size_t>(ir[cache].attrs->axes[0]);
  if (!is_static(shape)) return {};
  ix::Context cx;
  const std::vector<Expr> at = domain(cx, shape, "i");
  const Access access = peel(cx, ir, operand, at);
  if (access.node != cache || access.valid || axis + 1 >= whole.size() || at[rank - 2].is_constant() ||
      !(access.index[axis] == at[rank - 2]))
    return {};
  if (!(access.index.back() == at[rank - 1]) || !(whole.back() == shape.back()) || !(whole[axis] == shape[rank - 2]))
    return {};
  const auto form = ix::affine(ix::linear(cx, access.index, row_major_strides(whole)), at);
  if (!form || !form->base.is_constant()) return {};
  std::set<int64_t> starts{form->base->value};
  for (size_t k = 0; k + 2 < rank; ++k) {
    std::set<int64_t> next;
    for (const int64_t start : starts)
      for (int64_t digit = 0; digit < shape[k].bound(); ++digit)
        next.insert(start + (at[k].is_constant() ? 0 : digit * form->coefficients[k]));
    starts = std::move(next);
  }
  return starts;
}

}  // namespace

NodeId kv_append(const Ir& ir, const Users& users, NodeId attention) {
  const IrNode& n = ir[attention];
  if (!is_attention(n) || n.inputs.size() != 4 || !n.attrs->integers.empty() ||
      !is_single_query(*n.attrs->composite->attention, *(ir[n.inputs[0]].type.shape.end() - 2)))
    return -1;
  if (!is_integer(ir[n.inputs[3]].type.dtype)) return -1;
  NodeId cache = n.inputs[1];
  while (is_movement(ir[cache].op) && ir[cache].op != Op::concat) cache = ir[cache].inputs[0];
  if (!appends_one_row(ir, cache) || !is_last_of(ir, ir[cache].inputs[1], n.inputs[3]) ||
      !read_by_region_alone(ir, users, cache, attention))
    return -1;
  const auto keys = rows_of(ir, n.inputs[1], cache), values = rows_of(ir, n.inputs[2], cache);
  if (!keys || !values) return -1;
  std::set<int64_t> rows = *keys;
  rows.insert(values->begin(), values->end());
  return static_cast<int64_t>(rows.size()) * ir[cache].type.shape.back().bound() ==
                 volume(ir[ir[cache].inputs.back()].type.shape)
             ? cache
             : NodeId{};
}

}  // namespace weft::compiler
