#pragma once
// What the examples of kernels share: random arrays, and a comparison that ends the program where it fails.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "weft/weft.h"

namespace check {

/// Returns normally distributed numbers, the same in each run.
inline weft::array normal(const weft::Shape& shape, uint64_t seed) {
  return weft::random::normal(shape, weft::float32, 0.0f, 1.0f, weft::random::key(seed));
}

/// Prints the largest difference of two arrays; exits with 1 where it is above `most`.
inline void near(const std::string& what, const weft::array& got, const weft::array& wanted, double most) {
  const auto difference = weft::max(weft::abs(weft::astype(got, weft::float32) - weft::astype(wanted, weft::float32)));
  const double worst = difference.item<float>();
  std::printf("%-40s largest difference %.2e\n", what.c_str(), worst);
  if (worst <= most) return;
  std::printf("wrong: at most %.2e was expected\n", most);
  std::exit(1);
}

}  // namespace check
