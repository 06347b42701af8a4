// sin, cos and tan of arguments of every magnitude: within the error that the scalar table states, and with the
// interpreter's bits on every target.
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernel/expand_run.h"
#include "kernel/hard_angles.h"
#include "kernel/ulp.h"
#include "target/cpu/cpu_support.h"

using namespace weft;
using namespace weft::kernel;
using namespace weft::test;

namespace {

constexpr ScalarOp angles[] = {ScalarOp::sin, ScalarOp::cos, ScalarOp::tan};

/// All bit patterns are as likely: as many values of each exponent, infinities and NaN among them.
std::vector<float> of_every_magnitude(size_t n) {
  std::vector<float> x = hard_angles();
  std::mt19937_64 random(11);
  while (x.size() < n) x.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  return x;
}

template <class T>
std::vector<T> run_on(target::Target& t, ScalarOp op, Dtype dtype, const std::vector<T>& x) {
  RandomCase c{scalar_kernel(op, dtype),
               {},
               {static_cast<int64_t>(x.size()), static_cast<int64_t>(x.size())},
               {static_cast<int64_t>(x.size())},
               0};
  c.grid = (c.elements[0] + scalar_kernel_lanes - 1) / scalar_kernel_lanes;
  c.buffers.assign(2, std::vector<std::byte>(x.size() * sizeof(T)));
  std::memcpy(c.buffers[0].data(), x.data(), x.size() * sizeof(T));
  run_compiled(t, c);
  std::vector<T> y(x.size());
  std::memcpy(y.data(), c.buffers[1].data(), y.size() * sizeof(T));
  return y;
}

void check_error(target::Target& t, ScalarOp op, const std::vector<float>& x) {
  const std::vector<float> y = run_on(t, op, float32, x);
  double worst = 0;
  size_t at = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    const Number argument = Number::of_real(x[k]);
    const double error = ulp_error(y[k], reference(op, float64, &argument).real());
    if (error > worst) worst = error, at = k;
  }
  CAPTURE(t.fingerprint());
  CHECK_MESSAGE(worst <= info(op).ulp, info(op).name, ": ", worst, " ulp at ", x[at], ", which gives ", y[at]);
  CHECK(worst > 0.6);  // or nothing was compared
}

}  // namespace

TEST_CASE("sin, cos and tan of arguments up to the largest number keep the error that the table states") {
  const std::vector<float> x = of_every_magnitude(on_gpu() ? 10'000'000 : 200'000);
  for (ScalarOp op : angles) {
    if (on_gpu()) {
      check_error(target_under_test(), op, x);
      continue;
    }
    for (const char* isa : {"native", "avx512", "avx2", "generic"})
      if (target::CpuTarget* t = cpu_target(isa)) check_error(*t, op, x);
  }
}

TEST_CASE("sin, cos and tan in float64 of arguments up to the largest number") {
  std::vector<double> x;
  std::mt19937_64 random(12);
  while (x.size() < 200'000)
    if (const double v = std::bit_cast<double>(random()); std::isfinite(v)) x.push_back(v);
  target::Target& t = on_gpu() ? target_under_test() : target::cpu();
  for (ScalarOp op : angles) {
    const std::vector<double> y = run_on(t, op, float64, x);
    double worst = 0;
    for (size_t k = 0; k < x.size(); ++k) {
      const Number argument = Number::of_real(x[k]);
      const double exact = reference(op, float64, &argument).f,
                   error = std::fabs(y[k] - exact) / std::max(std::fabs(exact), 0x1p-1022);
      worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
    }
    CHECK_MESSAGE(worst <= 0x1p-50, info(op).name, ": ",
                  worst);  // the device's own library: 2 units in the last place, and as many of the host's
  }
}

// Tiles in which all, some and none of the lanes are large: the interpreter looks at each lane alone.
TEST_CASE("sin, cos and tan give the interpreter's bits, whatever the magnitudes in a tile") {
  const std::vector<float> all = of_every_magnitude(4000);
  for (Dtype dtype : {float32, float16, bfloat16})
    for (const std::vector<int64_t>& dims : {std::vector<int64_t>{64}, {40}, {4, 16}, {8, 1}}) {
      if (dtype != float32 && dims != std::vector<int64_t>{64}) continue;  // computed in float32
      const Type tile{dtype, dims};
      Builder b("angles");
      const Ref in = b.param("x", dtype, false), out = b.param("y", dtype, true);
      const Value start = b.mul(b.program_id(), b.index(tile.size()));
      const std::vector<int64_t> strides =
          dims.size() == 2 ? std::vector<int64_t>{dims[1], 1} : std::vector<int64_t>{1};
      const Value x = b.load(in, start, dims, strides),
                  both = b.add(b.scalar(ScalarOp::sin, {x}), b.scalar(ScalarOp::cos, {x}));
      b.store(out, b.select(b.lt(both, b.real(dtype, 0.5)), both, b.scalar(ScalarOp::tan, {x})), start, strides);
      const int64_t grid = 4000 / tile.size();
      RandomCase c{b.finish(), {}, {4000, 4000}, {}, grid};
      c.buffers.assign(2, std::vector<std::byte>(4000 * dtype.size()));
      for (int64_t k = 0; k < 4000; ++k) {
        const int64_t kind = k / tile.size() % 3;  // every lane, one of them, none
        const bool large = kind == 0 || (kind == 1 && k % tile.size() == 3);
        write_element(c.buffers[0].data(), dtype, k,
                      round_to(Number::of_real(large ? all[static_cast<size_t>(k)]
                                                     : std::remainder(static_cast<double>(k) * 0.37, 50.0)),
                               dtype));
      }
      agree(c);
    }
}

// A scalar, which is the same for all lanes of the tile that it is spread over.
TEST_CASE("sin of one number for a whole tile") {
  for (float v : {0.5f, 3e38f, -1e20f, INFINITY}) {
    Builder b("uniform");
    const Ref in = b.param("x", float32, false), out = b.param("y", float32, true), one = b.param("z", float32, true);
    const Value scalar = b.load(in, b.index(0), {}, {}), sine = b.scalar(ScalarOp::sin, {scalar});
    b.store(one, sine, b.index(0), {});
    b.store(out, b.add(b.scalar(ScalarOp::cos, {b.broadcast(scalar, {64})}), sine), b.index(0), {1});
    RandomCase c{b.finish(), {}, {1, 64, 1}, {}, 1};
    for (int64_t n : c.elements) c.buffers.emplace_back(static_cast<size_t>(n) * 4);
    std::memcpy(c.buffers[0].data(), &v, 4);
    agree(c);
  }
}
