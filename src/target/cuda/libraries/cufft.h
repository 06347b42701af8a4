#pragma once
// cuFFT's answer to the calls fft, rfft and irfft (graph/calls/call_fft.cpp says what they mean).
#include <memory>

#include "kernel/describe/desc.h"
#include "target/cuda/driver/context.h"
#include "target/target.h"

namespace weft::target::cuda {

/// A call for the context's stream with its plan made and its workspace held; null without cuFFT. Throws
/// std::runtime_error "[fft] …" where cuFFT has no plan for the lengths. Plans are kept for the life of the process, so
/// that equal transforms share one.
std::shared_ptr<const LibraryCall> cufft_call(const kernel::CallDesc& desc, Context& context);

}  // namespace weft::target::cuda
