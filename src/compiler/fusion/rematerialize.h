#pragma once
// Rematerialization: values that are read long after they were computed are computed again there, so that their memory
// is free in between.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Returns the graph with values recomputed until its plan, with the groups that will run on `target`, is expected to
/// fit into policy.memory_budget bytes of arena, or until no further copy or attempt is left.
///
/// At the step with the most live memory it chooses values that are computed before that step and read only after it.
/// Readers after the step get copies of them, computed from what is live then; those that cost least for the memory
/// they free come first. The copies' `phase` keeps them out of groups that run before. Results do not change: a copy
/// computes the same operators.
Ir recompute(Ir ir, const std::vector<Layout>& layouts, const std::vector<Update>& updates, const Policy& policy,
             const target::Target& target);

}  // namespace weft::compiler
