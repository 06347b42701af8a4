#pragma once
// Rewrites GEMVs for GPUs. A GEMV is bound by reading its matrix, and an operator around it costs more by its launch
// than by its work. Written as a multiplication and a sum it is a row kernel like any other and fuses with what comes
// before and after it: casts, biases, activations, residuals, and other GEMVs of the same vector (those of a gated
// layer).
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Replaces floating dots without batch axes, one of whose sides has only free axes of extent 1, by sums with `gemv`
/// set. The operand of such a sum is vector · matrix, in this order.
Ir gemv(Ir ir);

}  // namespace weft::compiler
