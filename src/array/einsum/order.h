#pragma once
// The order in which einsum contracts its operands: MLX's, which is NumPy's "greedy".
#include <vector>

#include "array/einsum/problem.h"

namespace weft::detail {

struct EinsumOrder {
  std::vector<std::vector<size_t>> steps;  // positions in the list, ascending; the product goes to the list's end
  double operations = 0;                   // multiplications, and as many additions where something is summed
  size_t most_labels = 0;                  // of one step
};

/// Returns the labels that are left of the contraction of the operands at `positions`: those that the result or another
/// operand needs.
EinsumLabels labels_left(const std::vector<EinsumLabels>& list, const std::vector<size_t>& positions,
                         const EinsumLabels& output);

/// Returns the order of the problem. One operand is one step, two are one step. Of more, each step is the pair that
/// makes the most elements disappear, of equals the cheapest, of those the first; pairs that share no label come last.
/// A pair whose product is larger than all operands and the result, or with which the order costs more than one
/// contraction of all, is left out; where no pair is left, the last step contracts all that remain.
EinsumOrder einsum_order(const EinsumProblem& problem);

/// Returns the cost of one step that contracts all operands.
EinsumOrder einsum_at_once(const EinsumProblem& problem);

}  // namespace weft::detail
