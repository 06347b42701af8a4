#pragma once
// cuSOLVER's answer to the calls cholesky, lu, qr, svd and eigh, and cuBLAS's to solve_triangular (graph/call_linalg.cpp and call_orthogonal.cpp say what they mean).
#include <memory>

#include "kernel/desc.h"
#include "target/cuda/context.h"
#include "target/target.h"

namespace weft::target::cuda {

/// A call for the context's stream, one matrix of a batch after the other, with its workspace held; null without the libraries, for other calls, and where the processor is
/// faster: for small matrices and for many of middling size.
std::shared_ptr<const LibraryCall> cusolver_call(const kernel::CallDesc& desc, Context& context);

}  // namespace weft::target::cuda
