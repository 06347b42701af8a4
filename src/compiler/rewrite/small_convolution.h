#pragma once
// Rewrites convolutions with small filters (3 × 3 over one channel) and the gradients of their weights. As matmuls they
// have few columns or a very short sum, for which no library has a good tile. As a few multiply-adds at each position
// they fuse with their readers (sums for a norm); the gradient, one sum for each tap, fuses with what computes the
// gradient of the output.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Replaces the regions `convolution` and `convolution_weights` with few taps by arithmetic. For machines that need
/// many programs to be busy.
Ir small_convolution(Ir ir);

}  // namespace weft::compiler
