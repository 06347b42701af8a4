#pragma once
// Chooses how a rows group runs: where the lanes lie, what a program is, how wide a tile is. The choice is made from the strides of its loads and
// stores alone.
#include <vector>

#include "compiler/group.h"
#include "target/target.h"

namespace weft::compiler {

enum class RowClass : uint8_t { map, row, column };

struct RowSchedule {
  RowClass kind = RowClass::map;
  int lane_axes = 0;        // map, column: trailing row axes that the lanes run over; row: all inner axes
  int64_t lane_extent = 1;  // of those axes together, symbols at their bounds
  int64_t width = 1;        // lanes of a tile
  int64_t block = 1;        // map: lane elements of one program
  bool dynamic = false;     // map over one flat axis: its length is an argument of the kernel, so that one kernel serves all lengths
  double flops = 0;         // per point of the domain
  double loads = 0;
};

/// An address that the group touches at a point of its domain: of a load, or of a root's store.
struct Touch {
  int node;
  ix::Expr offset;
  bool gathered;  // through an index that was itself loaded
};

RowSchedule schedule_rows(const Ir& ir, const Grouping& grouping, Group& group, target::Target& target);

/// May the group store `output` over `input`? In a map, if `input` is read at no other place than where `output` is stored. In a group with folds `output`
/// must be a map over the rows, and beside that place nobody but `output` itself may read `input`: programs and passes do not run in step.
bool may_overwrite(const Ir& ir, const Grouping& grouping, Group& group, int input, int output);

/// The operand of a fold root at the group's point, with the inner variables at the folded axes.
std::vector<ix::Expr> fold_operand_index(const Ir& ir, const Group& group, const Root& root);

}  // namespace weft::compiler
