#pragma once
// Which intermediate values an evaluation stores beside those that it was asked for.
#include "graph/node.h"

namespace weft::compiler {

/// Returns pending values of `nodes` (a whole pending graph, inputs before users) that something outside of the graph
/// refers to: an array, or a pending node that is not among them. They are stored with the results, so that no later
/// evaluation computes them again. Values that take a few operations an element to compute from stored data are left
/// out: reading a stored copy costs as much. The caller holds graph::structure(), shared.
graph::Values held_values(const graph::NodeRefs& nodes);

/// Sets whether evaluations store such values (weft/evaluation.h). Default: no.
void set_keeps_held(bool on);
bool keeps_held();

}  // namespace weft::compiler
