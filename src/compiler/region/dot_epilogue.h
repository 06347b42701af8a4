#pragma once
// Writes the values of a DotRegion, and what computes an operand of a dot, as a kernel::Epilogue.
#include <set>
#include <utility>
#include <vector>

#include "compiler/ir/index_map.h"
#include "compiler/region/dot_region.h"
#include "compiler/region/jumping.h"

namespace weft::compiler {

/// An epilogue whose operands have no strides yet, the buffers of these operands, and how they lie along the axes of
/// the dot's result.
struct EpilogueParts {
  kernel::Epilogue epilogue;
  std::vector<OperandView> operands;
  std::vector<std::vector<AxisLayout>> axes;
};

/// Returns the epilogue of a region. Throws internal_error if a value needs more than strided reads; dot_regions
/// returns no such region.
EpilogueParts epilogue_of(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, const DotRegion& region);

/// Returns the prologue of an operand that lies in no memory: its arrays lie along the operand's axes, with jumps where
/// the operand's shape splits an axis. Throws internal_error if it needs more than such reads; computed_operand returns
/// no such operand.
EpilogueParts prologue_of(const Ir& ir, const NodeStrides& strides, const NodeFlags& roots, NodeId operand);

/// What an epilogue reads, found value by value before layouts are final.
struct EpilogueReads {
  const Ir& ir;
  const NodeStrides& strides;
  const NodeFlags& roots;
  ix::Context& cx;
  const std::vector<ix::Expr>& vars;  // the element of the dot's result
  int64_t full;                       // elements of the dot's result
  bool jumps = false;                 // arrays may be read with jumps: of a prologue
  std::vector<NodeId> nodes = {};     // the buffers
  std::vector<NodeId> made = {};      // of them, those that do not lie in memory yet
  std::set<std::pair<NodeId, std::vector<const ix::Node*>>> computed = {};  // values at indices

  /// Returns whether node `id` at `index` can be computed in an epilogue: from constants, elementwise operators, and
  /// buffers that are read at strides. A computed value smaller than the dot's result is made in memory once, not for
  /// every element.
  bool computable(NodeId id, const std::vector<ix::Expr>& index);

 private:
  bool widened_when_read(const IrNode& n) const;
  bool add(NodeId id, const std::vector<ix::Expr>& index);
  bool adds_with_jumps(NodeId id, const std::vector<ix::Expr>& index);
};

}  // namespace weft::compiler
