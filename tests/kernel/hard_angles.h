#pragma once
// float32 values that are hardly a multiple of pi/2: where the reduction of an angle loses most of its bits.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

namespace weft::test {

/// Of each exponent e from 0 on, those m 2^(e - 23) with 2^23 <= m < 2^24 that the continued fraction of 2^(e - 23)
/// 2/pi says lie close to a multiple of pi/2.
inline std::vector<float> hard_angles() {
  constexpr int64_t low = int64_t{1} << 23, high = int64_t{1} << 24;
  std::vector<float> out;
  for (int e = 0; e < 128; ++e) {
    const double unit = std::ldexp(1.0, e - 23), turns = std::atan2(std::sin(unit), std::cos(unit)) * 2 /
                                                         std::numbers::pi;  // in quarters, but for whole ones
    double rest = turns - std::floor(turns);
    int64_t before = 0, denominator = 1;
    while (denominator < high && rest > 1e-9) {
      rest = 1 / rest;
      const double quotient = std::floor(rest);
      rest -= quotient;
      const auto steps = static_cast<int64_t>(std::min(quotient, double{high}));
      for (int64_t k = std::max<int64_t>(1, (low - before) / denominator);
           k <= steps && before + k * denominator < high && k * denominator < low + 8 * denominator; ++k)
        if (const int64_t m = before + k * denominator; m >= low)
          out.push_back(static_cast<float>(std::ldexp(static_cast<double>(m), e - 23)));
      const int64_t next = before + steps * denominator;
      before = denominator;
      denominator = next;
    }
    for (int64_t m = (low + before - 1) / before * before; m < high && m < low + 8 * before; m += before)
      out.push_back(static_cast<float>(std::ldexp(static_cast<double>(m), e - 23)));
  }
  return out;
}

}  // namespace weft::test
