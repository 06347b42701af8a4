#pragma once
// Verifies fusion's results against the graph. Each function throws internal_error "[verify] RULE: group G (KIND),
// NODE" if a rule is broken. None changes its arguments: index expressions are walked in a context of the verifier's
// own.
#include <vector>

#include "compiler/fusion/order.h"
#include "compiler/ir/grouping.h"

namespace weft::compiler {

/// Verifies a grouping: each root is in one group, of the right kind; groups come after what they read; `reads` are
/// what the roots are computed from; strides cover each root once; a root's index visits each of its elements once, and
/// its own group reads it at that index; plans describe arrays as they lie in memory. Takes about as long as forming
/// the groups.
void verify(const Ir& ir, const Grouping& grouping);

/// Verifies an ordering: it is a permutation of the groups in which each value is read after it is stored and before it
/// is overwritten; a value that takes over a buffer fits in it, and its group reads what it overwrites at that index
/// alone; updates and outputs hold their values at the end.
void verify(const Ir& ir, const Grouping& grouping, const Ordering& ordering, const std::vector<Update>& updates);

}  // namespace weft::compiler
