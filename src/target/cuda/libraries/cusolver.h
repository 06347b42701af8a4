#pragma once
// cuSOLVER's answer to the calls cholesky, lu, qr, svd and eigh, and cuBLAS's to solve_triangular
// (graph/calls/call_linalg.cpp and call_orthogonal.cpp say what they mean).
#include <memory>

#include "kernel/describe/desc.h"
#include "target/cuda/driver/context.h"
#include "target/cuda/handwritten/linalg_kernels.h"
#include "target/target.h"

namespace weft::target::cuda {

/// A call for the context's stream with its workspace held: many small matrices at once, others one after the other.
/// Null without the libraries, for other calls, and where the processor is faster. What an iteration does not find is
/// NaN, in its own matrix alone.
std::shared_ptr<const LibraryCall> cusolver_call(const kernel::CallDesc& desc, Context& context,
                                                 std::shared_ptr<const LinalgKernels> kernels);

}  // namespace weft::target::cuda
