#pragma once
// The parser of einsum subscripts such as "ij,...(2*o+k)->o".
#include <string>
#include <vector>

namespace weft::detail {

/// One axis of an operand: one label, or scale[0]·label[0] + scale[1]·label[1] (label[1] may be missing: 0).
struct EinsumTerm {
  int label[2] = {0, 0};
  int64_t scale[2] = {1, 1};
  bool affine() const { return label[1] != 0 || scale[0] != 1; }
};

/// Labels are the letters' codes; axis j of an ellipsis, counted from the last, is ellipsis_label + j.
constexpr int ellipsis_label = 256;

struct EinsumOperand {
  std::vector<EinsumTerm> terms;
  int ellipsis = -1;  // number of terms before "...", or -1
};

struct EinsumText {
  std::vector<EinsumOperand> operands;
  std::vector<int> output;  // labels; ellipsis_label once for all axes of the ellipsis
};

/// Parses subscripts; throws std::invalid_argument "[einsum] …" with the position.
EinsumText parse_einsum(const std::string& subscripts);

}  // namespace weft::detail
