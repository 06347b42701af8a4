#pragma once
// Shared by the tests of the transforms: random float64 arrays, and derivatives by differences.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "weft/fast.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/transforms.h"

namespace weft::testing {

using Arrays = std::vector<array>;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

inline array noise(const Shape& shape, uint64_t seed, double scale = 1) {
  return astype(random::normal(shape, float32, 0, static_cast<float>(scale), random::key(seed)), float64);
}

/// Weights the elements, so that nothing cancels by symmetry.
inline array weighted(const array& y) {
  return sum(y * reshape(cos(astype(arange(static_cast<int>(y.size())), float64)), y.shape()));
}

inline void check_close(const array& given, const array& expected, double tolerance = 1e-9) {
  REQUIRE(given.shape() == expected.shape());
  const Doubles a = given.to_vector<double>(), b = expected.to_vector<double>();
  for (size_t k = 0; k < a.size(); ++k) {
    CAPTURE(k);
    CAPTURE(a[k]);
    CAPTURE(b[k]);
    const bool close = std::abs(a[k] - b[k]) <= tolerance * (1 + std::abs(b[k]));
    CHECK(close);
  }
}

/// (f(x + h t) - f(x - h t)) / 2h, of fourth order.
inline array difference(const UnaryFunction& f, const array& x, const array& t, double h = 1e-3) {
  const auto at = [&](double s) { return f(x + array(s * h, float64) * t); };
  return (array(8.0, float64) * (at(1) - at(-1)) - (at(2) - at(-2))) / array(12 * h, float64);
}

inline std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}
inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace weft::testing
