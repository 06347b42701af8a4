#pragma once
// The routines of the CPU target that are not generated code, by the name of their call. Each has a row in calls.cpp
// and a file of its own.
#include <memory>

#include "target/target.h"

namespace weft::target {

/// Returns the routine that a descriptor names, or null if there is none, or it does not support these arrays.
std::shared_ptr<const LibraryCall> cpu_call(const kernel::CallDesc& desc);

std::shared_ptr<const LibraryCall> cpu_sort(const kernel::CallDesc& desc);
std::shared_ptr<const LibraryCall> cpu_searchsorted(const kernel::CallDesc& desc);
std::shared_ptr<const LibraryCall> cpu_fft(const kernel::CallDesc& desc);
/// Decompositions of matrices (linalg.h).
std::shared_ptr<const LibraryCall> cpu_cholesky(const kernel::CallDesc& desc);
std::shared_ptr<const LibraryCall> cpu_solve_triangular(const kernel::CallDesc& desc);
std::shared_ptr<const LibraryCall> cpu_lu(const kernel::CallDesc& desc);
std::shared_ptr<const LibraryCall> cpu_qr(const kernel::CallDesc& desc);
std::shared_ptr<const LibraryCall> cpu_svd(const kernel::CallDesc& desc);
std::shared_ptr<const LibraryCall> cpu_eigh(const kernel::CallDesc& desc);
std::shared_ptr<const LibraryCall> cpu_eig(const kernel::CallDesc& desc);
/// Convolutions of channels-last arrays, and the gradients of their inputs and weights (integers as in
/// graph/regions/convolution.h). Null without oneDNN, for little work (onednn_min_work), for dtypes other than float32
/// and bfloat16, and for forms without an optimised implementation in oneDNN.
std::shared_ptr<const LibraryCall> onednn_convolution(const kernel::CallDesc& desc);
std::shared_ptr<const LibraryCall> onednn_convolution_input(const kernel::CallDesc& desc);
std::shared_ptr<const LibraryCall> onednn_convolution_weights(const kernel::CallDesc& desc);

}  // namespace weft::target
