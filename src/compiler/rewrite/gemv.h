#pragma once
// Rewrites GEMVs for GPUs. A GEMV is bound by reading its matrix; its vector and result are so small that a kernel of
// their own costs more to launch than to run. As a multiplication and a sum, a GEMV is lowered as a row kernel and
// fuses with its neighbours: casts, biases, activations, residuals, and other GEMVs of the same vector (those of a
// gated layer).
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Replaces each floating-point dot without batch axes by a multiplication and a sum with `gemv` set, where one operand
/// is a vector: all its free axes have extent 1. Extents must be static and the contraction at least 16 elements long.
/// The operand of the sum is mul(vector, matrix), in this order. A dot of up to four vectors with a matrix that is
/// unpacked from integers becomes a GEMV of each, in one kernel. What is unpacked is not rounded for a product.
Ir gemv(Ir ir);
/// Replaces those with few results of thousands of products each, down the columns of the matrix, by a multiplication
/// and a usual sum. It runs before reductions are split, as the whole sum would leave most of the device idle.
Ir deep_gemv(Ir ir);

}  // namespace weft::compiler
