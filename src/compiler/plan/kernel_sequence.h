#pragma once
// Several kernels that run as one call: what one writes to scratch, a later one reads.
#include <memory>

#include "kernel/routines/routine.h"
#include "target/target.h"

namespace weft::compiler {

/// Returns a call that runs the routine's launches in order. Its operands are the routine's, then the scratch buffers.
std::shared_ptr<const target::LibraryCall> kernel_sequence(kernel::Routine routine, target::Target& target);

}  // namespace weft::compiler
