#pragma once
// Splits long cumulative reductions of few rows, for machines that need many programs to be busy: chunks are computed
// independently, then each chunk is combined with the total of all chunks before it.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Splits cumulative reductions. Totals of 16-bit and 8-bit floats are float32. The number of chunks depends on the
/// shape alone, so every device gives the same bits.
Ir split_cumulative(Ir ir);

}  // namespace weft::compiler
