// The plan of a training step: how much of its arena is used at once, and what a memory budget makes of it.
#include <doctest/doctest.h>

#include <cmath>

#include "compiler/program.h"
#include "weft/compile.h"
#include "weft/fast.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

using Arrays = std::vector<array>;

constexpr int layers = 6, rows = 512, width = 32;

Arrays parameters() {
  Arrays all;
  for (int k = 0; k < layers; ++k) {
    all.push_back(random::normal({width, 4 * width}, float32, 0, 0.1f, random::key(static_cast<uint64_t>(2 * k))));
    all.push_back(random::normal({4 * width, width}, float32, 0, 0.1f, random::key(static_cast<uint64_t>(2 * k + 1))));
  }
  return all;
}

/// The mean square of what residual blocks make of x: norm, product, gelu, dropout by a fixed mask, product.
array loss(const Arrays& in) {
  array x = in[0];
  for (int k = 0; k < layers; ++k) {
    const array h = fast::layer_norm(x, std::nullopt, std::nullopt, 1e-5f);
    const array kept = astype(
        random::bits({rows, 4 * width}, 4, random::key(static_cast<uint64_t>(100 + k))) > array(1u << 30, uint32),
        float32);
    x = x + matmul(fast::gelu_tanh(matmul(h, in[static_cast<size_t>(1 + 2 * k)])) * kept,
                   in[static_cast<size_t>(2 + 2 * k)]);
  }
  return mean(square(x));
}

struct Outcome {
  Arrays gradients;
  compiler::Stats stats;
};

Outcome run(int64_t budget) {
  const compiler::Policy before = compiler::default_policy();
  compiler::Policy policy = before;
  policy.memory_budget = budget;
  compiler::set_default_policy(policy);
  Arrays in = parameters();
  in.insert(in.begin(), random::normal({rows, width}, float32, 0, 1, random::key(99)));
  eval(in);
  const auto f = compile([](const Arrays& a) { return gradients(loss(a), a); });
  const compiler::BuildRecord record;
  Outcome outcome{f(in), record.programs().back()->stats()};
  compiler::set_default_policy(before);
  return outcome;
}

}  // namespace

TEST_CASE("what lives between steps is placed within 5 % of what is alive at once") {
  const Outcome free = run(INT64_MAX);
  CHECK(free.stats.live_bytes > layers * rows * width * 4 * 4);
  CHECK(static_cast<double>(free.stats.arena_bytes) <= 1.05 * static_cast<double>(free.stats.live_bytes));
}

TEST_CASE("under a memory budget cheap values are made again, and gradients stay what they are") {
  const Outcome free = run(INT64_MAX);
  for (const int percent : {70, 40}) {
    CAPTURE(percent);
    const int64_t budget = free.stats.arena_bytes * percent / 100;
    const Outcome tight = run(budget);
    CHECK(tight.stats.arena_bytes <= budget + budget / 20);
    for (size_t k = 0; k < free.gradients.size(); ++k) {
      const auto a = free.gradients[k].to_vector<float>(), b = tight.gradients[k].to_vector<float>();
      double scale = 0, worst = 0;
      for (size_t i = 0; i < a.size(); ++i) {
        scale = std::max(scale, std::abs(static_cast<double>(a[i])));
        worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
      }
      CHECK(worst <= 1e-5 * scale);
    }
  }
}

TEST_CASE("a budget that cannot be met is come near to, and the program still runs") {
  const Outcome tiny = run(1);
  CHECK(tiny.stats.arena_bytes > 1);
  CHECK(tiny.stats.arena_bytes < run(INT64_MAX).stats.arena_bytes);
}
