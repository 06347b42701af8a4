#pragma once
// Scatter-adds of whole rows whose additions may be in any order, which a target may have a routine for.
#include <optional>

#include "compiler/ir/grouping.h"
#include "compiler/ir/ir.h"
#include "compiler/program.h"
#include "target/target.h"

namespace weft::compiler {

/// A scatter-add as a call to such a routine, with the nodes of its row indices and of the rows to add. A cast from a
/// 16-bit or 8-bit float to float32 is left to the routine: `updates` is then its operand.
struct ScatterRowsForm {
  kernel::CallDesc desc;
  NodeId ids, updates;
};
/// Returns the form of a scatter; nothing if it is no large scatter-add of whole rows (rewrite/sort_scatter.h), its
/// sums are to be the same in every run, or the target has no such routine.
std::optional<ScatterRowsForm> scatter_rows_form(const Ir& ir, NodeId scatter, const target::Target& target,
                                                 const Numerics& numerics);

}  // namespace weft::compiler
