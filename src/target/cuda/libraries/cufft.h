#pragma once
// The calls fft, rfft and irfft by cuFFT (graph/calls/call_fft.cpp defines them).
#include <memory>

#include "kernel/describe/desc.h"
#include "target/cuda/driver/context.h"
#include "target/target.h"

namespace weft::target::cuda {

/// Returns a call for the context's stream with plan and workspace; null without cuFFT. Throws std::runtime_error
/// "[fft] …" if cuFFT has no plan for the lengths. Plans are kept until the process ends, so that equal transforms
/// share one.
std::shared_ptr<const LibraryCall> cufft_call(const kernel::CallDesc& desc, Context& context);

}  // namespace weft::target::cuda
