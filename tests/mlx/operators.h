#pragma once
// The operators of the golden file "operators" by the names that it calls them.
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "mlx/golden.h"

namespace weft::test {

struct Operator {
  std::function<Arrays(const Arrays&)> call;
  Bound bound;                // of float32
  Bound half_bound;           // of float16 and bfloat16
  double float64_factor = 1;  // float64 may be as many times further off, in ulp: 2^29 where MLX computes it in float32
  std::optional<Bound> complex_bound = std::nullopt;  // of complex64; that of float32 unless it is given
};

const std::map<std::string, Operator>& operators();

}  // namespace weft::test
