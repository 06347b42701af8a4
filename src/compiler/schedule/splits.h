#pragma once
// Splits long reductions, cumulative reductions, products and attention with few results, so that there are programs
// for the whole machine: parts are computed independently, then combined. The parts depend on shapes (of symbolic
// lengths on the bound) and the kind of machine alone, so the bits do too.
#include "compiler/ir/ir.h"
#include "target/target.h"

namespace weft::compiler {

/// Splits reductions: a sum over n becomes a sum of s partial sums over n / s elements each. On a CPU: those with fewer
/// than eight results, into a few hundred parts. On a GPU: all, into thousands of programs, except rows and columns
/// that a cluster computes (lower/loops/rows_cluster.cpp, lower/loops/columns.cpp). On both: those over axes on both
/// sides of one that is kept, into columns and rows. Partial sums of 16-bit and 8-bit floats are float32. No other pass
/// cuts reductions, on any machine.
Ir split_reductions(Ir ir, const target::Target& target);

/// Returns whether rows are so few that their reductions are split, but enough for clusters: where a row is read again,
/// the blocks of a cluster share it, in one launch.
bool clusters_share_few(int64_t rows, const target::Machine& machine);
/// Returns whether a reduction over axes on both sides of one that is kept is cut: into columns, then rows of the
/// results.
bool cuts_into_columns(const Ir& ir, NodeId reduction, const target::Target& target);
/// Returns how many programs that each hold a row of `columns` elements, and sums of as many columns, run at once on a
/// large GPU: what its registers hold. Each has one row of loads in flight, so narrow rows need many.
int64_t programs_of_rows(int64_t columns);
/// Returns whether a row kernel should sum columns in so many parts of `each` rows: its programs walk through the rows
/// of a part one after the other.
bool enough_beside_rows(int64_t parts, int64_t each, int64_t columns);

/// Splits cumulative reductions along an axis into chunks, which are then combined with the total of all chunks before
/// them. Totals of 16-bit and 8-bit floats are float32.
Ir split_cumulative(Ir ir);

/// Splits the contracted axis of products on tensor cores (`tf32`: of float32 too) whose results have few tiles, as the
/// weight gradients of narrow layers: parts are products with float32 results, which are then summed. For code that is
/// generated: `libraries` divide such products themselves, but for those of operands that are unpacked.
Ir split_dots(Ir ir, const target::Machine& machine, bool tf32, bool libraries);

/// Replaces each attention region of one query over many keys by two nodes: splits of the keys (split-KV, flash
/// decoding) and their combination, weighted by the softmax of their logsumexps. `attrs.integers` holds the kind of
/// each node.
Ir split_attention(Ir ir);

}  // namespace weft::compiler
