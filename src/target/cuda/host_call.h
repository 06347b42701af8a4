#pragma once
// Calls that only the CPU has a routine for: the operands are copied to the host, computed there, and the results
// copied back.
#include "kernel/describe/desc.h"
#include "target/cuda/driver/context.h"
#include "target/target.h"

namespace weft::target::cuda {

/// Null where the CPU has no such routine either. Waits for the device's stream whenever it runs, and cannot be part of
/// a recording.
std::shared_ptr<const LibraryCall> host_call(const kernel::CallDesc& desc, Context& context);

}  // namespace weft::target::cuda
