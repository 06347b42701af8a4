#pragma once
// Runs calls that only the CPU has a routine for: copies the operands to the host, computes there, and copies the
// results back.
#include "kernel/describe/desc.h"
#include "target/cuda/driver/context.h"
#include "target/target.h"

namespace weft::target::cuda {

/// Returns the call, or null if the CPU has no such routine either. Each run waits for the device's stream, and it
/// cannot be captured.
std::shared_ptr<const LibraryCall> host_call(const kernel::CallDesc& desc, Context& context);

}  // namespace weft::target::cuda
