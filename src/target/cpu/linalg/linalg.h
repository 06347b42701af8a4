#pragma once
// Decompositions by Eigen (calls defined in graph/calls/call_linalg.cpp, call_orthogonal.cpp and call_eig.cpp): one
// matrix at a time, and the matrices of a batch in parallel.
#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "target/cpu/routines/calls.h"

namespace weft::target {

/// Returns a call that runs each(operands of one matrix) for every matrix of the batch, that is, for each index of all
/// axes of the first input except the last two.
std::shared_ptr<const LibraryCall> over_matrices(const kernel::CallDesc& desc,
                                                 std::function<void(std::span<void* const> operands)> each);

struct MatrixSize {
  int64_t rows, columns;  // of the first input: its last axis but one, and its last
};
MatrixSize matrix_size(const kernel::CallDesc& desc);

template <class T>
void fill_nan(void* to, int64_t count) {
  std::fill_n(static_cast<T*>(to), count, std::numeric_limits<T>::quiet_NaN());
}

/// Returns over_matrices with make(0.0f) or make(0.0), a function for matrices of float or double, by the first input's
/// dtype.
template <class Make>
std::shared_ptr<const LibraryCall> for_dtype(const kernel::CallDesc& desc, Make make) {
  return desc.inputs[0].dtype == float64 ? over_matrices(desc, make(0.0)) : over_matrices(desc, make(0.0f));
}

}  // namespace weft::target
