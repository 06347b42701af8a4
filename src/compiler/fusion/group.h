#pragma once
// Fusion: which nodes get memory (the roots), and which roots are computed together (the groups).
//
// A `rows` group has a domain of row variables and inner variables. Its roots are reductions over the inner domain (one
// value a row), maps over rows × inner, and maps over the rows alone; and, where the rows' kernel computes it anyway,
// what is reduced along the rows in parts (group_columns.cpp). Each root says at which of its own indices the point
// (row, inner) of the domain stands. All that is not a root is computed where it is needed, from roots: elementwise
// nodes inline, movement nodes as index expressions. A `dot` group is one contraction, perhaps with a bias; a
// `cumulative` group is one cumulative reduction, a `scatter` group one scatter; a `call` group is one call with all
// its results.
//
// Groups are formed from the consumers to the producers. A root joins the group of a consumer that reads it at the very
// point where that group stands (row fusion: softmax, norms, their backwards), else a group over the same domain that
// reads the same data (sibling outputs), else it begins a group. A join that would make two groups wait for each other
// is refused.
#include <vector>

#include "compiler/ir/grouping.h"

namespace weft::compiler {

/// `target`: whose libraries may answer products with more than a generated kernel can do; null: nobody's. `updates`:
/// outputs that take over an input's memory.
Grouping group(const Ir& ir, const std::vector<Layout>& layouts, const Policy& policy,
               const target::Target* target = nullptr, const std::vector<Update>& updates = {});

}  // namespace weft::compiler
