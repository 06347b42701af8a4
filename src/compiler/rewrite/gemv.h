#pragma once
// GEMVs, for devices of many threads. Such a product is as fast as its matrix comes in, and every
// operator around it costs more by its launch than by its work. Written as a multiplication and a sum it is a rows
// group like any other, and takes in what stands before and behind it: casts, biases, activations, residuals, and other
// products of the same row (the two of a gated layer).
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Floating dots without batch axes, one of whose sides has free axes of extent 1 only, become sums with `product` set;
/// what they add up is a multiplication of the row, first, with the matrix.
Ir gemv(Ir ir);

}  // namespace weft::compiler
