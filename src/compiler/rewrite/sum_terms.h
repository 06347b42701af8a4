#pragma once
// Finds the sums whose terms need fewer passes over the data than they do. Batch norm's backward is
// dx = a·(g − mean(g) − x̂·mean(g·x̂)). If dx is needed only in sums Σ dx·t (a bias or a filter gradient), then
//   Σ dx·t = a·(Σ g·t − mean(g)·Σ t − mean(g·x̂)·Σ x̂·t).
// All sums on the right depend on g, x̂ and t alone, so they run in the same pass as mean(g): one read of the data
// instead of two, and dx is never stored.
//
// A term's sum is off by ε Σ |values|, with ε of a few roundings. In Σ (x − m)·t → Σ x·t − m·Σ t these are as large as
// what the sum on the left is off by, which is m's own rounding, m·ε, times Σ t: both grow with m beside x − m. A
// product of two expressions of sums is left as it is: no digit need be left of Σ (x − m)² = Σ x² − 2m Σ x + n·m².
// (Chan, Golub and LeVeque, "Algorithms for computing the sample variance", 1983.)
#include <map>
#include <vector>

#include "compiler/ir/ir.h"

namespace weft::compiler {

/// A term of a linear expression: ± the product of `factors` (one element, or one for each channel) and of `values`
/// (one element for each position and channel; may be empty).
struct SumTerm {
  std::vector<NodeId> factors, values;
  bool negative = false;
};
using SumTerms = std::vector<SumTerm>;
using DistributedSums = std::map<NodeId, SumTerms>;  // by sum

/// Returns the terms of each float32 sum over all axes but the last, of at least 4096 rows, whose operand is linear in
/// the results of other such sums, if every reader of that expression is one of the sums returned.
DistributedSums sums_to_distribute(const Ir& ir);

}  // namespace weft::compiler
