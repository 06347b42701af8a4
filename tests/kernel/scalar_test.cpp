#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "kernel/expand_run.h"
#include "kernel/scalar.h"

using namespace weft;
using namespace weft::kernel;

namespace {

constexpr double quiet = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

double real(ScalarOp op, std::vector<double> args, Dtype t = float64) {
  std::vector<Number> numbers;
  for (double v : args) numbers.push_back(Number::of_real(v));
  const Number r = reference(op, t, numbers.data());
  return r.integral ? static_cast<double>(r.i) : round_to(r, t).f;
}

int64_t whole(ScalarOp op, Dtype t, std::vector<int64_t> args) {
  std::vector<Number> numbers;
  for (int64_t v : args) numbers.push_back(round_to(Number::of_int(v), t));
  return reference(op, t, numbers.data()).i;
}

}  // namespace

TEST_CASE("the scalar table names every operator once") {
  for (int a = 0; a < static_cast<int>(ScalarOp::count_); ++a)
    for (int b = 0; b < a; ++b) CHECK(info(static_cast<ScalarOp>(a)).name != info(static_cast<ScalarOp>(b)).name);
  CHECK(info(ScalarOp::fma).arity == 3);
  CHECK(info(ScalarOp::lt).result == ScalarResult::boolean);
  CHECK_FALSE(info(ScalarOp::exp).basic);
  CHECK_THROWS_AS(real(ScalarOp::bit_and, {1, 2}), internal_error);
  CHECK_THROWS_AS(whole(ScalarOp::exp, int32, {1}), internal_error);
}

TEST_CASE("max and min propagate NaN and order the zeros") {
  for (ScalarOp op : {ScalarOp::max, ScalarOp::min}) {
    CHECK(std::isnan(real(op, {quiet, 1})));
    CHECK(std::isnan(real(op, {1, quiet})));
    CHECK(real(op, {2, 2}) == 2);
  }
  CHECK_FALSE(std::signbit(real(ScalarOp::max, {-0.0, 0.0})));
  CHECK_FALSE(std::signbit(real(ScalarOp::max, {0.0, -0.0})));
  CHECK(std::signbit(real(ScalarOp::min, {-0.0, 0.0})));
  CHECK(std::signbit(real(ScalarOp::min, {0.0, -0.0})));
  CHECK(whole(ScalarOp::max, uint64, {-1, 1}) == -1);  // all ones is the largest unsigned
  CHECK(whole(ScalarOp::max, int64, {-1, 1}) == 1);
}

TEST_CASE("comparisons with NaN are false except ne") {
  CHECK(real(ScalarOp::eq, {quiet, quiet}) == 0);
  CHECK(real(ScalarOp::lt, {quiet, 1}) == 0);
  CHECK(real(ScalarOp::le, {1, quiet}) == 0);
  CHECK(real(ScalarOp::ne, {quiet, quiet}) == 1);
  CHECK(whole(ScalarOp::lt, uint32, {-1, 1}) == 0);
  CHECK(whole(ScalarOp::le, int32, {-1, -1}) == 1);
}

TEST_CASE("integers wrap") {
  CHECK(whole(ScalarOp::add, int8, {127, 1}) == -128);
  CHECK(whole(ScalarOp::sub, uint8, {0, 1}) == 255);
  CHECK(whole(ScalarOp::mul, int32, {1 << 30, 4}) == 0);
  CHECK(whole(ScalarOp::neg, int64, {INT64_MIN}) == INT64_MIN);
  CHECK(whole(ScalarOp::abs, int16, {-32768}) == -32768);
  CHECK(whole(ScalarOp::bit_not, uint16, {0}) == 65535);
  CHECK(whole(ScalarOp::bit_not, bool_, {1}) == 0);
  CHECK(whole(ScalarOp::mulhi, uint32, {0xffffffff, 0xffffffff}) == 0xfffffffe);
  CHECK(whole(ScalarOp::mulhi, uint64, {-1, -1}) == -2);
}

TEST_CASE("floor division and modulus round toward minus infinity, and by zero give zero") {
  for (Dtype t : {int8, int16, int32, int64})
    for (int64_t a = -7; a <= 7; ++a)
      for (int64_t b = -3; b <= 3; ++b) {
        const int64_t q =
            b == 0 ? 0 : static_cast<int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
        CHECK(whole(ScalarOp::floordiv, t, {a, b}) == q);
        CHECK(whole(ScalarOp::mod, t, {a, b}) == (b == 0 ? 0 : a - q * b));
      }
  CHECK(whole(ScalarOp::floordiv, int64, {INT64_MIN, -1}) == INT64_MIN);
  CHECK(whole(ScalarOp::mod, int64, {INT64_MIN, -1}) == 0);
  CHECK(whole(ScalarOp::floordiv, uint8, {255, 2}) == 127);
  CHECK(real(ScalarOp::floordiv, {-7, 2}) == -4);
  CHECK(real(ScalarOp::mod, {-7, 2}) == 1);
  CHECK(real(ScalarOp::mod, {7, -2}) == -1);
  CHECK(std::isnan(real(ScalarOp::mod, {1, 0})));
}

TEST_CASE("shifts by the width or more give 0, or the sign") {
  CHECK(whole(ScalarOp::shl, int32, {1, 31}) == INT32_MIN);
  CHECK(whole(ScalarOp::shl, int32, {1, 32}) == 0);
  CHECK(whole(ScalarOp::shl, uint64, {1, 64}) == 0);
  CHECK(whole(ScalarOp::shr, int32, {-8, 1}) == -4);
  CHECK(whole(ScalarOp::shr, int32, {-8, 40}) == -1);
  CHECK(whole(ScalarOp::shr, int32, {8, 40}) == 0);
  CHECK(whole(ScalarOp::shr, uint8, {0x80, 7}) == 1);
  CHECK(whole(ScalarOp::shr, uint8, {0x80, 8}) == 0);
  CHECK(whole(ScalarOp::shr, int32, {-8, -1}) == -1);  // a negative count is a large one
}

TEST_CASE("float32 operations round once") {
  // fma: (1 + 2^-12)² - 1 - 2^-11 is 2^-24 exactly, which a rounded product would lose.
  const double a = 1 + 0x1p-12;
  CHECK(real(ScalarOp::fma, {a, a, -(1 + 0x1p-11)}, float32) == 0x1p-24);
  // 1 + 2^-24 + 2^-60 rounds up to 1 + 2^-23; through double it would round to even, to 1.
  CHECK(real(ScalarOp::fma, {0x1p-30, 0x1p-30, 1 + 0}, float32) == 1);
  CHECK(real(ScalarOp::fma, {0x1p-24, 1 + 0x1p-23, 1}, float32) == 1 + 0x1p-23);
  CHECK(real(ScalarOp::round, {2.5}) == 2);
  CHECK(real(ScalarOp::round, {-1.5}) == -2);
  CHECK(real(ScalarOp::add, {256, 1}, bfloat16) == 256);
  CHECK(real(ScalarOp::add, {2048, 1}, float16) == 2048);
  CHECK(real(ScalarOp::mul, {300, 300}, float16) == inf);
}

TEST_CASE("casts truncate, saturate and wrap") {
  auto cast = [](double v, Dtype to) { return reference_cast(Number::of_real(v), float64, to).i; };
  CHECK(cast(-1.9, int32) == -1);
  CHECK(cast(quiet, int32) == 0);
  CHECK(cast(300, uint8) == 255);
  CHECK(cast(-1, uint8) == 0);
  CHECK(cast(-inf, int8) == -128);
  CHECK(cast(inf, uint64) == -1);
  CHECK(cast(1e19, uint64) == static_cast<int64_t>(10000000000000000000ull));
  CHECK(cast(9.3e18, int64) == INT64_MAX);
  CHECK(cast(-1e300, int64) == INT64_MIN);
  CHECK(cast(1e-45, bool_) == 1);
  CHECK(cast(quiet, bool_) == 1);
  CHECK(cast(-0.0, bool_) == 0);
  CHECK(reference_cast(Number::of_int(-1), int64, uint16).i == 65535);
  CHECK(reference_cast(Number::of_int(0x1ff), int32, int8).i == -1);
  CHECK(reference_cast(Number::of_int(256), int32, bool_).i == 1);
  CHECK(reference_cast(Number::of_int(-1), uint64, float64).f == 0x1p64);
  CHECK(reference_cast(Number::of_int((int64_t{1} << 60) + (int64_t{1} << 36) + 1), int64, float32).f ==
        0x1p60 + 0x1p37);  // no double between
  CHECK(reference_cast(Number::of_int(70000), int32, float16).f == inf);
  CHECK(round_to(Number::of_real(0.1), float32).f == static_cast<double>(0.1f));
  CHECK(round_to(Number::of_real(1e-8), float16).f == 0);
  CHECK(round_to(Number::of_real(0x1p-24), float16).f == 0x1p-24);  // the smallest subnormal
  CHECK(round_to(Number::of_real(1.5 * 0x1p-24), float16).f == 0x1p-23);
  CHECK(round_to(Number::of_real(65519), float16).f == 65504);
  CHECK(round_to(Number::of_real(65520), float16).f == inf);
  CHECK(std::isnan(round_to(Number::of_real(quiet), bfloat16).f));
}

TEST_CASE("philox gives the known answers of Random123") {
  struct Known {
    int64_t key[2], counter[4], word[4];
  };
  const Known known[] = {
      {{0, 0}, {0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0xa4093822, 0x299f31d0},
       {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Known& k : known)
    for (int word = 0; word < 4; ++word) {
      const ScalarOp op = static_cast<ScalarOp>(static_cast<int>(ScalarOp::philox0) + word);
      CHECK(whole(op, uint32, {k.key[0], k.key[1], k.counter[0], k.counter[1], k.counter[2], k.counter[3]}) ==
            k.word[word]);
      const Kernel kernel = expand(test::scalar_kernel(op, uint32));
      const auto one = [](int64_t v) { return std::vector<uint32_t>{static_cast<uint32_t>(v)}; };
      CHECK(test::run_kernel<uint32_t>(kernel, {one(k.key[0]), one(k.key[1]), one(k.counter[0]), one(k.counter[1]),
                                                one(k.counter[2]), one(k.counter[3])})
                .at(0) == static_cast<uint32_t>(k.word[word]));
    }
}

TEST_CASE("threefry gives the known answers of Random123") {
  struct Known {
    int64_t k0, k1, c0, c1, w0, w1;
  };
  for (const Known& k : {Known{0, 0, 0, 0, 0x6b200159, 0x99ba4efe},
                         Known{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x1cb996fc, 0xbb002be7},
                         Known{0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3, 0xc4923a9c, 0x483df7a0}}) {
    CHECK(whole(ScalarOp::threefry0, uint32, {k.k0, k.k1, k.c0, k.c1}) == k.w0);
    CHECK(whole(ScalarOp::threefry1, uint32, {k.k0, k.k1, k.c0, k.c1}) == k.w1);
  }
}

TEST_CASE("erfinv inverts erf to double precision") {
  for (double x :
       {1e-300, 1e-9, 1e-5, 0.1, 0.3, 0.499999, 0.5, 0.7, 0.9, 0.99, 0.9999, 0.9999999, 1 - 0x1p-24, 1 - 0x1p-53}) {
    CAPTURE(x);
    const double y = real(ScalarOp::erfinv, {x});
    // The error in y that explains erf(y) - x, relative to y.
    const double miss = x > 0.5 ? (1 - x) - std::erfc(y) : std::erf(y) - x;
    CHECK(std::fabs(miss * std::exp(y * y) * 0.886226925452758 / y) < 1e-15);
    CHECK(real(ScalarOp::erfinv, {-x}) == -y);
  }
  CHECK(real(ScalarOp::erfinv, {1}) == inf);
  CHECK(real(ScalarOp::erfinv, {-1}) == -inf);
  CHECK(real(ScalarOp::erfinv, {0}) == 0);
  CHECK(std::isnan(real(ScalarOp::erfinv, {1.5})));
  CHECK(std::isnan(real(ScalarOp::erfinv, {quiet})));
}

TEST_CASE("sign, sigmoid, recip and their edges") {
  CHECK(real(ScalarOp::sign, {-3}) == -1);
  CHECK(real(ScalarOp::sign, {quiet}) == 0);
  CHECK(whole(ScalarOp::sign, uint8, {200}) == 1);
  CHECK(whole(ScalarOp::sign, int8, {-7}) == -1);
  CHECK(real(ScalarOp::sigmoid, {-1000}) == 0);
  CHECK(real(ScalarOp::sigmoid, {1000}) == 1);
  CHECK(real(ScalarOp::recip, {-0.0}) == -inf);
  CHECK(real(ScalarOp::rsqrt, {4}) == 0.5);
}

TEST_CASE("an identity is neutral for its reducer, on every dtype") {
  const Dtype all[] = {uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64};
  for (Reducer r : {Reducer::sum, Reducer::prod, Reducer::max, Reducer::min})
    for (Dtype t : all)
      for (int64_t v : {0, 1, 5, 100}) {
        CAPTURE(name(r));
        CAPTURE(dtype_name(t));
        const Number x = round_to(Number::of_int(v), t);
        const Number pair[] = {identity(r, t), x};
        CHECK(reference(combine(r), t, pair) == x);
      }
  for (int64_t v : {0, 1}) {
    const Number with_all[] = {identity(Reducer::all, bool_), Number::of_int(v)},
                 with_any[] = {identity(Reducer::any, bool_), Number::of_int(v)};
    CHECK(reference(combine(Reducer::all), bool_, with_all).i == v);
    CHECK(reference(combine(Reducer::any), bool_, with_any).i == v);
  }
}
