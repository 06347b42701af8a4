#pragma once
// The routines of the CPU target that are not generated code, by the name of their call. One line in calls.cpp and a
// file of its own for each.
#include <memory>

#include "target/target.h"

namespace weft::target {

/// Nothing where there is no routine of that name, or it does not take these arrays.
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
/// Convolutions of channels-last arrays and the gradients of their weights (graph/regions/convolution.h says what their
/// integers mean): nothing without oneDNN, for little work (onednn_min_work), for dtypes other than float32 and
/// bfloat16, and for forms that oneDNN has no optimised implementation of.
std::shared_ptr<const LibraryCall> onednn_convolution(const kernel::CallDesc& desc);
std::shared_ptr<const LibraryCall> onednn_convolution_weights(const kernel::CallDesc& desc);

}  // namespace weft::target
