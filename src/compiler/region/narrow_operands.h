#pragma once
// Prepares matmuls of 8-bit operands for tensor cores, which read such operands along the contracted axis only.
#include "compiler/ir/ir.h"
#include "compiler/program.h"
#include "target/target.h"

namespace weft::compiler {

/// Adds a transposed copy of each operand of an 8-bit matmul whose contracted axes are not innermost in memory, where
/// the target's library, or a kernel on tensor cores, then takes the matmul; not where the library takes it as it is.
/// Matmuls that read an operand the same way share its copy.
Ir transpose_narrow_operands(Ir ir, const target::Target& target, const Policy& policy);

}  // namespace weft::compiler
