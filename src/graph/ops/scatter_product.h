#pragma once
// The derivative of a scatter by product: for each update the product of the other factors, differentiable to any
// order.
#include "graph/node.h"

namespace weft::graph {

/// Returns, for each element of `updates`, v at its destination times all other updates with this destination.
/// `indices` are inside v; updates that are not `kept` count as 1 and give 0. Correct where factors are zero, for
/// derivatives of every order.
Value others_of_product(const Value& v, const Values& indices, const Value& kept, const Value& updates,
                        const std::vector<int64_t>& axes);

}  // namespace weft::graph
