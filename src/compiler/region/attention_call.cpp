#include "compiler/region/attention_call.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "compiler/ir/rewriter.h"
#include "compiler/region/attention_plan.h"

namespace weft::compiler {

namespace {

using Strides4 = kernel::AttentionDesc::Strides;

/// Merges the batch axes into two for all operands: those before `split`, and those from it on, which are the heads.
class Batch {
 public:
  Batch(std::span<const int64_t> extents, size_t split)
      : outer_(extents.first(split)), inner_(extents.subspan(split)) {}

  int64_t outer() const { return volume_of(outer_); }
  int64_t inner() const { return volume_of(inner_); }
  /// Returns false if the axes on a side of the split do not merge.
  bool strides(const AttentionOperand& x, Strides4& out) const {
    const std::span<const int64_t> all(x.batch);
    out = {0, 0, x.row, x.column};
    return merge(outer_, all.first(outer_.size()), out[0]) &&
           merge(inner_, all.subspan(outer_.size(), inner_.size()), out[1]);
  }

 private:
  static int64_t volume_of(std::span<const int64_t> extents) {
    int64_t n = 1;
    for (const int64_t extent : extents) n *= extent;
    return n;
  }
  /// Finds the stride of axes that lie in memory as one.
  static bool merge(std::span<const int64_t> extents, std::span<const int64_t> strides, int64_t& stride) {
    int64_t expected = -1;
    for (size_t k = extents.size(); k-- > 0;) {
      if (extents[k] == 1) continue;
      if (expected < 0) stride = strides[k];
      else if (strides[k] != expected) return false;
      expected = strides[k] * extents[k];
    }
    return true;
  }

  std::span<const int64_t> outer_, inner_;
};

bool is_static_region(const AttentionPlan& plan) { return plan.tq.is_static() && plan.tk.is_static(); }

/// Returns the call with the batch axes from `split` on as heads; nothing if the axes of an operand do not merge so.
std::optional<AttentionCall> split_call(const AttentionPlan& plan, const Numerics& numerics, size_t split) {
  const graph::AttentionRegion& region = plan.region;
  const Batch batch(plan.batch, split);
  AttentionCall call;
  kernel::AttentionDesc& d = call.desc;
  d.dtype = plan.q.dtype;
  // Where the last batch axis repeats keys and values, its heads share them.
  const bool shared = !d.derivative && split < plan.batch.size() && plan.batch.back() > 1 && plan.k.node >= 0 &&
                      plan.v.node >= 0 && plan.k.batch.back() == 0 && plan.v.batch.back() == 0;
  const Batch key_batch(std::span(plan.batch).first(plan.batch.size() - shared), split);
  d.batch = batch.outer(), d.heads = batch.inner(), d.kv_heads = key_batch.inner();
  d.queries = plan.tq.bound(), d.keys = plan.tk.bound();
  d.width = plan.width, d.value_width = plan.value_width;
  d.scale = region.scale, d.causal = region.causal, d.derivative = region.derivative, d.numerics = numerics;
  bool fits = true;
  /// A result without readers is row-major in temporary memory.
  const auto add = [&](const AttentionOperand& x, int64_t rows, int64_t columns, Strides4& strides, bool keys = false) {
    if (x.node >= 0) {
      fits = fits && (keys ? key_batch : batch).strides(x, strides);
      call.operands.push_back({x.node, x.offset * x.dtype.size(), 0});
      return;
    }
    strides = {d.heads * rows * columns, rows * columns, columns, 1};
    call.operands.push_back({-1, 0, d.batch * d.heads * rows * columns * d.dtype.size()});
  };
  add(plan.q, d.queries, d.width, d.q);
  add(plan.k, d.keys, d.width, d.k, true);
  add(plan.v, d.keys, d.value_width, d.v, true);
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

}  // namespace

std::optional<AttentionCall> attention_call(const AttentionPlan& plan, const Numerics& numerics) {
  const graph::AttentionRegion& region = plan.region;
  if (region.mask || region.dropout > 0 || !is_static_region(plan)) return {};
  if (region.causal && region.offset != plan.tk.bound() - plan.tq.bound()) return {};
  // The last axis is the heads unless operands lie in another way, as those of grouped heads do.
  for (size_t split = plan.batch.size(); split-- > 0;)
    if (std::optional<AttentionCall> call = split_call(plan, numerics, split)) return call;
  if (plan.batch.empty()) return split_call(plan, numerics, 0);
  return {};
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

bool keeps_attention(const graph::Node& region, const target::Target& target, const Policy& policy) {
  return (target.machine().simt && takes_single_query(region)) ||
         takes_tiled_attention(region, target.machine(), policy.numerics) ||
         (policy.libraries && library_takes_attention(region, target, policy.numerics));
}

namespace {

/// Returns whether a node is a broadcast along the last batch axis alone: matrices that some heads share.
bool repeats_for_heads(const Ir& ir, NodeId id) {
  const IrNode& n = ir[id];
  if (n.op != graph::Op::broadcast) return false;
  const Shape &from = ir[n.inputs[0]].type.shape, &to = n.type.shape;
  if (from.size() != to.size() || to.size() < 3) return false;
  for (size_t k = 0; k < to.size(); ++k)
    if (k + 3 != to.size() && !(from[k] == to[k])) return false;
  return true;
}

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

/// Adds the copies. Nodes are results of one call only if they read the same operands (call_key), so each operand has
/// one copy, which the derivative reads as well.
class OperandPacker : Rewriter {
 public:
  explicit OperandPacker(Ir ir) : Rewriter(std::move(ir)) {}

  Ir run() {
    for (const IrNode& node : from_.nodes)
      if (is_attention(node) && node.attrs->composite->attention->derivative)
        of_derivatives_.insert(node.inputs.begin(), node.inputs.end());
    const bool any = std::any_of(from_.nodes.begin(), from_.nodes.end(), [&](const IrNode& node) {
      for (size_t k = 0; k < node.inputs.size(); ++k)
        if (packs(node, k)) return true;
      return false;
    });
    if (!any) return std::move(from_);
    return rewrite([&](NodeId id, IrNode node) -> NodeId {
      for (size_t k = 0; k < node.inputs.size(); ++k)
        if (const NodeId operand = from_[id].inputs[k]; packs(from_[id], k))
          node.inputs[k] = shares(from_[id], k) ? repeated(operand) : packed(operand);
      return add(std::move(node));
    });
  }

 private:
  /// Returns whether operand k of the node is one of attention that is copied.
  bool packs(const IrNode& node, size_t k) const {
    if (!is_attention(node)) return false;
    const graph::AttentionRegion& region = *node.attrs->composite->attention;
    const bool lse = region.derivative && k + 2 == node.inputs.size();
    const bool key = region.dropout > 0 && k == (region.mask ? 4u : 3u);
    if (lse || key || is_single_query(region, *(from_[node.inputs[0]].type.shape.end() - 2))) return false;
    return !keeps_rows(from_, shares(node, k) ? from_[node.inputs[k]].inputs[0] : node.inputs[k]);
  }

  /// Returns whether operand k is keys or values that lie in memory once for all heads that share them. Where there are
  /// derivatives, each head has its own, and reads a copy of its own.
  bool shares(const IrNode& node, size_t k) const {
    if (k != 1 && k != 2) return false;
    const auto shared = [&](NodeId id) { return repeats_for_heads(from_, id) && !of_derivatives_.contains(id); };
    return shared(node.inputs[1]) && shared(node.inputs[2]);
  }

  NodeId repeated(NodeId operand) {
    IrNode node = from_[operand];
    node.inputs[0] = packed(node.inputs[0]);
    return add(std::move(node));
  }

  NodeId packed(NodeId operand) {
    NodeId& copy = copies_.try_emplace(operand, -1).first->second;
    if (copy >= 0) return copy;
    const graph::Type& type = from_[operand].type;
    const graph::Op op = type.dtype == bool_ ? graph::Op::cast : graph::Op::bitcast;  // a mask has no bits to keep
    IrNode node = made(op, {renamed(operand)}, type.shape, type.dtype);
    node.attrs.edit().dtype = type.dtype;  // its own: a copy that is stored as an elementwise value
    return copy = add(std::move(node));
  }

  std::map<NodeId, NodeId> copies_;  // by operand
  std::set<NodeId> of_derivatives_;  // operands that derivatives of attention read
};

}  // namespace

Ir pack_attention_operands(Ir ir) { return OperandPacker(std::move(ir)).run(); }

}  // namespace weft::compiler
