#pragma once
// A matmul with as few axes as it can be said with: what libraries are asked for.
#include <cstdint>
#include <vector>

#include "kernel/describe/desc.h"

namespace weft::kernel {

/// A batch axis with its strides in A, B and C, in elements.
struct BatchAxis {
  int64_t extent, a, b, c;
};

/// Batch axes of extent > 1, by falling stride in C, neighbours merged where one stride describes both.
std::vector<BatchAxis> merged_batch(const DotDesc& desc);
/// x[b,t,k]·w[k,n]: innermost batch axes that B does not have become rows of `desc`, where A's and C's strides allow
/// it, and leave `axes`.
void batch_into_rows(DotDesc& desc, std::vector<BatchAxis>& axes);

}  // namespace weft::kernel
