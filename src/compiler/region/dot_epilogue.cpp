#include "compiler/region/dot_epilogue.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "compiler/layout/view.h"
#include "graph/table.h"

namespace weft::compiler {

using graph::Op;
using ix::Expr;
using Kind = kernel::EpilogueStep::Kind;

namespace {

constexpr int64_t most_arrays = 8;    // that it reads: parameters of a kernel
constexpr size_t most_reads = 24;     // and numbers, which eager code passes as well
constexpr size_t most_computed = 24;  // values of operands: what is read elsewhere as well is computed twice

/// Returns the constant that every element of a node equals, through movement.
std::optional<NodeId> constant_of(const Ir& ir, NodeId id) {
  while (ir[id].op == Op::broadcast || ir[id].op == Op::reshape || ir[id].op == Op::permute) id = ir[id].inputs[0];
  if (ir[id].op != Op::constant || is_complex(ir[id].type.dtype)) return {};
  return id;
}

bool in_memory(const Ir& ir, const NodeFlags& roots, NodeId id) { return is_leaf(ir, id) || roots[id]; }

/// Builds the steps of an epilogue. Values are shared by node and index.
class EpilogueWriter {
 public:
  /// `shape`: of the matrix whose elements are computed.
  EpilogueWriter(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, const Shape& shape)
      : ir_(ir), strides_(strides), roots_(roots), shape_(shape), vars_(domain(cx_, shape, "i")) {}

  EpilogueParts epilogue(const DotRegion& region) {
    own_ = region.values;
    own_.insert(own_.begin(), region.dot);
    append({Kind::dot, ir_[region.dot].type.dtype, {}, {}, 0, {}});
    steps_[{region.dot, {}}] = 0;
    for (const NodeId id : region.values) value(id, vars_);
    out_.epilogue.result = step_of(region.result);
    for (const NodeId id : region.stored) out_.epilogue.stored.push_back(step_of(id));
    add_functions();
    kernel::verify(out_.epilogue);
    return std::move(out_);
  }

  EpilogueParts prologue(NodeId operand) {
    out_.epilogue.result = value(operand, vars_);
    kernel::verify(out_.epilogue, true);
    return std::move(out_);
  }

 private:
  using Key = std::pair<NodeId, std::vector<const ix::Node*>>;

  bool own(NodeId id) const { return std::binary_search(own_.begin(), own_.end(), id); }

  int step_of(NodeId id) const { return steps_.at({id, {}}); }

  int append(kernel::EpilogueStep step) {
    out_.epilogue.steps.push_back(std::move(step));
    return static_cast<int>(out_.epilogue.steps.size()) - 1;
  }

  Key key(NodeId id, const std::vector<Expr>& index) const {
    Key key{id, {}};
    if (own(id)) return key;  // read at the element itself alone
    for (const Expr e : index) key.second.push_back(e.get());
    return key;
  }

  int value(NodeId id, const std::vector<Expr>& index) {
    const Key at = key(id, index);
    if (const auto known = steps_.find(at); known != steps_.end()) return known->second;
    return steps_[at] = make(id, index);
  }

  int make(NodeId id, const std::vector<Expr>& index) {
    const IrNode& n = ir_[id];
    if (const auto constant = constant_of(ir_, id)) {
      kernel::EpilogueStep step{Kind::constant, n.type.dtype, {}, {}, 0, {}};
      step.number = ir_[*constant].attrs->number;
      return append(std::move(step));
    }
    if (!own(id) && in_memory(ir_, roots_, id)) return operand(id, index);
    if (is_movement(n.op)) {
      const Access access = push(cx_, ir_, id, index);
      return value(access.node, access.index);
    }
    if (n.op == Op::add && n.fused) return fused_multiply_add(id, index);
    kernel::EpilogueStep step{n.op == Op::cast ? Kind::cast : Kind::scalar, n.type.dtype, {}, {}, 0, {}};
    for (const NodeId input : n.inputs) step.inputs.push_back(value(input, index));
    if (step.kind == Kind::scalar) step.op = static_cast<kernel::ScalarOp>(graph::row(n.op).scalar);
    return append(std::move(step));
  }

  /// Writes a + b · c with one rounding (IrNode::fused).
  int fused_multiply_add(NodeId id, const std::vector<Expr>& index) {
    const IrNode &sum = ir_[id], &product = ir_[sum.inputs[1]];
    kernel::EpilogueStep step{Kind::scalar, sum.type.dtype, kernel::ScalarOp::fma, {}, 0, {}};
    for (const NodeId input : {product.inputs[0], product.inputs[1], sum.inputs[0]})
      step.inputs.push_back(value(input, index));
    return append(std::move(step));
  }

  int operand(NodeId id, const std::vector<Expr>& index) {
    const Strides layout = strides_[id].empty() ? row_major_strides(ir_[id].type.shape) : strides_[id];
    const std::optional<Jumping> form = jumping(ix::linear(cx_, index, layout), vars_);
    if (!form) throw_internal("epilogue", "an operand is not read at strides: " + print(ir_, id));
    std::vector<AxisLayout> axes;
    for (size_t k = 0; k < vars_.size(); ++k) axes.push_back({form->strides[k], form->jumps[k]});
    const Dtype dtype = ir_[id].type.dtype;
    out_.epilogue.operands.push_back({dtype, {}, 0, 0});
    out_.operands.push_back({id, form->base});
    out_.axes.push_back(std::move(axes));
    return append({Kind::operand, dtype, {}, {}, static_cast<int>(out_.operands.size()) - 1, {}});
  }

  /// Adds the inlined regions whose arguments and results are steps, of several steps of one node the first.
  void add_functions() {
    NodeId before;
    for (const auto& [key, result] : steps_) {
      if (std::exchange(before, key.first) == key.first || ir_[key.first].type.shape != shape_) continue;
      for (const InlinedRegion& f : regions_of(ir_, key.first)) {
        const auto input = steps_.lower_bound({f.input, {}});
        if (input != steps_.end() && input->first.first == f.input && result > input->second)
          out_.epilogue.functions.push_back({f.name, input->second, result});
      }
    }
  }

  const Ir& ir_;
  const NodeStrides& strides_;
  const NodeFlags& roots_;
  const Shape& shape_;
  std::vector<NodeId> own_;  // ascending: the dot and the values of its region
  ix::Context cx_;
  std::vector<Expr> vars_;
  std::map<Key, int> steps_;
  EpilogueParts out_;
};

}  // namespace

bool EpilogueReads::add(NodeId id, const std::vector<Expr>& index) {
  if (std::find(nodes.begin(), nodes.end(), id) == nodes.end()) nodes.push_back(id);
  // Each index by itself is affine, so that the address is whatever layout the buffer gets; an input has its layout.
  const auto plain = [&](Expr e) {
    const auto form = ix::affine(e, vars);
    return form && form->base.is_constant();
  };
  const auto is_array = [&](NodeId read) { return volume(ir[read].type.shape) > 1; };
  if (nodes.size() > most_reads || std::count_if(nodes.begin(), nodes.end(), is_array) > most_arrays) return false;
  if (std::all_of(index.begin(), index.end(), plain)) return true;
  if (is_leaf(ir, id) && plain(ix::linear(cx, index, strides[id]))) return true;
  return jumps && adds_with_jumps(id, index);
}

/// The address of an input is known. In another array a variable that jumps occurs in one index alone, so that the
/// address has one jump whatever layout the buffer gets.
bool EpilogueReads::adds_with_jumps(NodeId id, const std::vector<Expr>& index) {
  if (is_leaf(ir, id)) return jumping(ix::linear(cx, index, strides[id]), vars).has_value();
  std::vector<int> uses(vars.size()), jumping_uses(vars.size());
  for (const Expr e : index) {
    const std::optional<Jumping> form = jumping(e, vars);
    if (!form) return false;
    for (size_t k = 0; k < vars.size(); ++k) {
      const bool jumps_here = form->jumps[k].period > 0;
      uses[k] += jumps_here || form->strides[k] != 0;
      jumping_uses[k] += jumps_here;
    }
  }
  for (size_t k = 0; k < vars.size(); ++k)
    if (jumping_uses[k] > 0 && uses[k] > 1) return false;
  return true;
}

/// Returns whether a small value of a prologue is a conversion of what lies in memory in fewer bytes: the scales of
/// groups, which are converted as they are read.
bool EpilogueReads::widened_when_read(const IrNode& n) const {
  return jumps && n.op == Op::cast && volume(n.type.shape) < full && in_memory(ir, roots, n.inputs[0]) &&
         ir[n.inputs[0]].type.dtype.size() < n.type.dtype.size();
}

bool EpilogueReads::computable(NodeId id, const std::vector<Expr>& index) {
  if (constant_of(ir, id)) return true;
  const IrNode& n = ir[id];
  if (is_complex(n.type.dtype)) return false;
  if (in_memory(ir, roots, id)) return add(id, index);
  if (is_movement(n.op)) {
    if (n.op == Op::concat || n.op == Op::depends) return false;
    const Access access = push(cx, ir, id, index);
    return !access.valid && computable(access.node, access.index);
  }
  if (!is_elementwise(n.op) || n.op == Op::bitcast) return false;
  if (widened_when_read(n)) return computable(n.inputs[0], index);  // once for the elements that share it
  if (volume(n.type.shape) < full) {
    made.push_back(id);
    return add(id, index);
  }
  std::vector<const ix::Node*> at;
  for (const Expr e : index) at.push_back(e.get());
  if (!computed.insert({id, std::move(at)}).second) return true;  // by another of its readers
  return computed.size() <= most_computed &&
         std::all_of(n.inputs.begin(), n.inputs.end(), [&](NodeId input) { return computable(input, index); });
}

EpilogueParts epilogue_of(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, const DotRegion& region) {
  return EpilogueWriter(ir, strides, roots, ir[region.dot].type.shape).epilogue(region);
}

EpilogueParts prologue_of(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, NodeId operand) {
  return EpilogueWriter(ir, strides, roots, ir[operand].type.shape).prologue(operand);
}

}  // namespace weft::compiler
