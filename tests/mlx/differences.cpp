#include "mlx/differences.h"

#include <algorithm>
#include <sstream>

namespace weft::test {
namespace {

bool part_matches(const std::string& pattern, const std::string& text) {
  std::istringstream choices(pattern);
  for (std::string choice; std::getline(choices, choice, '|');) {
    size_t star = choice.find('*');
    if (star == std::string::npos ? choice == text
                                  : text.size() + 1 >= choice.size() && text.starts_with(choice.substr(0, star)) &&
                                        text.ends_with(choice.substr(star + 1)))
      return true;
  }
  return false;
}

}  // namespace

bool matches(const std::string& pattern, const std::string& title) {
  std::istringstream patterns(pattern), titles(title);
  std::string p, t;
  while (std::getline(patterns, p, '/')) {
    if (!std::getline(titles, t, '/') || !part_matches(p, t)) return false;
  }
  return !std::getline(titles, t, '/');
}

bool is_listed(const std::string& title, size_t result) {
  return std::ranges::any_of(listed_cases(), [&](const Listed& l) {
    return matches(l.pattern, title) && (l.results.empty() || std::ranges::find(l.results, result) != l.results.end());
  });
}

const std::vector<Listed>& listed_cases() {
  static const std::vector<Listed> cases = {
      {"cast-out-of-range", "beyond/astype_*/*/*"},
      {"shift-amounts", "beyond/left_shift|right_shift/int*|uint32|uint64/contiguous"},
      {"isclose-integers", "operator/isclose/int8|int16/transposed"},
      {"isclose-integers", "operator/isclose/int32|int64|uint32|uint64/contiguous|transposed|reversed"},
      {"round-decimals", "operator/round_2/float16|int32|int64|uint32|uint64/contiguous|transposed|reversed"},
      {"to-fp8-nan", "operator/to_fp8/float16|bfloat16|float32/contiguous|transposed|reversed"},
      {"to-fp8-float64", "operator/to_fp8/float64/*"},
      {"nan-to-num-float64", "operator/nan_to_num/float64|complex64/*"},
      {"cummax-nan",
       "operator/cummax|cummin|cummax_reverse|cummin_reverse/float16|bfloat16/contiguous|transposed|reversed"},
      {"cummax-nan", "operator/cummax_exclusive|cummin_exclusive/float16|bfloat16/contiguous|transposed"},
      {"complex-onesided-stft", "signals/stft", {16}},
      {"dequantize-half", "quantized/numbers", {8, 9, 10, 11, 12, 13, 15, 16, 17, 18, 19, 20}},
      {"half-quotient", "operator/floor_divide|divmod/bfloat16/transposed"},
      {"logsumexp-unsigned", "operator/logsumexp_0/uint8|uint16|uint32|uint64/contiguous|transposed"},
      {"logsumexp-unsigned", "operator/logsumexp_0/bool/transposed"},
      {"softmax-integers", "operator/softmax_0/bool|uint*|int*/*"},
      {"arguments-checked", "mistake/eigh UPLO|as_strided lengths"},
      {"float64-functions", "operator/sin|cos/float64/contiguous|transposed|reversed"},
      {"complex-log-branch", "operator/logcumsumexp|logcumsumexp_exclusive/complex64/transposed"},
      {"complex-vjp", "derivatives/complex power of two"},
      {"complex-decompositions", "mistake/det of complex"},
      {"complex128", "arithmetic/promotion of float64", {26, 27}},
      {"complex128", "arithmetic/promotion of complex64", {24, 25}},
  };
  return cases;
}

}  // namespace weft::test
