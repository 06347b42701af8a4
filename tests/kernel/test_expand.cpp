// The expansions in float32 against the C library in double precision, within the bounds of the scalar table; and their
// exact values.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/half.h"
#include "kernel/expand_run.h"
#include "kernel/hard_angles.h"
#include "kernel/ulp.h"

using namespace weft;
using namespace weft::kernel;
using test::run_expanded;
using test::ulp_error;
using test::unit_in_last_place;

namespace {

constexpr float nan_f = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
constexpr float largest = std::numeric_limits<float>::max(), tiniest = 0x1p-149f;

std::vector<float> specials() {
  std::vector<float> out;
  for (float v :
       {0.0f,   tiniest, 0x1p-127f, 0x1p-126f, 0x1p-24f, 0x1p-12f, 0.5f,       0x1.fffffep-1f, 1.0f,  0x1.000002p0f,
        1.5f,   2.0f,    3.0f,      9.02f,     17.5f,    88.0f,    88.72283f,  88.72284f,      89.0f, 103.9f,
        104.0f, 127.0f,  128.0f,    149.5f,    0x1p24f,  0x1p126f, 0x1.8p127f, largest,        inf})
    for (float s : {v, -v}) out.push_back(s);
  out.push_back(nan_f);
  return out;
}

// Every exponent and sign alike, and as many again where the functions do something.
std::vector<float> dense_sample(uint64_t seed, size_t n) {
  std::mt19937_64 random(seed);
  std::vector<float> out = specials();
  std::uniform_real_distribution<float> near(-20, 20), middle(-110, 110), unit(-1, 1);
  while (out.size() < n) {
    out.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
    out.push_back(near(random));
    out.push_back(middle(random));
    out.push_back(unit(random));
  }
  return out;
}

struct Worst {
  double error = 0;
  float at = 0, got = 0;
};

Worst worst_error(ScalarOp op, const std::vector<float>& x) {
  const std::vector<float> y = run_expanded(op, x);
  Worst worst;
  for (size_t k = 0; k < x.size(); ++k) {
    const Number arg = Number::of_real(x[k]);
    const double e = ulp_error(y[k], reference(op, float64, &arg).real());
    if (e > worst.error) worst = {e, x[k], y[k]};
  }
  return worst;
}

void check_bound(ScalarOp op, const std::vector<float>& x) {
  const Worst worst = worst_error(op, x);
  CAPTURE(info(op).name);
  CAPTURE(worst.at);
  CAPTURE(worst.got);
  CHECK(info(op).ulp > 0);
  CHECK(worst.error <= info(op).ulp);
  CHECK(worst.error >= 0.4);  // a sample this dense meets rounding: less says that nothing was compared
}

float one(ScalarOp op, float x) { return run_expanded(op, {x}).at(0); }

bool same_bits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

}  // namespace

TEST_CASE("float32 expansions stay within the bounds of the scalar table") {
  const std::vector<float> x = dense_sample(1, 200000);
  for (int k = 0; k < static_cast<int>(ScalarOp::count_); ++k) {
    const auto op = static_cast<ScalarOp>(k);
    if (info(op).arity == 1 && info(op).ulp > 0) check_bound(op, x);
  }
}

TEST_CASE("expansions of two arguments: all pairs of special values, and random ones") {
  std::vector<float> a, b;
  for (float x : specials())
    for (float y : specials()) {
      a.push_back(x);
      b.push_back(y);
    }
  std::mt19937_64 random(5);
  std::uniform_real_distribution<float> near(-20, 20);
  for (int k = 0; k < 50000; ++k)
    for (std::vector<float>* v : {&a, &b})
      v->push_back(k % 2 ? near(random) : std::bit_cast<float>(static_cast<uint32_t>(random())));
  for (int k = 0; k < static_cast<int>(ScalarOp::count_); ++k) {
    const auto op = static_cast<ScalarOp>(k);
    const ScalarInfo& row = info(op);
    if (row.arity != 2 || row.basic || !row.floats) continue;
    CAPTURE(row.name);
    const std::vector<float> y = run_expanded(op, a, b);
    Worst worst;
    float second = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      const Number args[] = {Number::of_real(a[i]), Number::of_real(b[i])};
      const double exact = reference(op, float64, args).real();
      double error = ulp_error(y[i], exact);
      if (row.scale == ErrorScale::arguments && std::isfinite(exact) && std::isfinite(y[i]))
        error = std::fabs(y[i] - exact) /
                unit_in_last_place(std::max({std::fabs(double{a[i]}), std::fabs(double{b[i]}), 1.0}));
      if (error > worst.error) worst = {error, a[i], y[i]}, second = b[i];
    }
    CAPTURE(worst.at);
    CAPTURE(second);
    CAPTURE(worst.got);
    CHECK(worst.error <= row.ulp);
    CHECK(worst.error >= 0.4);
  }
}

TEST_CASE("ldexp or integer arithmetic: the same bits") {
  const std::vector<float> x = dense_sample(7, 20000);
  for (ScalarOp op : {ScalarOp::exp, ScalarOp::exp2, ScalarOp::sinh, ScalarOp::cosh, ScalarOp::sigmoid}) {
    CAPTURE(info(op).name);
    const Kernel kernel = test::scalar_kernel(op, float32), with = expand(kernel, {.ldexp = true});
    CHECK(print(with).find("ldexp") != std::string::npos);
    const std::vector<float> a = run_expanded(op, x), b = test::run_kernel<float>(with, {x});
    size_t differ = 0;
    for (size_t k = 0; k < x.size(); ++k) differ += !same_bits(a[k], b[k]);
    CHECK(differ == 0);
  }
}

TEST_CASE("an exponential of a minimum with a constant takes fewer operations: the same bits") {
  const auto limited = [](ScalarOp op, double limit) {
    Builder b("limited");
    const Ref in = b.param("x", float32, false), out = b.param("y", float32, true);
    const Value start = b.mul(b.program_id(), b.index(test::scalar_kernel_lanes));
    const Value left = b.sub(b.symbol("n"), start), x = b.load(in, start, {test::scalar_kernel_lanes}, {1}, {left});
    const Value most = b.constant(float32, Number::of_real(limit), {test::scalar_kernel_lanes});
    b.store(out, b.scalar(op, {b.min(x, most)}), start, {1}, {left});
    return b.finish();
  };
  const std::vector<float> x = dense_sample(9, 20000);
  for (const Expansion has : {Expansion{}, Expansion{.ldexp = true}})
    for (const double limit : {0.0, 30.0, 69.0, 69.5}) {
      CAPTURE(limit);
      const Kernel plain = expand(test::scalar_kernel(ScalarOp::exp, float32), has),
                   with = expand(limited(ScalarOp::exp, limit), has);
      // The minimum is an operation of its own here.
      const auto more = static_cast<std::ptrdiff_t>(with.body.insts.size() - plain.body.insts.size());
      CHECK((more <= 0) == (limit <= 69));
      std::vector<float> least = x;
      for (float& v : least) v = std::isnan(v) ? v : std::min(v, static_cast<float>(limit));
      const std::vector<float> a = test::run_kernel<float>(plain, {least}), b = test::run_kernel<float>(with, {x});
      size_t differ = 0;
      for (size_t k = 0; k < x.size(); ++k) differ += !same_bits(a[k], b[k]);
      CHECK(differ == 0);
    }
}

TEST_CASE("exponentials written in exp2") {
  const std::vector<float> x = dense_sample(7, 20000);
  for (ScalarOp op : {ScalarOp::exp, ScalarOp::exp2, ScalarOp::sigmoid}) {
    CAPTURE(info(op).name);
    const Kernel with = expand(test::scalar_kernel(op, float32), {.special_functions = true});
    CHECK(print(with).find("exp2") != std::string::npos);
    const std::vector<float> y = test::run_kernel<float>(with, {x});
    double worst = 0;
    for (size_t k = 0; k < x.size(); ++k) {
      const double v = x[k], right = op == ScalarOp::exp    ? std::exp(v)
                                     : op == ScalarOp::exp2 ? std::exp2(v)
                                                            : 1 / (1 + std::exp(-v));
      if (std::isnan(v) || std::isinf(static_cast<float>(right))) CHECK(same_bits(y[k], static_cast<float>(right)));
      else if (right >= 0x1p-126)
        worst = std::max(worst, std::fabs(y[k] - right) / std::ldexp(1.0, std::max(-126, std::ilogb(right)) - 23));
      else CHECK(std::fabs(y[k] - right) <= 0x1p-126);  // the instruction takes subnormal numbers as 0
    }
    CHECK(worst < 3);
  }
}

TEST_CASE("functions of 16-bit floats are within three quarters of a unit, with and without special instructions") {
  std::mt19937_64 random(11);
  for (const Dtype t : {bfloat16, float16})
    for (const bool special : {false, true})
      for (const ScalarOp op : {ScalarOp::exp, ScalarOp::sigmoid, ScalarOp::tanh, ScalarOp::logaddexp}) {
        CAPTURE(info(op).name);
        CAPTURE(special);
        const Kernel kernel = expand(test::scalar_kernel(op, t), {.special_functions = special});
        std::vector<std::vector<uint16_t>> in(1, std::vector<uint16_t>(65536));
        for (size_t k = 0; k < in[0].size(); ++k) in[0][k] = static_cast<uint16_t>(k);
        if (info(op).arity == 2) {  // near the first, equal to it, or any
          in.push_back(in[0]);
          for (size_t k = 0; k < in[1].size(); ++k)
            if (k % 3 < 2) in[1][k] = static_cast<uint16_t>(k % 3 == 0 ? random() : k ^ (random() & 127));
        }
        const std::vector<uint16_t> y = test::run_kernel<uint16_t>(kernel, in);
        const auto value = [&](uint16_t bits) {
          return double{t == bfloat16 ? bf16_to_float(bits) : f16_to_float(bits)};
        };
        double worst = 0, at = 0;
        for (size_t k = 0; k < y.size(); ++k) {
          const double a = value(in[0][k]), b = value(in.back()[k]);
          const Number args[] = {Number::of_real(a), Number::of_real(b)};
          const double exact = reference(op, float64, args).real(), got = value(y[k]);
          if (std::isnan(exact)) CHECK(std::isnan(got));
          if (!std::isfinite(exact) || !std::isfinite(got) || std::fabs(exact) < 0x1p-14) continue;
          const double size =
              info(op).arity == 2 ? std::max({std::fabs(a), std::fabs(b), 1.0, exact}) : std::fabs(exact);
          const double error = std::fabs(got - exact) / std::ldexp(1.0, std::ilogb(size) - (t == bfloat16 ? 7 : 10));
          if (error > worst) worst = error, at = a;
        }
        CAPTURE(at);
        CHECK(worst <= 0.75);
        CHECK(worst >= 0.45);
      }
}

TEST_CASE("recip, square and sign are exact") {
  const std::vector<float> x = dense_sample(2, 20000);
  const auto recip = run_expanded(ScalarOp::recip, x), square = run_expanded(ScalarOp::square, x),
             sign = run_expanded(ScalarOp::sign, x);
  size_t wrong = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    wrong += !same_bits(recip[k], 1 / x[k]);
    wrong += !same_bits(square[k], x[k] * x[k]);
    wrong += !same_bits(sign[k], x[k] > 0 ? 1.0f : x[k] < 0 ? -1.0f : 0.0f);
  }
  CHECK(wrong == 0);
}

TEST_CASE("limits of the expansions are exact") {
  struct Row {
    ScalarOp op;
    float x, y;
  };
  const Row rows[] = {
      {ScalarOp::exp, -inf, 0},
      {ScalarOp::exp, inf, inf},
      {ScalarOp::exp, 0, 1},
      {ScalarOp::exp, -0.0f, 1},
      {ScalarOp::exp, 88.72284f, inf},
      {ScalarOp::exp, -104, 0},
      {ScalarOp::exp, -103.9f, tiniest},
      {ScalarOp::exp2, -149, tiniest},
      {ScalarOp::exp2, 127, 0x1p127f},
      {ScalarOp::exp2, 128, inf},
      {ScalarOp::exp2, -151, 0},
      {ScalarOp::expm1, -inf, -1},
      {ScalarOp::expm1, -0.0f, -0.0f},
      {ScalarOp::expm1, tiniest, tiniest},
      {ScalarOp::expm1, inf, inf},
      {ScalarOp::log, 1, 0},
      {ScalarOp::log, 0, -inf},
      {ScalarOp::log, -0.0f, -inf},
      {ScalarOp::log, inf, inf},
      {ScalarOp::log, -1, nan_f},
      {ScalarOp::log, -inf, nan_f},
      {ScalarOp::log2, tiniest, -149},
      {ScalarOp::log2, 0x1p100f, 100},
      {ScalarOp::log1p, -1, -inf},
      {ScalarOp::log1p, -2, nan_f},
      {ScalarOp::log1p, -0.0f, -0.0f},
      {ScalarOp::log1p, inf, inf},
      {ScalarOp::tanh, inf, 1},
      {ScalarOp::tanh, -inf, -1},
      {ScalarOp::tanh, 9.02f, 1},
      {ScalarOp::tanh, -0.0f, -0.0f},
      {ScalarOp::tanh, tiniest, tiniest},
      {ScalarOp::erf, inf, 1},
      {ScalarOp::erf, -inf, -1},
      {ScalarOp::erf, -0.0f, -0.0f},
      {ScalarOp::erfinv, 1, inf},
      {ScalarOp::erfinv, -1, -inf},
      {ScalarOp::erfinv, 1.1f, nan_f},
      {ScalarOp::erfinv, -0.0f, -0.0f},
      {ScalarOp::sigmoid, inf, 1},
      {ScalarOp::sigmoid, -inf, 0},
      {ScalarOp::sigmoid, 0, 0.5f},
      {ScalarOp::sin, -0.0f, -0.0f},
      {ScalarOp::sin, inf, nan_f},
      {ScalarOp::cos, 0, 1},
      {ScalarOp::cos, -inf, nan_f},
      {ScalarOp::rsqrt, 0, inf},
      {ScalarOp::rsqrt, inf, 0},
      {ScalarOp::rsqrt, -1, nan_f},
      {ScalarOp::tan, -0.0f, -0.0f},
      {ScalarOp::tan, inf, nan_f},
      {ScalarOp::sin, -inf, nan_f},
      {ScalarOp::tan, -inf, nan_f},
      {ScalarOp::cos, inf, nan_f},
      {ScalarOp::cos, -0.0f, 1},
      {ScalarOp::sin, tiniest, tiniest},
      {ScalarOp::sin, -tiniest, -tiniest},
      {ScalarOp::tan, tiniest, tiniest},
      {ScalarOp::cos, tiniest, 1},
      {ScalarOp::arcsin, -0.0f, -0.0f},
      {ScalarOp::arcsin, 1.1f, nan_f},
      {ScalarOp::arccos, 1, 0},
      {ScalarOp::arccos, -2, nan_f},
      {ScalarOp::arctan, -0.0f, -0.0f},
      {ScalarOp::arctan, tiniest, tiniest},
      {ScalarOp::sinh, -0.0f, -0.0f},
      {ScalarOp::sinh, -inf, -inf},
      {ScalarOp::cosh, -inf, inf},
      {ScalarOp::cosh, 0, 1},
      {ScalarOp::arcsinh, -inf, -inf},
      {ScalarOp::arcsinh, -0.0f, -0.0f},
      {ScalarOp::arccosh, 1, 0},
      {ScalarOp::arccosh, inf, inf},
      {ScalarOp::arccosh, -3, nan_f},
      {ScalarOp::arctanh, 1, inf},
      {ScalarOp::arctanh, -1, -inf},
      {ScalarOp::arctanh, inf, nan_f},
      {ScalarOp::arctanh, -0.0f, -0.0f},
      {ScalarOp::log10, 0, -inf},
      {ScalarOp::log10, inf, inf},
      {ScalarOp::log10, 1, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(info(row.op).name);
    CAPTURE(row.x);
    CAPTURE(one(row.op, row.x));
    CHECK(same_bits(one(row.op, row.x), row.y));
  }
  for (ScalarOp op : {ScalarOp::exp, ScalarOp::exp2, ScalarOp::expm1, ScalarOp::log, ScalarOp::log2, ScalarOp::log1p,
                      ScalarOp::tanh, ScalarOp::erf, ScalarOp::erfinv, ScalarOp::sigmoid, ScalarOp::sin, ScalarOp::cos,
                      ScalarOp::rsqrt, ScalarOp::recip, ScalarOp::square})
    CHECK(std::isnan(one(op, nan_f)));
}

TEST_CASE("tanh, erf and sigmoid never leave their range") {
  std::vector<float> x;
  for (float v = -30; v < 30; v += 0.0007f) x.push_back(v);
  size_t outside = 0;
  for (ScalarOp op : {ScalarOp::tanh, ScalarOp::erf, ScalarOp::sigmoid})
    for (float y : run_expanded(op, x)) outside += !(std::fabs(y) <= 1);
  CHECK(outside == 0);
}

TEST_CASE("sin, cos and tan beside the multiples of pi/2, and where their reduction changes") {
  const auto neighbour = [](float v, int k) {
    return std::bit_cast<float>(std::bit_cast<uint32_t>(v) + static_cast<uint32_t>(k));
  };
  std::vector<float> x;
  double closest = 1;
  for (float v : test::hard_angles()) {
    closest = std::min({closest, std::fabs(std::sin(double{v})), std::fabs(std::cos(double{v}))});
    for (int k = -2; k <= 2; ++k) x.push_back(neighbour(v, k) * (k % 2 ? -1.0f : 1.0f));
  }
  CHECK(closest < 3e-9);
  for (int k = -2000; k < 2000; ++k) x.push_back(neighbour(0x1p18f, k));
  for (ScalarOp op : {ScalarOp::sin, ScalarOp::cos, ScalarOp::tan}) check_bound(op, x);
}

TEST_CASE("pow: all pairs of special values, and random ones over the whole range of results") {
  std::vector<float> x, y;
  for (float a : specials())
    for (float b : specials()) {
      x.push_back(a);
      y.push_back(b);
    }
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> exponent(-160, 135), base(-30, 30), whole(-40, 40);
  for (int k = 0; k < 100000; ++k) {
    const float a = static_cast<float>(std::exp2(k % 2 ? base(random) : base(random) / 60));
    x.push_back(k % 5 == 0 ? -a : a);
    y.push_back(k % 5 == 0 ? static_cast<float>(std::nearbyint(whole(random)))
                           : static_cast<float>(exponent(random) / std::log2(double{a})));
  }
  const std::vector<float> z = run_expanded(ScalarOp::pow, x, y);
  double worst = 0;
  size_t at = 0;
  for (size_t k = 0; k < x.size(); ++k)
    if (const double e = ulp_error(z[k], std::pow(double{x[k]}, double{y[k]})); e > worst) {
      worst = e;
      at = k;
    }
  CAPTURE(x[at]);
  CAPTURE(y[at]);
  CAPTURE(z[at]);
  CHECK(worst <= info(ScalarOp::pow).ulp);
  CHECK(worst >= 0.4);
}

TEST_CASE("float64 keeps what the C library has, and expands what it has not") {
  Builder b("double");
  const Ref in = b.param("x", float64, false), out = b.param("y", float64, true);
  const Value start = b.mul(b.program_id(), b.index(8)), v = b.load(in, start, {8}, {1}, {b.sub(b.symbol("n"), start)});
  const Value stored =
      b.add(b.scalar(ScalarOp::erfinv, {v}), b.add(b.scalar(ScalarOp::sigmoid, {v}), b.scalar(ScalarOp::tanh, {v})));
  b.store(out, stored, start, {1}, {b.sub(b.symbol("n"), start)});
  const Kernel kernel = expand(b.finish());
  verify(kernel);
  std::vector<double> x, y;
  for (double e = 1; e > 1e-15; e *= 0.97) x.insert(x.end(), {1 - e, e - 1, e});
  y.resize(x.size());
  const int64_t n = static_cast<int64_t>(x.size());
  const HostBuffer buffers[] = {{x.data(), n}, {y.data(), n}};
  interpret(kernel, buffers, std::span(&n, 1), (n + 7) / 8);
  double worst = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    const Number arg = Number::of_real(x[k]);
    const double exact = reference(ScalarOp::erfinv, float64, &arg).f + 1 / (1 + std::exp(-x[k])) + std::tanh(x[k]);
    if (std::isinf(exact)) CHECK(y[k] == exact);
    else worst = std::max(worst, std::fabs(y[k] - exact) / (1 + std::fabs(exact)));
  }
  CHECK(worst < 4e-15);
  CHECK_THROWS(expand(kernel, {.keep_float64 = false}));
}
