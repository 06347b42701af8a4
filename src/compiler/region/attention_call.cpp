#include "compiler/region/attention_call.h"

#include <algorithm>

#include "compiler/region/attention_plan.h"

namespace weft::compiler {

namespace {

using Strides4 = kernel::AttentionDesc::Strides;

/// Merges the batch axes into two for all operands: the last axis, and the others as one.
class Batch {
 public:
  explicit Batch(const std::vector<int64_t>& extents) : extents_(extents) {}

  int64_t outer() const {
    int64_t n = 1;
    for (size_t k = 0; k + 1 < extents_.size(); ++k) n *= extents_[k];
    return n;
  }
  int64_t inner() const { return extents_.empty() ? 1 : extents_.back(); }
  /// Returns false if the axes before the last do not merge.
  bool strides(const AttentionOperand& x, Strides4& out) const {
    out = {0, extents_.empty() ? 0 : x.batch.back(), x.row, x.column};
    bool known = false;
    int64_t expected = 0;
    for (size_t k = extents_.size() - std::min<size_t>(extents_.size(), 1); k-- > 0;) {
      if (extents_[k] == 1) continue;
      if (!known) out[0] = x.batch[k];
      else if (x.batch[k] != expected) return false;
      known = true;
      expected = x.batch[k] * extents_[k];
    }
    return true;
  }

 private:
  const std::vector<int64_t>& extents_;
};

bool is_static_region(const AttentionPlan& plan) { return plan.tq.is_static() && plan.tk.is_static(); }

}  // namespace

std::optional<AttentionCall> attention_call(const AttentionPlan& plan, const Numerics& numerics) {
  const graph::AttentionRegion& region = plan.region;
  if (region.mask || !is_static_region(plan)) return {};
  if (region.causal && region.offset != plan.tk.bound() - plan.tq.bound()) return {};
  const Batch batch(plan.batch);
  AttentionCall call;
  kernel::AttentionDesc& d = call.desc;
  d.dtype = plan.q.dtype;
  d.batch = batch.outer(), d.heads = d.kv_heads = batch.inner();
  d.queries = plan.tq.bound(), d.keys = plan.tk.bound();
  d.width = plan.width, d.value_width = plan.value_width;
  d.scale = region.scale, d.causal = region.causal, d.derivative = region.derivative, d.numerics = numerics;
  bool fits = true;
  /// A result without readers is row-major in temporary memory.
  const auto add = [&](const AttentionOperand& x, int64_t rows, int64_t columns, Strides4& strides) {
    if (x.node >= 0) {
      fits = fits && batch.strides(x, strides);
      call.operands.push_back({x.node, x.offset * x.dtype.size(), 0});
      return;
    }
    strides = {d.heads * rows * columns, rows * columns, columns, 1};
    call.operands.push_back({-1, 0, d.batch * d.heads * rows * columns * d.dtype.size()});
  };
  add(plan.q, d.queries, d.width, d.q);
  add(plan.k, d.keys, d.width, d.k);
  add(plan.v, d.keys, d.value_width, d.v);
  add(plan.o, d.queries, d.value_width, d.o);
  if (plan.lse.node >= 0) {
    Strides4 rows{};
    fits = fits && batch.strides(plan.lse, rows) && plan.lse.row == 1 && (d.heads == 1 || rows[1] == d.queries) &&
           (d.batch == 1 || rows[0] == d.heads * d.queries);
    call.operands.push_back({plan.lse.node, plan.lse.offset * plan.lse.dtype.size(), 0});
  } else {
    call.operands.push_back({-1, 0, d.batch * d.heads * d.queries * static_cast<int64_t>(float32.size())});
  }
  if (d.derivative) {
    add(plan.g, d.queries, d.value_width, d.g);
    add(plan.dq, d.queries, d.width, d.dq);
    add(plan.dk, d.keys, d.width, d.dk);
    add(plan.dv, d.keys, d.value_width, d.dv);
  }
  if (!fits) return {};
  return call;
}

bool library_takes_attention(const graph::Node& region, const target::Target& target, const Numerics& numerics) {
  const auto& composite = region.attrs().composite;
  if (region.op() != graph::Op::composite || !composite->attention) return false;
  AttentionPlan plan;
  plan.region = *composite->attention;
  const graph::Type &q = region.inputs()[0].type(), &v = region.inputs()[2].type();
  const size_t axes = q.shape.size() - 2;
  for (const Shape* shape : {&q.shape, &v.shape})
    for (const Dim& d : *shape)
      if (!d.is_static() || d.bound() < 1) return false;
  for (size_t k = 0; k < axes; ++k) plan.batch.push_back(q.shape[k].bound());
  plan.tq = q.shape[axes], plan.tk = v.shape[axes];
  plan.width = q.shape[axes + 1].bound(), plan.value_width = v.shape[axes + 1].bound();
  plan.q.dtype = q.dtype;
  const std::optional<AttentionCall> call = attention_call(plan, numerics);  // every operand row-major
  return call && target.attention(call->desc) != nullptr;
}

bool has_attention_class(const target::Target& target) { return target.machine().holds_attention_tiles(); }

bool keeps_attention(const graph::Node& region, const target::Target& target, const Policy& policy) {
  return (has_attention_class(target) && takes_attention(region)) ||
         (target.machine().simt && takes_single_query(region)) ||
         (policy.libraries && library_takes_attention(region, target, policy.numerics));
}

namespace {

/// Returns whether a node is a view of a value other than a constant through reshapes, permutes and slices that keep
/// rows contiguous. Slices of rows must start at multiples of 8.
bool keeps_rows(const Ir& ir, NodeId id) {
  for (;;) {
    const IrNode& n = ir[id];
    if (!is_movement(n.op)) return n.op != graph::Op::constant;
    const int64_t last = static_cast<int64_t>(n.type.shape.size()) - 1;
    if (n.op == graph::Op::permute) {
      if (n.attrs->axes[static_cast<size_t>(last)] != last) return false;
    } else if (n.op == graph::Op::slice) {
      if (n.attrs->step[static_cast<size_t>(last)] != 1 || n.attrs->start[static_cast<size_t>(last)] % 8 != 0)
        return false;
    } else if (n.op == graph::Op::reshape) {
      // The reshape must keep rows or split them evenly: the last extent after it divides the one before.
      const Shape& before = ir[n.inputs[0]].type.shape;
      if (before.empty() || !before.back().is_static() || before.back().bound() % n.type.shape.back().bound() != 0)
        return false;
    } else {
      return false;
    }
    id = n.inputs[0];
  }
}

}  // namespace

Ir pack_attention_operands(Ir from) {
  const auto packs = [&](const IrNode& node, NodeId operand, size_t k) {
    const bool lse = node.attrs->composite->attention->derivative && k + 2 == node.inputs.size();
    return !lse && !keeps_rows(from, operand);
  };
  const auto is_wide = [&](const IrNode& node) {
    return is_attention(node) &&
           !is_single_query(*node.attrs->composite->attention, *(from[node.inputs[0]].type.shape.end() - 2));
  };
  const bool any = std::any_of(from.nodes.begin(), from.nodes.end(), [&](const IrNode& node) {
    if (!is_wide(node)) return false;
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (packs(node, node.inputs[k], k)) return true;
    return false;
  });
  if (!any) return from;
  Ir to;
  IndexedVector<NodeId, NodeId> renamed;
  for (IrNode node : from.nodes) {
    const bool attention = is_wide(node);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      NodeId& input = node.inputs[k];
      const NodeId old = input;
      input = renamed[old];
      if (!attention || !packs(node, old, k)) continue;
      IrNode packed;
      packed.op = graph::Op::bitcast;  // to its own dtype: a copy that is stored as an elementwise value
      packed.inputs = {input};
      packed.type = from[old].type;
      packed.attrs.edit().dtype = packed.type.dtype;
      packed.phase = node.phase;
      to.nodes.push_back(std::move(packed));
      input = to.size() - 1;
    }
    to.nodes.push_back(std::move(node));
    renamed.push_back(to.size() - 1);
  }
  for (NodeId id : from.inputs) to.inputs.push_back(renamed[id]);
  for (NodeId id : from.outputs) to.outputs.push_back(renamed[id]);
  return to;
}

}  // namespace weft::compiler
