#pragma once
// Products of 8-bit floats for libraries: tensor cores read them along the contracted axis alone.
#include "compiler/ir/ir.h"
#include "compiler/program.h"
#include "target/target.h"

namespace weft::compiler {

/// Operands of matmuls of 8-bit floats whose contracted axes do not lie innermost in memory are put there once more,
/// turned, where the target's library takes the matmul then. One that several matmuls read the same way is transposed
/// once.
Ir transpose_float8_operands(Ir ir, const target::Target& target, const Policy& policy);

}  // namespace weft::compiler
