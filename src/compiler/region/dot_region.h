#pragma once
// Finds what one kernel can compute together with a dot: the elementwise values that follow from its result.
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compiler/ir/grouping.h"

namespace weft::compiler {

/// A dot with elementwise values computed from its result, before that is stored.
struct DotRegion {
  NodeId dot = -1;
  NodeId result = -1;          // the last value that is read outside: the group's C
  std::vector<NodeId> values;  // computed after the dot, ascending
  std::vector<NodeId> stored;  // of the dot and the values, those that are read outside besides `result`
  std::vector<NodeId> made;    // operands that must lie in memory, and would be computed where they are read otherwise
  // Which of the dot's operands are computed as they are loaded, by a prologue (region/dot_prologue.h).
  std::array<bool, 2> prologue = {false, false};
  NodeId like;  // an array of the same shape that the values read element by element; -1: none
  NodeId sum;   // a reduction computed beside: of an operand, or of rows of the result
  kernel::OperandSum summed = kernel::OperandSum::none;
  std::optional<kernel::DotDesc> asked;                // what the target's library was asked for, and
  std::shared_ptr<const target::LibraryCall> library;  // its answer
  double bytes = 0;      // of memory traffic that the choice of this region causes, see dot_regions
  double own_bytes = 0;  // of these, what the dot's kernel moves besides its operands
};

/// What the graph says about where values lie. `outputs`: see escapes. `strides` holds the layouts that are chosen
/// already, `roots` the nodes that are stored for other reasons.
struct RegionContext {
  const Ir& ir;
  const Users& users;
  const NodeCounts& outputs;
  const NodeStrides& strides;
  const NodeFlags& roots;
  double launch_bytes;  // the traffic that takes as long as a launch
};

/// Returns the regions of a dot, from the dot alone to the longest; each contains the one before. Their `bytes` can be
/// compared: the traffic of the dot's results and element operands, and of the kernel that computes the values that a
/// shorter region leaves.
std::vector<DotRegion> dot_regions(const RegionContext& cx, NodeId dot);

/// Returns the only reader of a node that is no output, or -1.
NodeId only_reader(const Users& users, const NodeCounts& outputs, NodeId node);

/// Adds the sum of an operand over the contracted axes to the region of a float32 dot alone, if the graph has that sum
/// and one kernel can compute both.
void add_operand_sum(const RegionContext& cx, DotRegion& region);

/// Returns whether the contraction is so long that summing rows in the epilogue costs no extra time.
bool hides_sums(const Ir& ir, NodeId dot);

/// Extends a region by the sums over each kernel::rows_of_a_sum rows of its 16-bit result. Returns nothing if no
/// reduction takes them, or if they would cost extra time.
std::optional<DotRegion> with_row_sums(const RegionContext& cx, const DotRegion& region);

}  // namespace weft::compiler
