// Generated code's functions of one float32 argument against the C library in double precision: every 16411th of all
// float32 values, within the bounds that the scalar table states. bench/ulp.cpp goes through all of them.
#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "kernel/expand_run.h"
#include "kernel/ulp.h"
#include "target/cpu/cpu_support.h"

using namespace weft;
using namespace weft::kernel;
using namespace weft::test;

namespace {

/// The largest error of `y` against `exact`, in units in the last place of `y`, and where it is.
std::pair<double, float> worst_error(const std::vector<float>& x, const std::vector<float>& y,
                                     const std::vector<double>& exact) {
  std::pair<double, float> worst{0, 0};
  for (size_t i = 0; i < x.size(); ++i)
    if (const double error = ulp_error(y[i], exact[i]); error > worst.first) worst = {error, x[i]};
  return worst;
}

}  // namespace

TEST_CASE("functions keep the error that the table states, on every instruction set") {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 16411)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  std::vector<float> y(x.size());
  std::vector<double> exact(x.size());
  const int64_t n = static_cast<int64_t>(x.size());
  for (int k = 0; k < static_cast<int>(ScalarOp::count_); ++k) {
    const ScalarOp op = static_cast<ScalarOp>(k);
    const ScalarInfo& row = info(op);
    if (row.arity != 1 || !row.floats || row.result == ScalarResult::boolean) continue;
    for (size_t i = 0; i < x.size(); ++i) {
      const Number argument = Number::of_real(x[i]);
      exact[i] = reference(op, float64, &argument).real();
    }
    for (const char* isa : instruction_sets) {
      target::CpuTarget* t = cpu_target(isa);
      if (!t || (isa != instruction_sets[0] && k % 3 != 0))
        continue;  // the other sets have the same arithmetic: a part of them will do
      const Kernel code = scalar_kernel(op, float32);
      const auto compiled = t->compile(std::span<const Kernel>(&code, 1));
      void* buffers[] = {x.data(), y.data()};
      const int64_t symbols[] = {n};
      const target::Segment segment{buffers, symbols, (n + scalar_kernel_lanes - 1) / scalar_kernel_lanes};
      compiled[0]->run(std::span<const target::Segment>(&segment, 1), 0);
      const auto [worst, at] = worst_error(x, y, exact);
      // An exact operator rounds once.
      CHECK_MESSAGE(worst <= std::max(row.ulp, 0.5), row.name, " on ", std::string(isa), ": ", worst, " ulp at ", at);
    }
  }
}
