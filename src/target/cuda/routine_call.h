#pragma once
// Calls that run as sequences of generated kernels (kernel/routines/routine.h).
#include <memory>
#include <vector>

#include "kernel/describe/attention_desc.h"
#include "kernel/routines/routine.h"
#include "target/cuda/driver/candidates.h"
#include "target/cuda/driver/context.h"
#include "target/target.h"

namespace weft::target::cuda {

/// Returns the call, or null if it has no such form. Without a device `context` is null, and the kernels are only
/// compiled. Scratch lies in the stream's workspace.
std::shared_ptr<const LibraryCall> routine_call(const kernel::CallDesc& desc, Target& target, Context* context);

/// Returns the generated kernels of a product that may be faster than a library's (kernels/gemm/desc.h), the one that
/// is predicted to be done first in front.
std::vector<Candidate> generated_products(const kernel::DotDesc& desc, Target& target);

/// Returns attention by generated kernels, for operands of any alignment; nothing where it has none
/// (kernels/attention/desc.h).
std::vector<Candidate> generated_attention(const kernel::AttentionDesc& desc, Target& target, Context* context);

}  // namespace weft::target::cuda
