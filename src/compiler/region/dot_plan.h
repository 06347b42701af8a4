#pragma once
// Views and contractions: operands are traced through movement operators to the buffers behind them, and their strides
// read off.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/grouping.h"
#include "compiler/program.h"

namespace weft::compiler {

/// The order in which a dot's result should lie in memory, so that its readers see plain strides: that of the first
/// permutation through which it is read.
Strides preferred_strides(const Ir& ir, const Users& users, NodeId node);

/// An operand as a strided view of the buffer of `node`: element (i, j, …) lies at offset + i·strides[0] + j·strides[1]
/// + …
struct StridedView {
  NodeId node;
  int64_t offset;
  std::vector<int64_t> strides;  // one for each axis of the operand
};
std::optional<StridedView> strided_view(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots,
                                        NodeId operand);

/// Returns the node that an operand is a strided view of, or the operand itself where it has to be materialized.
NodeId operand_base(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, NodeId operand);

/// The node whose memory, read row-major in the shape of `node`, is the value of `node` (its own, or that of a result
/// laid out to be read so; `leaves`: or that of an input).
NodeId memory_of(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, NodeId node, bool leaves = false);

/// What is computed together with a dot, each step the only reader of the one before: result = act(scales · dot + bias)
/// + residual.
struct DotChain {
  NodeId dot = -1, result = -1;
  NodeId bias;      // a vector along n
  NodeId residual;  // a node that lies in memory as the result does
  kernel::Activation activation = kernel::Activation::none;
  NodeId sum;  // the reduction that sums an operand over the contracted axes, or rows of the result
  kernel::OperandSum summed = kernel::OperandSum::none;
  NodeId pre_activation;  // what the activation is applied to, where that is a node in memory as well
  kernel::PreActivation pre_activation_is = kernel::PreActivation::none;
  std::vector<NodeId> scales;  // numbers in memory
};

/// `strides` of the results of dots before this one are known, and `roots` are the nodes that get memory for other
/// reasons. `outputs` as escapes counts them.
DotChain dot_chain(const Ir& ir, const Users& users, const NodeCounts& outputs, const NodeStrides& strides,
                   const NodeFlags& roots, NodeId dot);

/// Returns the only reader of a node that is no output, or -1.
NodeId only_reader(const Users& users, const NodeCounts& outputs, NodeId node);

/// The chain with gelu behind its 16-bit result, the argument kept; or with gelu's derivative as a factor. Only
/// libraries answer such matmuls. None where nothing like that follows.
std::optional<DotChain> with_pre_activation(const Ir& ir, const Users& users, const NodeCounts& outputs,
                                            const NodeStrides& strides, const DotChain& chain);

/// Returns whether the contraction is so long that summing rows in the epilogue costs no extra time.
bool hides_sums(const Ir& ir, NodeId dot);

/// The chain with the sums over each kernel::rows_of_a_sum rows of its 16-bit result, where a reduction takes them.
/// None elsewhere.
std::optional<DotChain> with_sums(const Ir& ir, const Users& users, const DotChain& chain);

/// Products of 8-bit floats, summed in float32: multiplied by one or two numbers, perhaps rounded to 16 bits; and
/// (`followed`) a bias and a residual. Only libraries answer such matmuls. None where no number follows.
std::optional<DotChain> scaled_chain(const Ir& ir, const Users& users, const NodeCounts& outputs,
                                     const NodeStrides& strides, const NodeFlags& roots, NodeId dot, bool followed);

/// The chain with its 16-bit result widened to float32 as the matmul is stored, where a scatter or an assignment
/// begins with that. None elsewhere.
std::optional<DotChain> widened_for_scatter(const Ir& ir, const Users& users, const NodeCounts& outputs,
                                            const DotChain& chain);

/// Plans the library descriptor and the views of a dot. Operands must be materialized, with known strides.
DotPlan plan_dot(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, const DotChain& chain,
                 const Numerics& numerics);

/// The library call that the heuristic prefers for a dot: any that the target offers, if all extents are numbers. Null
/// where there is none, or where the policy asks for generated code.
std::shared_ptr<const target::LibraryCall> library_for(const DotPlan& plan, const target::Target& target,
                                                       const Policy& policy);
/// Its operands as target::LibraryCall::run takes them: nodes, and bytes added to the addresses of their buffers.
/// `result`: the dot's root.
std::vector<std::pair<NodeId, int64_t>> library_operands(const DotPlan& plan, NodeId result);

}  // namespace weft::compiler
