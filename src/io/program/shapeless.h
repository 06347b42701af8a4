#pragma once
// Traces of functions whose arguments may have other lengths than those of the example.
#include <memory>
#include <vector>

#include "io/program/tape.h"
#include "transforms/traced.h"

namespace weft::io {

struct ShapelessTrace {
  Tape tape;                                     // with symbols for lengths; where there is a pattern, its inputs alone
  std::shared_ptr<const LengthPattern> pattern;  // null where symbols stand for all lengths
  std::vector<array> captured;
};

/// Returns the function's trace with a symbol for each length above 1 of the arguments that can be another one; axes of
/// one length have one symbol. A length that the function itself fixes (by an array that it refers to, for example)
/// stays a number. The function is run once; where symbols cannot stand for all lengths, it is run for several of them,
/// up to hundreds of times the example's, and the numbers of the traces become polynomials of the lengths.
///
/// Throws std::invalid_argument, with what to do, where no length can change, and where the function does other steps
/// for other lengths, or its numbers follow from them by no polynomial.
ShapelessTrace trace_shapeless(const ArrayFunction& fun, const std::vector<graph::Type>& arguments);

}  // namespace weft::io
