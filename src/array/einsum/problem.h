#pragma once
// Subscripts and operands as one contraction of arrays in which every axis has one label of its own.
#include <map>
#include <string>
#include <vector>

#include "weft/array.h"

namespace weft::detail {

using EinsumLabels = std::vector<int>;
using EinsumSizes = std::map<int, Dim>;

/// An operand and the label of each of its axes.
struct EinsumTensor {
  array value;
  EinsumLabels labels;
};

struct EinsumProblem {
  std::vector<EinsumTensor> tensors;  // labels are distinct; an axis of length 1 that others make longer is left out
  std::vector<EinsumLabels> written;  // the distinct labels of each operand, with those of axes that are left out
  EinsumLabels output;
  EinsumSizes sizes;
};

bool has(const EinsumLabels& labels, int label);
size_t position(const EinsumLabels& labels, int label);
/// Returns the labels of a, and behind them those of b that a lacks.
EinsumLabels united(const EinsumLabels& a, const EinsumLabels& b);

/// Returns the contraction that the subscripts name; throws std::invalid_argument where they do not fit the operands.
EinsumProblem einsum_problem(const std::string& subscripts, const std::vector<array>& operands);

}  // namespace weft::detail
