#pragma once
// Shapeless functions that symbols cannot stand for: slices, paddings and reshapes along open axes, or sizes that the
// function computes with. They are traced for several lengths, and each number that differs becomes a polynomial of
// the lengths. In JSON that is {"of_lengths": [[2,0],[-1]], "over": 3} for (2 n₀ - 1) / 3. A real number is
// {"real_of_lengths": …}, with "root": true its square root, with "reciprocal": true one over that, and with "single":
// true rounded to float32.
#include <span>
#include <vector>

#include "io/program/polynomial.h"
#include "io/program/tape.h"

namespace weft::io {

/// Returns the pattern of which all tapes, those for points.points(), are instances. Throws std::invalid_argument, with
/// the entry and the number, where there is none.
LengthPattern pattern_of(const SamplePoints& points, const std::vector<Tape>& tapes);
/// Returns whether the tape is the pattern's for these lengths. Inputs are not compared, nor keys of composites.
bool is_instance(const Tape& tape, const LengthPattern& pattern, std::span<const int64_t> lengths);

}  // namespace weft::io
