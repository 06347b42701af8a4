#pragma once
// Scatter-adds of whole rows at given row indices: the gradient of an embedding, message passing of graph networks.
#include <optional>

#include "compiler/ir/ir.h"
#include "target/target.h"

namespace weft::compiler {

/// The sizes of such a scatter: `count` rows of `width` elements are added to `rows` rows.
struct RowScatter {
  int64_t count, rows, width;
};
/// Returns the sizes of a scatter; nothing if it is no scatter-add of whole rows, is small, or has symbolic extents.
std::optional<RowScatter> row_scatter(const Ir& ir, NodeId scatter);

/// Returns whether the scatter adds one number again and again.
bool adds_one_number(const Ir& ir, NodeId scatter);
/// Returns the dtype of the cells of tables, below: 64-bit integers have their width, others and counts have 32 bits.
Dtype table_dtype(const Ir& ir, NodeId scatter);
/// Returns whether programs of a GPU add the updates of such a scatter to tables of their own: few enough rows fit the
/// shared memory, and the sums do not depend on the order, because they are of integers, or because the updates are one
/// number that is counted.
bool fits_tables(const Ir& ir, NodeId scatter, const target::Machine& machine);

/// Sorts the ids of the other scatters of rows: keys are ids with negative ones counted from the end, and `rows` for
/// those outside; the call `sort` gives them in order, with their positions; the scatter adds the updates at these
/// positions, and is marked as sorted. The sort depends on the ids alone, so equal ids are sorted once for all layers
/// and for the backward pass. Sums are added in the order of the ids' positions, the same in every run.
Ir sort_scatters(Ir ir, const target::Target& target, const Numerics& numerics);

}  // namespace weft::compiler
