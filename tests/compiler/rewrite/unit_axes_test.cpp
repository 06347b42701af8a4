// Reductions over axes of one element beside others: they are as if those axes were not there.
#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "weft/compile.h"
#include "weft/ops.h"

using namespace weft;

TEST_CASE("reductions over axes of one element beside others") {
  const std::vector<std::pair<Shape, std::vector<int>>> cases = {
      {{65, 65, 1}, {0, 2}},     {{65, 1, 65}, {0, 1}}, {{65, 65, 1, 3}, {0, 2}}, {{16, 16, 1, 16}, {0, 2}},
      {{65, 65, 1, 65}, {0, 2}}, {{1, 70, 65}, {0, 2}}, {{65, 65, 1, 1}, {0, 3}}, {{17, 33, 1, 17, 1}, {0, 2, 4}},
  };
  for (const auto& [shape, axes] : cases) {
    CAPTURE(to_string(shape));
    const auto count = static_cast<float>(num_elements(shape));
    const array x = reshape(arange(0.0, static_cast<double>(count), float32), shape) * array(1.0f / count);
    const array wide = astype(x, float64);
    eval(x, wide);
    // The same sums without the axes of one element.
    Shape longer;
    std::vector<int> left;
    for (size_t k = 0; k < shape.size(); ++k) {
      if (shape[k] == 1) continue;
      if (std::count(axes.begin(), axes.end(), static_cast<int>(k)) > 0)
        left.push_back(static_cast<int>(longer.size()));
      longer.push_back(shape[k]);
    }
    const array plain = reshape(wide, longer);
    const auto same = [&](const array& got, const array& wanted) {
      return allclose(astype(flatten(got), float64), flatten(wanted), 1e-5, 1e-6).item<bool>();
    };
    CHECK(same(sum(x, axes), sum(plain, left)));
    CHECK(same(max(x, axes), max(plain, left)));
    CHECK(same(mean(x, axes), mean(plain, left)));
    CHECK(same(var(x, axes), var(plain, left)));
    CHECK(same(logsumexp(x, axes), logsumexp(plain, left)));
    const array whole = remainder(reshape(arange(static_cast<int>(count)), shape), array(97));
    CHECK(same(sum(whole, axes), sum(reshape(whole, longer), left)));
    const auto compiled = compile([&](const std::vector<array>& in) { return std::vector{sum(in[0], axes, true)}; });
    CHECK(same(compiled({x})[0], sum(plain, left)));
  }
}
