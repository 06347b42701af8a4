// Products of a prologue that are exact: a sum with one becomes a fused multiply-add of the same bits.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "compiler/lower/dot/exact.h"

using namespace weft;
using compiler::fused_steps;
using kernel::Epilogue;
using kernel::EpilogueStep;
using kernel::ScalarOp;
using Kind = EpilogueStep::Kind;

namespace {

/// An expression that is written step by step.
struct Steps {
  Epilogue e;
  int add(Kind kind, Dtype t, std::vector<int> inputs = {}, ScalarOp op = ScalarOp::add) {
    EpilogueStep s;
    s.kind = kind, s.dtype = t, s.op = op, s.inputs = std::move(inputs);
    e.steps.push_back(std::move(s));
    return e.result = static_cast<int>(e.steps.size()) - 1;
  }
  /// An array, as float32 where it has another floating dtype.
  int read(Dtype t) {
    kernel::EpilogueOperand x;
    x.dtype = t, x.m = 1;
    e.operands.push_back(x);
    const int v = add(Kind::operand, t);
    e.steps.back().operand = static_cast<int>(e.operands.size()) - 1;
    return is_integer(t) || t == float32 ? v : add(Kind::cast, float32, {v});
  }
  int masked(int v, int64_t mask) {
    const int number = add(Kind::constant, uint32);
    e.steps.back().number = Number::of_int(mask);
    return add(Kind::cast, float32, {add(Kind::scalar, uint32, {v, number}, ScalarOp::bit_and)});
  }
  int scalar(ScalarOp op, int a, int b) { return add(Kind::scalar, float32, {a, b}, op); }
};

/// Returns whether scale · (word & (2^bits - 1)) + bias is fused.
bool fuses(Dtype scale, int bits) {
  Steps s;
  const int code = s.masked(s.read(uint32), (int64_t{1} << bits) - 1),
            product = s.scalar(ScalarOp::mul, s.read(scale), code), bias = s.read(scale),
            sum = s.scalar(ScalarOp::add, bias, product);
  s.add(Kind::cast, bfloat16, {sum});
  const auto fused = fused_steps(s.e);
  CHECK(fused[static_cast<size_t>(product)].absorbed == (fused[static_cast<size_t>(sum)].product == 1));
  return fused[static_cast<size_t>(sum)].product == 1;
}

}  // namespace

TEST_CASE("a product of a code and a scale is fused with the bias where it has no more than 24 significant bits") {
  CHECK(fuses(bfloat16, 8));
  CHECK(fuses(float16, 8));
  CHECK(fuses(bfloat16, 16));
  CHECK_FALSE(fuses(bfloat16, 17));
  CHECK_FALSE(fuses(float16, 14));
  CHECK_FALSE(fuses(float32, 2));
}

TEST_CASE("a product that is read twice, or of two numbers that are no integers, is not fused") {
  Steps twice;
  const int code = twice.masked(twice.read(uint32), 15),
            product = twice.scalar(ScalarOp::mul, code, twice.read(bfloat16)),
            sum = twice.scalar(ScalarOp::add, product, product);
  CHECK(fused_steps(twice.e)[static_cast<size_t>(sum)].product == -1);
  Steps real;  // their product may be too small for float32
  const int small = real.scalar(ScalarOp::mul, real.read(bfloat16), real.read(bfloat16)),
            other = real.scalar(ScalarOp::add, small, real.read(bfloat16));
  CHECK(fused_steps(real.e)[static_cast<size_t>(other)].product == -1);
}

TEST_CASE("a fused multiply-add of what counts as exact has the bits of a product and a sum") {
  std::mt19937 engine(3);
  for (int k = 0; k < 100000; ++k) {
    const auto half = [&] {  // of any exponent, subnormal ones included
      const uint32_t bits = static_cast<uint32_t>(engine()) << 16;
      return std::bit_cast<float>(bits);
    };
    const float scale = half(), bias = half(), code = static_cast<float>(engine() & 0xffff);
    const float product = scale * code;
    if (!std::isfinite(scale) || !std::isfinite(bias) || !std::isfinite(product)) continue;
    CHECK(std::bit_cast<uint32_t>(std::fma(scale, code, bias)) == std::bit_cast<uint32_t>(product + bias));
  }
}
