#pragma once
// Rewrites convolutions with small filters (3 × 3 over one channel) and the gradients of their weights. As matmuls they
// have few columns or a very short contraction, for which no library has a good tile. As a few multiply-adds at each
// position the convolution fuses with its readers (the sums of a norm). The gradient becomes one sum for each tap and
// fuses with the kernel that computes the gradient of the output.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Taps of a filter, counting input channels: sums that one kernel keeps in registers.
constexpr int64_t most_convolution_taps = 16;

/// Replaces composites `convolution` and `convolution_weights` by arithmetic if they have at most so many taps and at
/// least 16 output channels. Meant for machines that need many programs to be busy.
Ir small_convolution(Ir ir);

}  // namespace weft::compiler
