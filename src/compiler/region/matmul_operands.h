#pragma once
// Prepares matmuls for tensor cores that read their operands along the contracted axis only: all of 8 bits, and
// Hopper's warpgroups of TF32.
#include "compiler/ir/ir.h"
#include "compiler/program.h"
#include "target/target.h"

namespace weft::compiler {

/// Adds a transposed copy of each operand of such a matmul whose contracted axes are not innermost in memory, where the
/// target's library, or a kernel on tensor cores, then takes the matmul, or takes it in less time; not where the
/// library takes it as it is. Matmuls that read an operand the same way share its copy. A matmul of 8-bit floats of two
/// kinds that no library takes becomes one of float16.
Ir prepare_matmul_operands(Ir ir, const target::Target& target, const Policy& policy);

}  // namespace weft::compiler
