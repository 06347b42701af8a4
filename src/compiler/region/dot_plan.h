#pragma once
// Plans dots: traces operands through movement operators to the buffers that hold them, reads off their strides, and
// finds the epilogue.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/grouping.h"
#include "compiler/program.h"

namespace weft::compiler {

/// Returns the strides in which a dot's result should be stored so that its readers see plain strides: those of the
/// first permutation that reads it, else row-major.
Strides preferred_strides(const Ir& ir, const Users& users, NodeId node);

/// An operand as a strided view of the buffer of `node`: element (i, j, …) lies at offset + i·strides[0] + j·strides[1]
/// + … Axes of extent 1 have stride 0.
struct StridedView {
  NodeId node;
  int64_t offset;
  std::vector<int64_t> strides;  // one for each axis of the operand
};
std::optional<StridedView> strided_view(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots,
                                        NodeId operand);

/// Returns the node that an operand is a strided view of, or the operand itself where it has to be materialized.
NodeId operand_base(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, NodeId operand);

/// Returns the node whose buffer, read row-major in the shape of `node`, holds the value of `node`: `node` itself, a
/// computed value that it is a view of, or with `leaves` also an input.
NodeId memory_of(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, NodeId node, bool leaves = false);

/// A dot with its epilogue: result = act(scales · dot + bias) + residual. Each step is the only reader of the one
/// before.
struct DotChain {
  NodeId dot = -1, result = -1;
  NodeId bias;      // a vector along n
  NodeId residual;  // a node stored with the layout of the result
  kernel::Activation activation = kernel::Activation::none;
  NodeId sum;  // the reduction that sums an operand over the contracted axes, or rows of the result
  kernel::OperandSum summed = kernel::OperandSum::none;
  NodeId pre_activation;  // the activation's operand, if it is stored or read as an array
  kernel::PreActivation pre_activation_is = kernel::PreActivation::none;
  std::vector<NodeId> scales;  // scalars in memory
};

/// Returns a dot with the epilogue that generated code computes. `strides` holds the layouts of earlier dots' results,
/// `roots` the nodes that are stored for other reasons. `outputs`: see escapes.
DotChain dot_chain(const Ir& ir, const Users& users, const NodeCounts& outputs, const NodeStrides& strides,
                   const NodeFlags& roots, NodeId dot);

/// Returns the only reader of a node that is no output, or -1.
NodeId only_reader(const Users& users, const NodeCounts& outputs, NodeId node);

/// Extends a chain by gelu of its 16-bit result with the pre-activation stored, or by gelu's derivative as a factor.
/// Only libraries compute these. Returns nothing if neither follows.
std::optional<DotChain> with_pre_activation(const Ir& ir, const Users& users, const NodeCounts& outputs,
                                            const NodeStrides& strides, const DotChain& chain);

/// Returns whether the contraction is so long that summing rows in the epilogue costs no extra time.
bool hides_sums(const Ir& ir, NodeId dot);

/// Extends a chain by the sums over each kernel::rows_of_a_sum rows of its 16-bit result. Returns nothing if no
/// reduction takes them, or if they would cost extra time.
std::optional<DotChain> with_sums(const Ir& ir, const Users& users, const DotChain& chain);

/// Returns the chain of a matmul of 8-bit floats to float32 that is multiplied by one or two scalars, perhaps rounded
/// to 16 bits, and with `followed` has a bias and a residual. Only libraries compute these. Returns nothing if no
/// scalar follows.
std::optional<DotChain> scaled_chain(const Ir& ir, const Users& users, const NodeCounts& outputs,
                                     const NodeStrides& strides, const NodeFlags& roots, NodeId dot, bool followed);

/// Extends a dot without epilogue by the cast of its 16-bit result to float32 if a scatter or an assignment starts from
/// that. Returns nothing otherwise.
std::optional<DotChain> widened_for_scatter(const Ir& ir, const Users& users, const NodeCounts& outputs,
                                            const DotChain& chain);

/// Plans the library descriptor and the views of a dot. Operands must be materialized, with known strides.
DotPlan plan_dot(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, const DotChain& chain,
                 const Numerics& numerics);

/// Returns the library call that the target's heuristic prefers for a dot; null if it has none, an extent is symbolic,
/// or the policy asks for generated code.
std::shared_ptr<const target::LibraryCall> library_for(const DotPlan& plan, const target::Target& target,
                                                       const Policy& policy);
/// Returns the operands as target::LibraryCall::run takes them: nodes, and bytes added to the addresses of their
/// buffers. `result`: the dot's root.
std::vector<std::pair<NodeId, int64_t>> library_operands(const DotPlan& plan, NodeId result);

}  // namespace weft::compiler
