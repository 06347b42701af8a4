// The cost model: how long ago memory was used, and what a launch costs.
#include "compiler/plan/predict.h"

#include <doctest/doctest.h>

#include "compiler/program/measured_rates.h"

using namespace weft;
using namespace weft::compiler;
using target::Rates;

namespace {

Rates rates() {
  Rates r;
  r.copy.fill(100e9);
  for (size_t k = 6; k < Rates::footprints; ++k) r.copy[k] = 10e9;  // beyond 2 MiB
  r.f32_products.fill(1e12);
  r.f16_products.fill(1e12);
  r.products.f32 = r.products.f16 = 1e12;
  r.vector = 1e11, r.rows = 1e9, r.launch = 1e6;
  return r;
}

Step touching(const std::vector<std::pair<int, double>>& buffers) {
  Step step;
  step.segments.emplace_back().grid = 64;
  step.work = 1e9;
  for (const auto& [index, bytes] : buffers) {
    step.traffic.push_back({NodeId{}, bytes, {Location::In::input, index, 0}});
    step.cost.bytes += bytes;
  }
  return step;
}

target::Machine machine_of(int64_t processors) {
  target::Machine m;
  m.processors = processors;
  return m;
}

}  // namespace

TEST_CASE("cost: memory that was used shortly before comes from a cache") {
  const double mib = 1 << 20;
  StepPlan plan;
  plan.steps = {touching({{0, mib}}), touching({{0, mib}, {1, 8 * mib}}), touching({{0, mib}})};
  const auto reuse = reuse_of(plan);
  REQUIRE(reuse.size() == 3);
  CHECK(reuse[0][4] == mib);  // the run before has just used it: 1 MiB
  CHECK(reuse[1][4] == mib);
  CHECK(reuse[1][8] == 8 * mib);  // 8 MiB of its own and 1 MiB of buffer 0, counted once: 16 MiB
  CHECK(reuse[2][8] == mib);
  const auto times = predict(plan, machine_of(2), rates());
  CHECK(times[0].seconds == doctest::Approx(1e-6 + mib / 100e9));
  CHECK(times[1].seconds == doctest::Approx(1e-6 + mib / 100e9 + 8 * mib / 10e9));
  CHECK(times[2].seconds == doctest::Approx(1e-6 + mib / 10e9));
  CHECK(times[2].floor == doctest::Approx(mib / 10e9));
}

TEST_CASE("cost: distances equal those of a list that is searched from its end") {
  StepPlan plan;
  uint32_t state = 7;
  const auto draw = [&](uint32_t n) {
    state = state * 1664525 + 1013904223;
    return (state >> 16) % n;
  };
  for (int k = 0; k < 60; ++k)
    plan.steps.push_back(touching({{static_cast<int>(draw(12)), 1e5 * (1 + draw(9))}, {100 + k % 7, 3e5}}));
  const auto reuse = reuse_of(plan);
  std::vector<std::pair<int, double>> stack;  // the latest use last
  for (int run = 0; run < 2; ++run)
    for (size_t k = 0; k < plan.steps.size(); ++k) {
      Reuse expected{};
      for (const Traffic& t : plan.steps[k].traffic) {
        double distance = t.bytes;
        bool known = false;
        for (size_t at = stack.size(); at-- > 0;) {
          if ((known = stack[at].first == t.location.index)) {
            stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(at));
            break;
          }
          distance += stack[at].second;
        }
        stack.emplace_back(t.location.index, t.bytes);
        size_t part = 0;
        while (part + 1 < Rates::footprints && (!known || distance > Rates::least_footprint * (1 << part))) ++part;
        expected[part] += t.bytes;
      }
      if (run == 1) CHECK(reuse[k] == expected);
    }
}

TEST_CASE("cost: a launch takes the longer of moving and computing, on the processors that have work") {
  LaunchWork work;
  work.operations = 1e6;
  Reuse nothing{};
  const auto seconds = [&](double programs, bool one_thread) {
    return 1e6 * seconds_of(work, nothing, {programs, 4, one_thread}, rates());
  };
  CHECK(seconds(0, false) == doctest::Approx(1 + 10));  // a library divides its work well
  CHECK(seconds(64, false) == doctest::Approx(1 + 10));
  CHECK(seconds(2, false) == doctest::Approx(1 + 20));  // half of the processors have none
  CHECK(seconds(5, false) == doctest::Approx(1 + 16));  // two waves, the second of one program
  CHECK(seconds(64, true) == doctest::Approx(1 + 40));
  work.row_sums = 5000;
  CHECK(seconds(64, false) == doctest::Approx(1 + 15));
  work.row_sums = 0;
  Reuse much{};
  much.back() = 1e6;
  CHECK(1e6 * seconds_of(work, much, {64, 4, false}, rates()) == doctest::Approx(1 + 100));
  work.products = work.flops = 1e9, work.arithmetic = Arithmetic::f32;
  CHECK(1e6 * seconds_of(work, much, {64, 4, false}, rates()) == doctest::Approx(1 + 1010));
  CHECK(1e6 * floor_seconds(work, much, rates()) == doctest::Approx(1000));
  CHECK(1e6 * floor_seconds(1e6, 1e9, Arithmetic::f32, rates()) == doctest::Approx(1000));
}

TEST_CASE("cost: the rates of this machine are measured, and a measurement again lowers none") {
  const Rates first = machine_rates(target::cpu());
  CHECK(first.memory() > 1e8);
  CHECK(first.vector > 1e7);
  CHECK(first.launch > 1e2);
  CHECK(first.peak(Arithmetic::f32) > 1e8);
  CHECK(machine_rates(target::cpu()).copy == first.copy);
  const Rates again = machine_rates(target::cpu(), true);
  CHECK(target::best_of(first, again).copy == again.copy);
  CHECK(machine_rates(target::null()).memory() == target::null().machine().bandwidth);
}
