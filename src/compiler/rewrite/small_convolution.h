#pragma once
// Convolutions where an output sees few inputs (a kernel of 3 × 3 over one channel), and the gradients of their
// weights. As products they have a handful of columns or a very short sum, for which no library has a good tile. As a
// few multiply-adds at each position they are computed along with what is made of them (sums for a norm), and the
// gradients, one sum for each tap, where the gradient of the output is made.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// For devices that are filled by many programs: kept regions `convolution` and `convolution_weights` with few taps
/// become arithmetic.
Ir small_convolution(Ir ir);

}  // namespace weft::compiler
