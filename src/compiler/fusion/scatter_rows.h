#pragma once
// Scatter-adds of whole rows at given row indices, such as the gradient of an embedding. A target may have a routine
// for them (kernel/routines/routine_scatter.cpp).
#include <optional>

#include "compiler/ir/grouping.h"
#include "compiler/ir/ir.h"
#include "compiler/program.h"
#include "target/target.h"

namespace weft::compiler {

/// Nothing where the scatter is another, where it is small, or where the target has no such routine. `updates`: the
/// node whose elements are added (low floats as they are).
struct ScatterRowsForm {
  kernel::CallDesc desc;
  NodeId ids, updates;
};
std::optional<ScatterRowsForm> scatter_rows_form(const Ir& ir, NodeId scatter, const target::Target& target,
                                                 const Numerics& numerics);

}  // namespace weft::compiler
