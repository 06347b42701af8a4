#pragma once
// What the other factors of a scatter by product come to, for each update: its first derivative, and the way to the
// next ones.
#include "graph/node.h"

namespace weft::graph {

/// For each element of `updates`: v at its position times all other updates that arrive there. `indices` lie inside v;
/// updates that are not `kept` count as 1 and give 0. Correct where factors are zero, to every order of derivative.
Value others_of_product(const Value& v, const Values& indices, const Value& kept, const Value& updates,
                        const std::vector<int64_t>& axes);

}  // namespace weft::graph
