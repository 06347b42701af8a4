#pragma once
// Calls that run as sequences of generated kernels (kernel/routines/routine.h).
#include <memory>

#include "kernel/routines/routine.h"
#include "target/cuda/driver/context.h"
#include "target/target.h"

namespace weft::target::cuda {

/// Nothing where the call has no such form. `context`: null where there is no device; the kernels are compiled all the
/// same. Scratch is the stream's workspace.
std::shared_ptr<const LibraryCall> routine_call(const kernel::CallDesc& desc, Target& target, Context* context);

}  // namespace weft::target::cuda
