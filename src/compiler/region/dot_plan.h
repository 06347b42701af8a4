#pragma once
// Plans dots: traces operands through movement operators to the buffers that hold them, and reads off their strides.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/grouping.h"
#include "compiler/program.h"
#include "compiler/region/dot_region.h"

namespace weft::compiler {

/// Returns the strides in which a dot's result should be stored so that its readers see plain strides: those of the
/// first permutation that reads it, through reshapes as well, else row-major.
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

/// Returns whether lines of a dot's right operand run along its columns in memory, not along the contracted axis; one
/// that is no view of an array will lie row by row.
bool b_lies_across(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, NodeId dot);

/// Returns the node that an operand is a strided view of, or the operand itself where it has to be materialized.
NodeId operand_base(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, NodeId operand);

/// Returns the node whose buffer, read row-major in the shape of `node`, holds the value of `node`: `node` itself, a
/// computed value that it is a view of, or with `leaves` also an input.
NodeId memory_of(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, NodeId node, bool leaves = false);

/// Plans a dot with what a kernel computes from its result. Operands must be materialized, with known strides.
DotPlan plan_dot(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, const DotRegion& region,
                 const Numerics& numerics);

/// Returns the library call that the target's heuristic prefers for a dot; null if it has none, an extent is symbolic,
/// or the policy asks for generated code.
std::shared_ptr<const target::LibraryCall> library_for(const DotPlan& plan, const target::Target& target,
                                                       const Policy& policy);
/// Returns the operands as target::LibraryCall::run takes them: nodes, and bytes added to the addresses of their
/// buffers. `result`: the dot's root. `plan.asked` must be there.
std::vector<std::pair<NodeId, int64_t>> library_operands(const Ir& ir, const DotPlan& plan, NodeId result);

}  // namespace weft::compiler
