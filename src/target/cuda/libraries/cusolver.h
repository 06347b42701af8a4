#pragma once
// The calls cholesky, lu, qr, svd and eigh by cuSOLVER, and solve_triangular by cuBLAS (graph/calls/call_linalg.cpp and
// call_orthogonal.cpp define them).
#include <memory>

#include "kernel/describe/desc.h"
#include "target/cuda/driver/context.h"
#include "target/cuda/handwritten/linalg_kernels.h"
#include "target/target.h"

namespace weft::target::cuda {

/// Returns a call for the context's stream with its workspace: many small matrices at once, others one after the other.
/// Null without the libraries, for other calls, and where the CPU is faster. A matrix whose iteration does not converge
/// gives NaN; the others are not affected.
std::shared_ptr<const LibraryCall> cusolver_call(const kernel::CallDesc& desc, Context& context,
                                                 std::shared_ptr<const LinalgKernels> kernels);

}  // namespace weft::target::cuda
