#pragma once
// Elementwise neighbours of users' kernels.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Moves elementwise operators into the kernels around them: into the loads of an array that the kernel alone reads,
/// each element once, and into the stores of a result that the operator alone reads. The values keep their bits; the
/// launch of the operator and the memory between go.
Ir fuse_into_kernels(Ir ir);

}  // namespace weft::compiler
