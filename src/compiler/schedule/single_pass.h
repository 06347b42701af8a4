#pragma once
// Decides which sums become one reduction with their frame on a GPU (rewrite/framed_sums.h): one pass over the elements
// instead of two, for some more arithmetic; on any machine where steps say so.
#include <functional>
#include <optional>

#include "compiler/ir/ir.h"

namespace weft::target {
class Target;
}

namespace weft::compiler {

/// Returns whether a sum and its frame are to be one reduction; nothing: it is decided by what pays.
using SinglePassWish = std::function<std::optional<bool>(const Ir& ir, NodeId sum)>;

/// Returns the graph with those joined that `wish` asks for, and on a GPU those whose elements would be read again from
/// beyond what a program has on chip, if that takes longer than the arithmetic. Replaced nodes are dropped.
Ir single_pass_reductions(Ir ir, const target::Target& target, const SinglePassWish& wish);

}  // namespace weft::compiler
