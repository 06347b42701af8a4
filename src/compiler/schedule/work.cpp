#include "compiler/schedule/work.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "compiler/ir/index_map.h"
#include "compiler/region/kv_append.h"
#include "graph/calls/kernel_call.h"
#include "graph/table.h"

namespace weft::compiler {

namespace {

using graph::Op;

Arithmetic group_arithmetic(const Group& group) {
  switch (group.kind) {
    case Group::Kind::dot: return arithmetic_of(group.dot.desc.a, group.dot.desc.numerics.tf32);
    case Group::Kind::attention: return arithmetic_of(group.attention.q.dtype, false);
    case Group::Kind::call:
      if (group.call.kernel) return arithmetic_of(group.call.kernel->work.operands, group.call.kernel->work.tf32);
      return group.call.desc.name.starts_with("convolution")
                 ? arithmetic_of(group.call.desc.inputs[0].dtype, group.call.desc.numerics.tf32)
                 : Arithmetic::vector;
    default: return Arithmetic::vector;
  }
}

/// Returns "kernel softmax (softmax.cpp:31)".
std::string name_of(const graph::KernelProgram& kernel) {
  const std::string name = "kernel " + kernel.kernel.name;
  return kernel.where.empty() ? name : name + " (" + kernel.where + ")";
}

/// Walks from a group's results to the memory that it reads, and records the number of elements needed of each node.
class Walk {
 public:
  Walk(const BufferView& cx, const Group& group) : cx_(cx), group_(group) {
    for (const Root& r : group.roots) own_.insert(r.node);
    work_.launch.arithmetic = group_arithmetic(group);
    if (const NodeId cache = overlaid(group); cache >= 0 && group.kind == Group::Kind::attention)
      move(cache, elements(cache) * static_cast<double>(cx_.ir[cache].type.dtype.size()));
  }

  GroupWork run() {
    for (const NodeId root : own_) {
      compute(root, elements(root));
      if (cx_.has_buffer[root]) move(root, written(root));
    }
    for (const auto& [node, count] : seen_) {
      const IrNode& n = cx_.ir[node];
      if (is_memory(node)) {
        move(node, count * static_cast<double>(n.type.dtype.size()));
        continue;
      }
      if (n.op == Op::reduce && n.attrs->axes.back() + 1 == cx_.ir[n.inputs[0]].type.rank())
        work_.launch.row_sums += count;
      const double flops = count * flops_of(node);
      work_.launch.flops += flops;
      if (n.op == Op::dot || is_call(n.op)) work_.launch.products += flops;
      else work_.launch.operations += n.op == Op::reduce ? flops : count * operations_of(n);
    }
    if (group_.call.kernel) add_kernel(group_.call.kernel->work);
    work_.what = describe();
    return work_;
  }

 private:
  /// Returns the operators in order, at most eight, and the type of the largest result.
  std::string describe() const {
    constexpr size_t most = 8;
    std::vector<std::string> names;
    for (const auto& [node, count] : seen_) {
      const IrNode& n = cx_.ir[node];
      if (is_memory(node) || is_movement(n.op) || n.op == Op::constant || n.op == Op::cast || n.op == Op::stop_gradient)
        continue;
      const std::string name = n.op == Op::reduce      ? std::string(kernel::name(n.attrs->reducer))
                               : n.attrs->kernel       ? name_of(*n.attrs->kernel)
                               : n.op == Op::call      ? n.attrs->call
                               : n.op == Op::composite ? n.attrs->composite->name
                                                       : std::string(graph::row(n.op).name);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    if (names.empty()) names.push_back("copy");
    std::string text;
    for (size_t k = 0; k < std::min(names.size(), most); ++k) text += names[k] + " ";
    if (names.size() > most) text += "… ";
    if (own_.empty()) return text;
    const int largest =
        *std::max_element(own_.begin(), own_.end(), [&](int a, int b) { return elements(a) < elements(b); });
    return text + "-> " + graph::to_string(cx_.ir[largest].type);
  }

  void add_kernel(const graph::KernelWork& kernel) {
    work_.launch.flops += kernel.operations + kernel.products;
    work_.launch.products += kernel.products;
    work_.launch.operations += kernel.operations;
  }

  void move(NodeId node, double bytes) {
    work_.launch.bytes += bytes;
    work_.buffers[cx_.buffer_owner[node]] += bytes;
  }

  double elements(NodeId node) const { return static_cast<double>(volume(cx_.ir[node].type.shape)); }
  bool is_memory(NodeId node) const {
    return is_leaf(cx_.ir, node) || (cx_.grouping.is_root[node] && !own_.contains(node));
  }

  /// Returns the bytes that a result writes. A scatter counts only what it updates; the rest of its operand was there
  /// before. A sorted one sums the updates of an element before it adds them.
  double written(NodeId node) const {
    const IrNode& n = cx_.ir[node];
    const double size = n.type.dtype.size();
    if (n.op != Op::scatter) return elements(node) * size;
    const bool reads_too = n.attrs->mode != graph::ScatterMode::set;
    const double updates = elements(n.inputs.back());
    return (n.sorted ? std::min(updates, elements(node)) : updates) * size * (reads_too ? 2 : 1);
  }

  /// Returns the operations for each element of a node that is needed. For a reduction, those of its operand.
  double flops_of(NodeId node) const {
    const IrNode& n = cx_.ir[node];
    if (n.op == Op::reduce) return elements(n.inputs[0]) / std::max(elements(node), 1.0);
    if (n.op == Op::dot) {
      double contracted = 1;
      for (const int64_t axis : n.attrs->axes)
        contracted *= static_cast<double>(cx_.ir[n.inputs[0]].type.shape[static_cast<size_t>(axis)].bound());
      return 2 * contracted;
    }
    if (n.op == Op::scatter)
      return n.attrs->mode == graph::ScatterMode::set ? 0 : elements(n.inputs.back()) / std::max(elements(node), 1.0);
    if (n.op == Op::composite)
      return n.output == 0 ? (n.attrs->composite->attention ? attention(n) : convolution(n, elements(node))) /
                                 std::max(elements(node), 1.0)
                           : 0;
    if (n.op == Op::cast || n.op == Op::bitcast || n.op == Op::stop_gradient) return 0;
    return is_elementwise(n.op) ? 1 : 0;
  }

  /// Returns the operations of attention: two matmuls forward and five backward, half of each under a causal mask.
  double attention(const IrNode& n) const {
    const graph::AttentionRegion& region = *n.attrs->composite->attention;
    if (n.inputs.size() == 2) return 2 * elements(n.inputs[0]);  // combination of splits
    const Shape& keys = cx_.ir[n.inputs[1]].type.shape;
    return (region.derivative ? 10 : 4) * elements(n.inputs[0]) * static_cast<double>(keys[keys.size() - 2].bound()) *
           (region.causal ? 0.5 : 1);
  }

  /// Returns the operations of a convolution. Forward (x, w): a multiply-add for each element of w's kernel and
  /// channels, for each element of the result. Input gradient (g, w): the same for each element of g. Weight gradient
  /// (x, g): one for each example and position. Products with the zeros between the elements of a dilated input do not
  /// count.
  double convolution(const IrNode& n, double results) const {
    const graph::Composite& region = *n.attrs->composite;
    const bool weights = region.call == "convolution_weights", input = region.call == "convolution_input";
    if (!weights && !input && region.call != "convolution") return 0;
    const Shape& w = cx_.ir[n.inputs[1]].type.shape;  // or the shape of g [examples, positions…, channels]
    const double each =
        elements(n.inputs[1]) / std::max(1.0, static_cast<double>((weights ? w.back() : w.front()).bound()));
    double between = 1;
    const size_t space = w.size() - 2;
    for (size_t k = 0; k < space; ++k) between *= static_cast<double>(region.integers[1 + 4 * space + k]);
    return 2 * (input ? elements(n.inputs[0]) : results) * each / between;
  }

  void look(NodeId node, double count) {
    count = std::min(count, elements(node));
    double& known = seen_.try_emplace(node, -1.0).first->second;
    if (known >= count) return;
    known = count;
    if (!is_memory(node)) descend(node, count);
  }
  void compute(NodeId node, double count) {
    seen_[node] = count;
    descend(node, count);
  }

  /// Returns how many elements all slices of a slice's operand read: two of them seldom read the same ones.
  double read_by_slices(NodeId slice, double count) {
    std::map<NodeId, double>& all = slices_[cx_.ir[slice].inputs[0]];
    all[slice] = count;
    double sum = 0;
    for (const auto& [node, elements] : all) sum += elements;
    return sum;
  }

  void descend(NodeId node, double count) {
    const IrNode& n = cx_.ir[node];
    const bool part = is_movement(n.op) || is_elementwise(n.op);
    for (size_t k = 0; k < n.inputs.size(); ++k) {
      if (n.op == Op::scatter && k == 0) continue;  // already in the result's buffer
      if (n.op == Op::slice) {
        look(n.inputs[k], read_by_slices(node, count));
        continue;
      }
      const bool sparse = part || (n.op == Op::gather && k == 0);
      look(n.inputs[k], sparse ? count : elements(n.inputs[k]));
    }
  }

  const BufferView& cx_;
  const Group& group_;
  std::set<NodeId> own_;
  std::map<NodeId, double> seen_;                      // by node: elements
  std::map<NodeId, std::map<NodeId, double>> slices_;  // by operand: elements that each slice of it reads
  GroupWork work_;
};

}  // namespace

GroupWork work_of(const BufferView& view, const Group& group) { return Walk(view, group).run(); }

Arithmetic arithmetic_of(Dtype operands, bool tf32) {
  if (is_float8(operands)) return Arithmetic::f8;
  if (operands.size() == 2) return Arithmetic::f16;
  if (operands == float64) return Arithmetic::f64;
  return tf32 ? Arithmetic::tf32 : Arithmetic::f32;
}

double operations_of(const IrNode& node) {
  constexpr double random_word = 120;  // the rounds of Threefry for a word
  if (node.op == Op::random_bits) return random_word;
  const int scalar = graph::row(node.op).scalar;
  return scalar >= 0 ? kernel::info(static_cast<kernel::ScalarOp>(scalar)).flops : 0;
}

}  // namespace weft::compiler
