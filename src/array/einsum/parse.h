#pragma once
// The parser of einsum subscripts such as "ij,...(2*o+k)->o" and "b (2*oh+kh) c, kh c -> b oh".
#include <cstdint>
#include <string>
#include <vector>

namespace weft::detail {

/// One axis of an operand: the element at offset + Σ factor · label. Most have one label with factor 1.
struct EinsumTerm {
  struct Part {
    int label = 0;
    int64_t factor = 1;
  };
  std::vector<Part> parts;
  int64_t offset = 0;
  bool affine() const { return parts.size() != 1 || parts[0].factor != 1 || offset != 0; }
};

/// A label is the position of its name in EinsumText::names; axis j of an ellipsis, counted from the last, is
/// ellipsis_label + j.
constexpr int ellipsis_label = 1 << 20;

struct EinsumOperand {
  std::vector<EinsumTerm> terms;
  int ellipsis = -1;  // number of terms before "...", or -1
};

struct EinsumText {
  std::vector<std::string> names;  // in alphabetical order
  std::vector<EinsumOperand> operands;
  std::vector<int> output;  // labels; ellipsis_label once for all axes of the ellipsis
};

/// Parses subscripts; throws std::invalid_argument "[einsum] …" with the place.
EinsumText parse_einsum(const std::string& subscripts);

}  // namespace weft::detail
