#pragma once
// Sums down columns of what depends on other such sums. Behind a norm over examples and positions the gradient of a
// convolution is g - mean(g) - x mean(g x), times a factor: each channel's sums of g and g x come first, and what else
// is summed (the gradient of few taps' weights, of a bias) goes through all the data once more. But a sum of a linear
// expression is a linear expression of sums: those of g, x and 1 times what is seen through a tap need nobody's result,
// and stand beside the sums of g and g x.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// For devices on which a pass over the data costs more than a few more sums: where all that reads such an expression
/// are sums over all axes but the last one, they become sums of its terms.
Ir distribute_reduction(Ir ir);

}  // namespace weft::compiler
