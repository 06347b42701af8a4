#pragma once
// Rematerialization: values that are read long after they are computed are computed again there, so that their memory
// is free in between.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// The graph, changed until its plan, with the groups that will run on `target`, is expected to fit into
/// policy.memory_budget bytes of arena; as near to it as can be where it cannot.
///
/// At the step where most is alive, values are chosen that were made before it and are read only after it. Readers
/// after that step get copies of the chosen nodes, made from what is alive then anyway; the cheapest copies for the
/// memory they free are taken first. The copies' `phase` keeps them from being computed together with what runs before.
/// Results stay as they are: a copy computes the same operators.
Ir recompute(Ir ir, const std::vector<Layout>& layouts, const std::vector<Update>& updates, const Policy& policy,
             const target::Target& target);

}  // namespace weft::compiler
