// Evaluations that end early because they are asked to (weft/evaluation.h).
#include <doctest/doctest.h>

#include <atomic>

#include "device.h"
#include "weft/compile.h"
#include "weft/evaluation.h"
#include "weft/ops.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

std::atomic<int> asked, answers_from;

/// Answers yes from the call on that `answers_from` says; 0: never.
bool ends() { return ++asked >= answers_from && answers_from > 0; }

struct Asking {
  explicit Asking(int from) {
    asked = 0, answers_from = from;
    set_interrupt_check(ends);
  }
  ~Asking() { set_interrupt_check(nullptr); }
};

/// Many steps: products of a matrix whose powers are the matrix itself.
array work(array x, int steps) {
  const array unit = x;
  for (int k = 0; k < steps; ++k) x = matmul(x, unit);
  return x;
}

array averaging(int n) { return full({n, n}, 1.0f / static_cast<float>(n)); }

}  // namespace

TEST_CASE("an evaluation ends between its steps where it is asked to, and may begin again") {
  if (test::on_gpu()) return;  // programs of a GPU run to their end
  array x = work(averaging(192), 400);
  {
    const Asking asking(1);
    CHECK_THROWS_AS(eval(x), interrupted);
    CHECK(asked == 1);
  }
  CHECK(sum(x).item<float>() == doctest::Approx(192).epsilon(1e-3));
}

TEST_CASE("nobody is asked in work that is brief, and work goes on where the answer is no") {
  const Asking asking(0);
  array brief = averaging(4) + 1.0f;
  eval(brief);
  CHECK(asked == 0);
  array x = work(averaging(192), 400);
  eval(x);
  CHECK(x.size() == 192 * 192);
  if (!test::on_gpu()) CHECK(asked > 0);
}

TEST_CASE("programs that change arrays in place run to their end") {
  if (test::on_gpu()) return;
  array state = averaging(192);
  eval(state);
  const auto step = compile(
      [&](const std::vector<array>& in) {
        state = state * 0.5f + work(in[0], 400);
        return std::vector<array>{sum(state)};
      },
      {.state = {&state}});
  const array x = averaging(192);
  eval(x);
  const float after_one = step({x})[0].item<float>();
  const Asking asking(1);
  const array again = step({x})[0];
  eval(again);
  CHECK(asked == 0);
  CHECK(again.item<float>() == doctest::Approx(after_one / 2 + 192).epsilon(1e-3));
}
