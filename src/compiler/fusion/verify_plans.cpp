// Rules of groups with a plan: the layouts in its descriptor match those of the arrays in memory.
#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "compiler/fusion/group_check.h"
#include "compiler/region/attention_plan.h"
#include "compiler/region/dot_plan.h"
#include "compiler/region/kv_append.h"

namespace weft::compiler {

using graph::Op;

namespace {

/// Axes as (extent, stride in elements).
using Axes = std::vector<std::pair<int64_t, int64_t>>;

/// Returns a form that is equal for all descriptions of the same elements, whatever the order of the axes: axes of one
/// element or stride 0 are dropped, and axes that continue each other are merged.
Axes canonical(Axes axes) {
  std::erase_if(axes, [](const auto& a) { return a.first == 1 || a.second == 0; });
  std::sort(axes.begin(), axes.end(), [](const auto& a, const auto& b) {
    return std::tuple(std::abs(a.second), a.second, a.first) > std::tuple(std::abs(b.second), b.second, b.first);
  });
  Axes out;
  for (const auto& [extent, stride] : axes) {
    if (!out.empty() && out.back().second == extent * stride) out.back() = {out.back().first * extent, stride};
    else out.emplace_back(extent, stride);
  }
  return out;
}

Axes axes_of(const Shape& shape, const std::vector<int64_t>& strides) {
  Axes out;
  for (size_t k = 0; k < shape.size(); ++k) out.emplace_back(shape[k].bound(), strides[k]);
  return canonical(std::move(out));
}

/// Returns how far the last element of axes lies behind their first.
int64_t furthest(const Axes& axes) {
  int64_t at = 0;
  for (const auto& [extent, stride] : axes) at += std::max<int64_t>(0, (extent - 1) * stride);
  return at;
}

/// Returns the position of the furthest of `extent` elements along an axis: the last one, or the last one before a
/// jump back.
int64_t furthest(int64_t stride, const kernel::Jump& jump, int64_t extent) {
  const auto at = [&](int64_t i) { return i * stride + jump.at(i); };
  if (extent <= jump.period || jump.period == 0) return at(extent - 1);
  return std::max({at(extent - 1), at(jump.period - 1), at(extent / jump.period * jump.period - 1)});
}

/// Returns whether movement leads from `base` to `node`.
bool moves_to(const Ir& ir, NodeId node, NodeId base) {
  while (node != base && is_movement(ir[node].op) && ir[node].op != Op::concat) node = ir[node].inputs[0];
  return node == base;
}

void results_are(const GroupCheck& c, std::vector<NodeId> expected, std::string_view rule) {
  std::erase(expected, -1);
  std::vector<NodeId> made;
  for (const Root& root : c.group().roots) made.push_back(root.node);
  std::sort(expected.begin(), expected.end());
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  std::sort(made.begin(), made.end());
  c.require(made == expected, rule, c.group().roots[0].node);
}

/// Returns the dot that a group's first root is computed from, through nodes of this group alone.
NodeId dot_of(const GroupCheck& c) {
  std::vector<NodeId> pending{c.group().roots[0].node}, seen;
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    if (std::find(seen.begin(), seen.end(), id) != seen.end()) continue;
    seen.push_back(id);
    if (c.ir[id].op == Op::dot) return id;
    for (const NodeId input : c.ir[id].inputs)
      if (!is_leaf(c.ir, input) && (!c.grouping.is_root[input] || c.grouping.group_of[input] == c.g))
        pending.push_back(input);
  }
  c.fail("a matmul's group computes a matmul", c.group().roots[0].node);
}

class DotVerifier {
 public:
  explicit DotVerifier(const GroupCheck& check)
      : c_(check), ir_(check.ir), plan_(check.group().dot), desc_(plan_.desc), result_(check.group().roots[0].node) {}

  void run() const {
    operands();
    const NodeId dot = dot_of(c_);
    const IrNode& n = ir_[dot];
    sizes(n);
    if (plan_.a_prologue.empty())
      view(n.inputs[0], plan_.a, desc_.a, side(desc_.a_batch, desc_.m, desc_.a_m, desc_.k, desc_.a_k));
    else prologue(n.inputs[0], plan_.a_prologue, desc_.m);
    if (plan_.b_prologue.empty())
      view(n.inputs[1], plan_.b, desc_.b, side(desc_.b_batch, desc_.k, desc_.b_k, desc_.n, desc_.b_n));
    else prologue(n.inputs[1], plan_.b_prologue, desc_.n);
    require(desc_.c == ir_[result_].type.dtype, "a matmul's dtypes are its descriptor's");
    require(side(desc_.c_batch, desc_.m, desc_.c_m, desc_.n, desc_.c_n) ==
                axes_of(ir_[result_].type.shape, c_.grouping.strides[result_]),
            "a matmul's result lies as its descriptor says");
    epilogue();
  }

 private:
  void require(bool ok, std::string_view rule) const { c_.require(ok, rule, result_); }

  void operands() const {
    for (const NodeId id : plan_.reads()) c_.require(c_.in_memory(id), "a matmul's operand lies in memory", id);
    std::vector<NodeId> results{result_, plan_.sum};
    results.insert(results.end(), plan_.stored.begin(), plan_.stored.end());
    results_are(c_, results, "a matmul's group makes its results");
  }

  void sizes(const IrNode& n) const {
    int64_t batch = 1, depth = 1;
    for (const int64_t extent : desc_.batch) batch *= extent;
    for (const int64_t axis : n.attrs->axes) depth *= ir_[n.inputs[0]].type.shape[static_cast<size_t>(axis)].bound();
    require(batch * desc_.m * desc_.n == volume(n.type.shape) && desc_.k == depth,
            "a matmul's extents are its descriptor's");
    const size_t axes = desc_.batch.size();
    require(desc_.a_batch.size() == axes && desc_.b_batch.size() == axes && desc_.c_batch.size() == axes &&
                plan_.extents.size() == axes + 3,
            "a matmul's extents are its descriptor's");
    std::vector<int64_t> extents = desc_.batch;
    extents.insert(extents.end(), {desc_.m, desc_.n, desc_.k});
    for (size_t k = 0; k < extents.size(); ++k)
      require(plan_.extents[k].bound() == extents[k], "a matmul's extents are its descriptor's");
  }

  Axes side(const std::vector<int64_t>& batch, int64_t rows, int64_t row, int64_t columns, int64_t column) const {
    Axes out{{rows, row}, {columns, column}};
    for (size_t k = 0; k < batch.size(); ++k) out.emplace_back(desc_.batch[k], batch[k]);
    return canonical(std::move(out));
  }

  void view(NodeId operand, const OperandView& at, Dtype dtype, const Axes& lies) const {
    require(ir_[operand].type.dtype == dtype && ir_[at.node].type.dtype == dtype,
            "a matmul's dtypes are its descriptor's");
    if (desc_.k == 0 || volume(ir_[result_].type.shape) == 0) return;  // nothing is read
    const auto view = strided_view(ir_, c_.grouping.strides, c_.grouping.is_root, operand);
    c_.require(view && view->node == at.node && view->offset == at.offset &&
                   axes_of(ir_[operand].type.shape, view->strides) == lies,
               "a matmul's operand lies as its descriptor says", operand);
  }

  /// Requires that each array exists, has its step's dtype, and is not read past its last element, wherever its strides
  /// place that.
  void reach(const std::vector<kernel::EpilogueOperand>& operands, const std::vector<OperandView>& views, int64_t m,
             int64_t n, const char* rule) const {
    require(operands.size() == views.size(), rule);
    for (size_t k = 0; k < operands.size(); ++k) {
      const kernel::EpilogueOperand& x = operands[k];
      const NodeId node = views[k].node;
      const graph::Type& type = ir_[node].type;
      Axes batch, stored;
      for (size_t axis = 0; axis < x.batch.size(); ++axis) batch.emplace_back(desc_.batch[axis], x.batch[axis]);
      for (size_t axis = 0; axis < type.shape.size(); ++axis)
        stored.emplace_back(type.shape[axis].bound(), c_.grouping.strides[node][axis]);
      const int64_t last = views[k].offset + furthest(x.m, x.m_jump, m) + furthest(x.n, x.n_jump, n) + furthest(batch);
      const bool inside = last <= furthest(stored);
      c_.require(type.dtype == x.dtype && x.batch.size() == desc_.batch.size() &&
                     (inside || volume(ir_[result_].type.shape) == 0 || desc_.k == 0),
                 rule, node);
    }
  }

  void prologue(NodeId operand, const DotPrologue& p, int64_t extent) const {
    constexpr const char* rule = "what a matmul computes of an operand is the operand";
    kernel::verify(p.steps, true);
    require(p.steps.steps[static_cast<size_t>(p.steps.result)].dtype == ir_[operand].type.dtype && !plan_.library,
            rule);
    reach(p.steps.operands, p.operands, extent, desc_.k, rule);
  }

  void epilogue() const {
    constexpr const char* rule = "what follows a matmul is its descriptor's";
    const kernel::Epilogue& e = plan_.epilogue;
    kernel::verify(e);
    require(!e.steps.empty() && e.stored.size() == plan_.stored.size() &&
                e.steps[static_cast<size_t>(e.result)].dtype == desc_.c &&
                (desc_.sum != kernel::OperandSum::none) == (plan_.sum >= 0),
            rule);
    reach(e.operands, plan_.operands, desc_.m, desc_.n, rule);
    for (size_t k = 0; k < plan_.stored.size(); ++k) {
      const NodeId id = plan_.stored[k];
      c_.require(ir_[id].type.dtype == e.steps[static_cast<size_t>(e.stored[k])].dtype &&
                     ir_[id].type.shape == ir_[result_].type.shape &&
                     c_.grouping.strides[id] == c_.grouping.strides[result_],
                 rule, id);
    }
    const int64_t sums = desc_.sum == kernel::OperandSum::a   ? desc_.m
                         : desc_.sum == kernel::OperandSum::b ? desc_.n
                                                              : desc_.m / kernel::rows_of_a_sum * desc_.n;
    if (plan_.sum >= 0) c_.require(volume(ir_[plan_.sum].type.shape) == sums, rule, plan_.sum);
    require(!plan_.library || plan_.asked, "a library is asked for what it computes");
  }

  const GroupCheck& c_;
  const Ir& ir_;
  const DotPlan& plan_;
  const kernel::DotDesc& desc_;
  const int result_;
};

class AttentionVerifier {
 public:
  explicit AttentionVerifier(const GroupCheck& check)
      : c_(check), ir_(check.ir), plan_(check.group().attention), node_(find_attention()) {}

  /// Requires that each operand and result lies as planned: of a combination of splits, forward or backward.
  void run() const {
    const IrNode& n = ir_[node_];
    const size_t count = n.inputs.size();
    const Dim pieces = plan_.splits > 0 ? Dim(plan_.splits) : plan_.tq;
    if (plan_.join) {
      operand(plan_.v, 0, plan_.tk, plan_.value_width);
      operand(plan_.k, 1, plan_.tk, 0);
      return result(plan_.o, 0, plan_.tq, plan_.value_width);
    }
    if (plan_.cache < 0) operand(plan_.q, 0, plan_.tq, plan_.width);
    else c_.require(c_.in_memory(plan_.cache) && writes_operand(ir_[plan_.cache].op), array, plan_.cache);
    operand(plan_.k, 1, plan_.tk, plan_.width);
    operand(plan_.v, 2, plan_.tk, plan_.value_width);
    c_.require(plan_.region.mask == (plan_.mask.node >= 0), array, node_);
    if (plan_.region.mask) operand(plan_.mask, 3, plan_.tq, plan_.tk.bound());
    c_.require((plan_.region.dropout > 0) == (plan_.key.node >= 0), array, node_);
    if (!plan_.region.derivative) {
      result(plan_.o, 0, pieces, plan_.value_width);
      return result(plan_.lse, 1, pieces, 0);
    }
    operand(plan_.o, count - 3, plan_.tq, plan_.value_width);
    operand(plan_.lse, count - 2, plan_.tq, 0);
    operand(plan_.g, count - 1, plan_.tq, plan_.value_width);
    result(plan_.dq, 0, plan_.tq, plan_.width);
    result(plan_.dk, 1, plan_.tk, plan_.width);
    result(plan_.dv, 2, plan_.tk, plan_.value_width);
  }

 private:
  static constexpr const char* array = "an array of attention lies as its plan says";

  /// Returns the node of the attention: a root of the group, or what is moved into the array that packs its results.
  NodeId find_attention() const {
    NodeId id = c_.group().roots[0].node;
    while (!is_attention(ir_[id]) && is_movement(ir_[id].op)) id = ir_[id].inputs[0];
    c_.require(is_attention(ir_[id]), "attention's group computes attention", c_.group().roots[0].node);
    return id;
  }

  Axes lies(const AttentionOperand& x, const Dim& rows, int64_t columns) const {
    Axes axes{{rows.bound(), x.row}};
    if (columns > 0) axes.emplace_back(columns, x.column);
    c_.require(x.batch.size() == plan_.batch.size(), array, x.node);
    for (size_t k = 0; k < x.batch.size(); ++k) axes.emplace_back(plan_.batch[k], x.batch[k]);
    return canonical(std::move(axes));
  }

  void operand(const AttentionOperand& x, size_t number, const Dim& rows, int64_t columns) const {
    const NodeId id = ir_[node_].inputs[number];
    c_.require(c_.in_memory(x.node), "what attention reads lies in memory", x.node);
    const auto view = strided_view(ir_, c_.grouping.strides, c_.grouping.is_root, id);
    c_.require(view && view->node == x.node && view->offset == x.offset && x.dtype == ir_[id].type.dtype &&
                   axes_of(ir_[id].type.shape, view->strides) == lies(x, rows, columns),
               array, id);
  }

  /// Requires that a result lies in its own buffer as planned, or within the array that packs the results.
  void result(const AttentionOperand& x, int number, const Dim& rows, int64_t columns) const {
    if (x.node < 0) return;
    c_.require(c_.in_memory(x.node) && c_.grouping.group_of[x.node] == c_.g, "attention's group makes its results",
               x.node);
    const IrNode& n = ir_[x.node];
    c_.require(x.dtype == n.type.dtype, array, x.node);
    const Axes axes = lies(x, rows, columns);
    if (is_attention(n))
      return c_.require(
          n.output == number && x.offset == 0 && axes == axes_of(n.type.shape, c_.grouping.strides[x.node]), array,
          x.node);
    int64_t last = x.offset, elements = 1;
    for (const auto& [extent, stride] : axes) {
      last += (extent - 1) * stride;
      elements *= extent;
    }
    c_.require(x.offset >= 0 && last < volume(n.type.shape) &&
                   elements == volume(ir_[node_].results[static_cast<size_t>(number)].shape),
               array, x.node);
  }

  const GroupCheck& c_;
  const Ir& ir_;
  const AttentionPlan& plan_;
  const int node_;
};

}  // namespace

void verify_dot(const GroupCheck& check) { DotVerifier(check).run(); }

void verify_attention(const GroupCheck& check) { AttentionVerifier(check).run(); }

/// Requires that a call has the operands, results and descriptor of its node.
void verify_call(const GroupCheck& check) {
  constexpr const char* rule = "a call's plan has its operands and results";
  const Ir& ir = check.ir;
  const CallPlan& plan = check.group().call;
  const IrNode& n = ir[check.group().roots[0].node];
  const int first = check.group().roots[0].node;
  check.require(plan.op == n.op && plan.operands.size() == n.inputs.size() && plan.results.size() == n.results.size() &&
                    plan.desc.inputs.size() == n.inputs.size() && plan.desc.outputs.size() == n.results.size(),
                rule, first);
  for (size_t k = 0; k < n.inputs.size(); ++k) {
    const NodeId operand = plan.operands[k];
    const graph::Type& type = ir[n.inputs[k]].type;
    check.require(check.in_memory(operand), "what a call reads lies in memory", operand);
    check.require(moves_to(ir, n.inputs[k], operand) && ir[operand].type.dtype == type.dtype &&
                      volume(ir[operand].type.shape) == volume(type.shape),
                  rule, operand);
    check.require(plan.desc.inputs[k].dtype == type.dtype && plan.desc.inputs[k].extents == bounds(type.shape),
                  "a call's arrays are its descriptor's", n.inputs[k]);
  }
  results_are(check, plan.results, "a call's group makes its results");
  for (size_t k = 0; k < n.results.size(); ++k) {
    const kernel::CallDesc::Array& array = plan.desc.outputs[k];
    check.require(array.dtype == n.results[k].dtype && array.extents == bounds(n.results[k].shape) &&
                      array.used == (plan.results[k] >= 0),
                  "a call's arrays are its descriptor's", first);
    if (const NodeId id = plan.results[k]; id >= 0)
      check.require(ir[id].output == static_cast<int>(k) && ir[id].inputs == n.inputs && ir[id].op == n.op, rule, id);
  }
}

void verify_scatter(const GroupCheck& check) {
  const Group& group = check.group();
  if (!group.scatter_rows) return;
  constexpr const char* rule = "what a scatter of rows reads is its descriptor's";
  const ScatterRows& sums = *group.scatter_rows;
  const Ir& ir = check.ir;
  check.require(sums.desc.inputs.size() == 2 && sums.desc.outputs.size() == 1, rule, group.roots[0].node);
  const auto is = [&](NodeId id, const kernel::CallDesc::Array& array) {
    int64_t elements = 1;
    for (const int64_t extent : array.extents) elements *= extent;
    check.require(ir[id].type.dtype == array.dtype && volume(ir[id].type.shape) == elements, rule, id);
  };
  for (const NodeId id : {sums.ids, sums.updates})
    check.require(check.in_memory(id), "what a scatter of rows reads lies in memory", id);
  is(sums.ids, sums.desc.inputs[0]);
  is(sums.updates, sums.desc.inputs[1]);
  is(group.roots[0].node, sums.desc.outputs[0]);
}

std::vector<NodeId> waited_for(const GroupCheck& check) {
  std::vector<NodeId> out;
  if (check.group().kind != Group::Kind::dot) return out;
  for (NodeId id : check.ir[dot_of(check)].inputs)
    for (; is_movement(check.ir[id].op) && !check.in_memory(id); id = check.ir[id].inputs[0])
      if (const std::vector<NodeId>& inputs = check.ir[id].inputs; check.ir[id].op == Op::depends)
        out.insert(out.end(), inputs.begin() + 1, inputs.end());
  return out;
}

std::vector<NodeId> planned_reads(const GroupCheck& check) {
  const Group& group = check.group();
  std::vector<NodeId> reads;
  if (group.kind == Group::Kind::call) reads = group.call.operands;
  if (group.kind == Group::Kind::attention) {
    const AttentionPlan& plan = group.attention;
    reads = {plan.q.node, plan.k.node, plan.v.node, plan.mask.node, plan.key.node};
    if (plan.cache >= 0) reads = {plan.mask.node};
    if (plan.region.derivative) reads.insert(reads.end(), {plan.o.node, plan.lse.node, plan.g.node});
  }
  if (group.kind == Group::Kind::dot) {
    reads = group.dot.reads();
  }
  std::erase(reads, -1);
  return reads;
}

}  // namespace weft::compiler
