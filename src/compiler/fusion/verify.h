#pragma once
// Holds what fusion decided against the graph that it decided on. Each function throws internal_error
// "[verify] RULE: group G (KIND), NODE" where a rule is broken. None changes what it looks at: index expressions are
// walked in a context of the verifier's own.
#include <vector>

#include "compiler/fusion/order.h"
#include "compiler/ir/grouping.h"

namespace weft::compiler {

/// Every root is in one group of the right kind; groups come after what they read; `reads` are what the roots' values
/// are computed from; strides cover each root once; the index of a root runs through each of its elements once, and a
/// root is read in its own group where it stands; plans name arrays that lie as their descriptors say. About the cost
/// of forming the groups.
void verify(const Ir& ir, const Grouping& grouping);

/// The order is a permutation of the groups in which everything is read after it was made and before it is overwritten;
/// whoever takes over memory fits in it, and reads what it overwrites at no other place; updates and outputs end up
/// where the caller expects them.
void verify(const Ir& ir, const Grouping& grouping, const Ordering& ordering, const std::vector<Update>& updates);

}  // namespace weft::compiler
