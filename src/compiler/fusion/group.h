#pragma once
// Fusion: which nodes are stored or reduced (the roots), and which roots one kernel computes (the groups).
//
// A `rows` group has a domain of row variables and inner variables. Its roots are reductions over the inner domain (one
// value a row), maps over rows × inner, maps over rows alone, and partial reductions along the rows where the row
// kernel computes their operands anyway (group_columns.cpp). `Root::index` is the element of the root at a point (row,
// inner) of the domain. Nodes that are no roots are computed inline where they are read: elementwise nodes as
// arithmetic, movement nodes as index expressions. A group of another kind computes one operation: a `dot` with its
// epilogue, a `cumulative` reduction, a `scatter`, or a `call` or an `attention` with all its results.
//
// Groups are formed from consumers to producers. A root joins the group of a consumer that reads it at the point where
// that group computes (softmax, norms and their derivatives), else a group over the same domain that reads the same
// data (siblings), else it starts a group. A join that would make two groups wait for each other is refused.
#include <vector>

#include "compiler/ir/grouping.h"

namespace weft::compiler {

/// Groups the nodes of a graph. `layouts` are those of the inputs, `updates` the outputs that replace an input's value.
/// `target` says which epilogues its libraries compute with a matmul, and what its machine is; null: no libraries.
Grouping group(const Ir& ir, const std::vector<Layout>& layouts, const Policy& policy,
               const target::Target* target = nullptr, const std::vector<Update>& updates = {});

}  // namespace weft::compiler
