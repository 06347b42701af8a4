#pragma once
// Products of a prologue that are exact in float32, as of a scale of 16 bits and a code of few bits: a sum with one is
// a fused multiply-add, with the same bits.
#include <vector>

#include "kernel/describe/epilogue.h"

namespace weft::compiler {

/// What becomes of a step where products and sums are fused.
struct FusedStep {
  int product = -1;       // of a sum: which of its inputs is a product that it computes itself; -1: none
  bool absorbed = false;  // of a product: the sum that reads it computes it
};

/// Returns it for each step. A product is exact where one factor is an integer, so that it does not underflow, and both
/// have 24 significant bits together; the sum is then rounded once in either form. Where the product overflows, the sum
/// may still be finite in the fused one.
std::vector<FusedStep> fused_steps(const kernel::Epilogue& prologue);

}  // namespace weft::compiler
