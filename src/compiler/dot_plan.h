#pragma once
// Views and contractions: operands are traced through movement operators to the buffers behind them, and their strides read off.
#include <optional>

#include "compiler/group.h"

namespace weft::compiler {

/// The order in which a dot's result should lie in memory, so that its readers see plain strides: that of the first permutation through which it is read.
Strides preferred_strides(const Ir& ir, const std::vector<std::vector<int>>& users, int node);

/// An operand as a strided view of the buffer of `node`: element (i, j, …) lies at offset + i·strides[0] + j·strides[1] + …
struct StridedView {
  int node;
  int64_t offset;
  std::vector<int64_t> strides;  // one for each axis of the operand
};
std::optional<StridedView> strided_view(const Ir& ir, const std::vector<Strides>& strides, const std::vector<bool>& roots, int operand);

/// The node behind an operand if the operand is a strided view of it; the operand itself where it has to be made.
int operand_base(const Ir& ir, const std::vector<Strides>& strides, const std::vector<bool>& roots, int operand);

/// The node whose memory, read row-major in the shape of `node`, is the value of `node` (its own, or that of a result laid out to be read so; `leaves`: or that
/// of an input).
int memory_of(const Ir& ir, const std::vector<Strides>& strides, const std::vector<bool>& roots, int node, bool leaves = false);

/// The add that gives `dot` its bias, if that is its only reader: result = dot + broadcast(vector along n).
std::optional<int> bias_add(const Ir& ir, const std::vector<std::vector<int>>& users, int dot);

/// `result` is the dot, or the add of its bias. Operands must lie in memory (strides known).
DotPlan plan_dot(const Ir& ir, const std::vector<Strides>& strides, const std::vector<bool>& roots, int dot, int result);

}  // namespace weft::compiler
