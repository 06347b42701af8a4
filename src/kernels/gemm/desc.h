#pragma once
// The kernel of a product that a descriptor asks for: a candidate beside libraries.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/describe/desc.h"
#include "kernel/tile.h"
#include "kernels/gemm/tiles.h"

namespace weft::kernels {

/// A kernel that takes the descriptor's operands in their order, aligned to 16 bytes.
struct GemmKernel {
  kernel::Kernel kernel;
  int64_t programs = 1;
  GemmTiling tiling;
};

/// Returns kernels of a product, the one that is predicted to be done first in front; `most` at most. None where the
/// product has no such kernel: operands are 16-bit floats or, where it may be rounded to TF32, float32, the result lies
/// along n, and activations are relu and gelu_tanh.
std::vector<GemmKernel> gemm_kernels(const kernel::DotDesc& desc, const target::Machine& machine, size_t most);

/// Returns whether a kernel may be faster than a library's: the product is no small one and keeps the SMs busy, or its
/// extents are ones for which libraries are slow.
bool gemm_may_win(const kernel::DotDesc& desc, const GemmTiling& tiling);

}  // namespace weft::kernels
