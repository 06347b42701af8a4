#pragma once
// Prepares matmuls of 8-bit floats for libraries: tensor cores read such operands along the contracted axis only.
#include "compiler/ir/ir.h"
#include "compiler/program.h"
#include "target/target.h"

namespace weft::compiler {

/// Adds a transposed copy of each operand of an 8-bit float matmul whose contracted axes are not innermost in memory,
/// where the target's library then takes the matmul. Matmuls that read an operand the same way share its copy.
Ir transpose_float8_operands(Ir ir, const target::Target& target, const Policy& policy);

}  // namespace weft::compiler
