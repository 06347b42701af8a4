#pragma once
// Rewrites a matmul to as few axes as possible, which is the form that libraries take.
#include <cstdint>
#include <vector>

#include "kernel/describe/desc.h"

namespace weft::kernel {

/// A batch axis with its strides in A, B and C, in elements.
struct BatchAxis {
  int64_t extent, a, b, c;
};

/// Returns the batch axes of extent > 1 by descending stride in C, with neighbours merged where one stride covers both.
std::vector<BatchAxis> merged_batch(const DotDesc& desc);
/// Turns the innermost batch axes that B does not have into rows of `desc`, as in x[b,t,k]·w[k,n], where A's and C's
/// strides allow it; removes them from `axes`.
void batch_into_rows(DotDesc& desc, std::vector<BatchAxis>& axes);
/// Returns the matmul with as few batch axes as there can be.
DotDesc with_merged_batch(DotDesc desc);

}  // namespace weft::kernel
