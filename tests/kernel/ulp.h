#pragma once
// Errors in units of the last position.
#include <algorithm>
#include <cmath>

namespace weft::test {

/// Of the binade of r in float32, subnormals among them.
inline double unit_in_last_place(double r) {
  const int exponent = r == 0 ? -149 : std::min(std::ilogb(r), 127);
  return std::max(std::ldexp(1.0, exponent - 23), 0x1p-149);
}

/// The distance of y from the exact value r, in units of the last place of r.
inline double ulp_error(float y, double r) {
  if (std::isnan(r) || std::isnan(y)) return std::isnan(r) && std::isnan(y) ? 0 : HUGE_VAL;
  if (y == 0 && r == 0) return std::signbit(y) == std::signbit(r) ? 0 : HUGE_VAL;
  if (std::isinf(y) && y == static_cast<float>(r)) return 0;
  if (std::isinf(r)) return HUGE_VAL;
  const double reached = std::isinf(y) ? std::copysign(0x1p128, y) : double{y};
  return std::fabs(reached - r) / unit_in_last_place(r);
}

}  // namespace weft::test
