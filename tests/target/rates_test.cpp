// What machines can do: stated, measured, kept.
#include "target/rates.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

using namespace weft;
using target::Rates;

namespace {

Rates some_rates(double scale) {
  Rates r;
  for (size_t k = 0; k < Rates::footprints; ++k) r.copy[k] = scale * (k < 4 ? 200e9 : 50e9);
  for (size_t k = 0; k < Rates::sides; ++k)
    r.f32_products[k] = scale * 1e9 * static_cast<double>(k + 1), r.f16_products[k] = 4 * r.f32_products[k];
  r.products = {.f64 = scale * 4e9, .f32 = scale * 8e9, .f16 = scale * 32e9};
  r.vector = scale * 3e9, r.launch = scale * 1e6;
  return r;
}

/// A machine that no other run of this test has kept anything for.
target::Machine new_machine() {
  target::Machine m = target::stated_machine("avx2");
  m.name = fmt::format("test {} {}", ::getpid(), std::chrono::steady_clock::now().time_since_epoch().count());
  return m;
}

}  // namespace

TEST_CASE("rates: a slower measurement lowers nothing that is kept, a faster one raises it") {
  const target::Machine machine = new_machine();
  CHECK_FALSE(target::kept_rates(machine, 2));
  CHECK(target::keep_rates(machine, 2, some_rates(1)).measurements == 1);
  Rates mixed = some_rates(0.5);
  mixed.vector = 9e9;
  target::keep_rates(machine, 2, mixed);
  const auto kept = target::kept_rates(machine, 2);
  REQUIRE(kept);
  CHECK(kept->measurements == 2);
  CHECK(kept->rates.copy == some_rates(1).copy);
  CHECK(kept->rates.products.f16 == 32e9);
  CHECK(kept->rates.launch == 1e6);
  CHECK(kept->rates.vector == 9e9);
}

TEST_CASE("rates: another machine, and on a CPU another number of threads, has rates of its own") {
  target::Machine machine = new_machine();
  target::keep_rates(machine, 2, some_rates(1));
  CHECK_FALSE(target::kept_rates(machine, 1));
  target::Machine other = machine;
  other.arch = "avx512";
  CHECK_FALSE(target::kept_rates(other, 2));
  machine.simt = true;
  target::keep_rates(machine, 2, some_rates(1));
  CHECK(target::kept_rates(machine, 1));
}

TEST_CASE("rates: bandwidth by the cache that holds the data, matmuls by size, peaks by dtype") {
  const Rates r = some_rates(1);
  CHECK(r.bandwidth(1) == 200e9);
  CHECK(r.bandwidth(Rates::least_footprint * 8) == 200e9);
  CHECK(r.bandwidth(Rates::least_footprint * 16) == 50e9);
  CHECK(r.bandwidth(1e15) == 50e9);
  CHECK(r.memory() == 50e9);
  Rates slow_when_small = r;
  slow_when_small.copy[0] = 1e9;
  CHECK(slow_when_small.peak_bandwidth(1) == 200e9);
  CHECK(r.matmul_rate(Arithmetic::f32, 2.0 * 32 * 32 * 32) == doctest::Approx(1e9));
  CHECK(r.matmul_rate(Arithmetic::f32, 2.0 * 64 * 64 * 64) == doctest::Approx(2e9));
  CHECK(r.matmul_rate(Arithmetic::f32, 1e18) == doctest::Approx(8e9));
  CHECK(r.matmul_rate(Arithmetic::f16, 1e18) == doctest::Approx(32e9));
  CHECK(r.peak(Arithmetic::f8) == 32e9);   // as 16-bit floats
  CHECK(r.peak(Arithmetic::tf32) == 8e9);  // as float32
  CHECK(r.peak(Arithmetic::f64) == 4e9);
}

TEST_CASE("rates: every stated machine has rates, and so have a CPU and a GPU that nobody states") {
  for (const target::Machine& m : target::stated_machines()) {
    CAPTURE(m.name);
    const Rates r = target::stated_rates(m);
    CHECK(r.memory() == m.bandwidth);
    CHECK(r.peak(Arithmetic::f32) == m.peak.f32);
    CHECK(r.launch > 0);
    CHECK(r.vector > 0);
  }
  target::Machine unknown;
  unknown.processors = 4;
  CHECK(target::stated_rates(unknown).memory() > 0);
  CHECK(target::stated_rates(unknown).peak(Arithmetic::f64) > 0);
  const target::Machine gpu = target::gpu_of("sm_86");
  CHECK(target::stated_rates(gpu).memory() > 0);
  CHECK(target::stated_rates(gpu).peak(Arithmetic::f16) > target::stated_rates(gpu).peak(Arithmetic::f32));
}
