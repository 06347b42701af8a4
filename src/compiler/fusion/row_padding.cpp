// Pads the rows of arrays that matmuls write or read. Tensor cores and their copies (TMA) want rows that begin at 16
// bytes. A matmul with an array whose rows do not, such as the logits of 50257 or 30522 classes, runs at a quarter to a
// third of its speed on an H200 (bert-base of `weft bench models`), and kernels that read such rows load element by
// element. An array of the program's own may lie as its readers like, so its rows are moved apart.
#include <algorithm>

#include "compiler/fusion/grouper.h"
#include "target/target.h"

namespace weft::compiler {

using graph::Op;

namespace {

constexpr int64_t row_alignment = 16;  // bytes: of a TMA tensor's strides, and of the widest load

/// Returns the multiplications and additions of a dot.
double flops_of(const Ir& ir, NodeId dot) {
  double flops = 2 * static_cast<double>(volume(ir[dot].type.shape));
  for (const int64_t axis : ir[dot].attrs->axes)
    flops *= static_cast<double>(ir[ir[dot].inputs[0]].type.shape[static_cast<size_t>(axis)].bound());
  return flops;
}

/// Finds the values of a graph that are worth padding.
class PaddedValues {
 public:
  PaddedValues(const Ir& ir, const Users& users, const target::Machine& machine, const Numerics& numerics)
      : ir_(ir), users_(users), machine_(machine), numerics_(numerics), dot_of_(ir.nodes.size()) {}

  /// Returns the strides that nodes should have; empty for all that stay as they are.
  NodeStrides run() {
    NodeStrides out(ir_.nodes.size());
    for (NodeId id = 0; id < ir_.size(); ++id) {
      dot_of_[id] = find_dot(id);
      if (!is_misaligned(id) || !reads_by_element(id) || (dot_of_[id] < 0 && !read_by_matmul(id))) continue;
      const Shape& shape = ir_[id].type.shape;
      if (dot_of_[id] < 0 || preferred_strides(ir_, users_, id) == row_major_strides(shape))
        out[id] = padded_strides(shape, row_alignment / ir_[id].type.dtype.size());
    }
    return out;
  }

 private:
  /// Returns the matmul that a value may be the result of, with an epilogue: a chain of elementwise operators whose
  /// other operands come before the matmul. -1: none.
  NodeId find_dot(NodeId id) const {
    const IrNode& n = ir_[id];
    if (is_worth(id)) return id;
    NodeId dot{};
    if (!is_elementwise(n.op)) return dot;
    for (const NodeId input : n.inputs)
      if (ir_[input].type.shape == n.type.shape) dot = std::max(dot, dot_of_[input]);
    for (const NodeId input : n.inputs)
      if (dot_of_[input] < 0 && input > dot) return {};
    return dot;
  }

  /// Returns whether a node is a matmul on tensor cores that takes longer than a launch.
  bool is_worth(NodeId id) const {
    if (ir_[id].op != Op::dot) return false;
    const Dtype dtype = ir_[ir_[id].inputs[0]].type.dtype;
    const double peak = machine_.matmul_flops(dtype, numerics_.tf32);
    if (machine_.tensor_core_bytes(dtype) == 0 || (dtype == float32 && !numerics_.tf32) || peak <= 0) return false;
    return flops_of(ir_, id) / peak > machine_.launch_seconds;
  }

  bool is_misaligned(NodeId id) const {
    const graph::Type& type = ir_[id].type;
    if ((ir_[id].op != Op::dot && !is_elementwise(ir_[id].op)) || type.shape.size() < 2 || !is_static(type.shape))
      return false;
    const int64_t row = type.shape.back().bound() * type.dtype.size();
    return row > row_alignment && row % row_alignment != 0 && !is_complex(type.dtype);
  }

  /// Returns whether all that reads the value finds an element by its index: matmuls, elementwise operators, reductions
  /// and gathers do, calls and scatters want the whole array without gaps.
  bool reads_by_element(NodeId id) const {
    const std::span<const NodeId> readers = users_[id];
    return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
      const Op op = ir_[reader].op;
      if (op == Op::bitcast || op == Op::concat) return false;
      return op == Op::dot || op == Op::reduce || op == Op::gather || is_elementwise(op) ||
             (is_movement(op) && reads_by_element(reader));
    });
  }

  bool read_by_matmul(NodeId id) const {
    const std::span<const NodeId> readers = users_[id];
    return std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
      return is_worth(reader) || (is_movement(ir_[reader].op) && read_by_matmul(reader));
    });
  }

  const Ir& ir_;
  const Users& users_;
  const target::Machine& machine_;
  const Numerics& numerics_;
  IndexedVector<NodeId, NodeId> dot_of_;  // by node, see find_dot
};

}  // namespace

void Grouper::pad_rows() {
  if (!target_ || !target_->machine().simt) return;
  NodeStrides padded = PaddedValues(ir_, users_, target_->machine(), policy_.numerics).run();
  for (NodeId id = 0; id < ir_.size(); ++id)
    if (strides_[id].empty()) strides_[id] = std::move(padded[id]);
}

}  // namespace weft::compiler
