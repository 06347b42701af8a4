// What expand does to a kernel: nothing but basic operators are left, shared work is done once, low precision rounds
// after every operation, and a second pass changes nothing.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/half.h"
#include "kernel/expand_run.h"

using namespace weft;
using namespace weft::kernel;
using test::scalar_kernel;

namespace {

size_t count_insts(const Block& block) {
  size_t n = block.insts.size();
  for (const Inst& inst : block.insts)
    for (const Block& b : inst.blocks) n += count_insts(b);
  return n;
}

bool low(Dtype t) { return t == float16 || t == bfloat16; }

// Names the first instruction that is not basic; "" where there is none.
std::string leftover(const Kernel& kernel, const Block& block) {
  for (const Inst& inst : block.insts) {
    for (const Block& b : inst.blocks)
      if (std::string s = leftover(kernel, b); !s.empty()) return s;
    auto arg = [&](size_t k) { return kernel.types.at(static_cast<size_t>(inst.args.at(k))).dtype; };
    if (inst.op == Op::scalar && !info(inst.scalar_op).basic && inst.type.dtype != float64)
      return std::string(info(inst.scalar_op).name);
    if (inst.op == Op::scalar && inst.scalar_op != ScalarOp::select && low(arg(0)))
      return "low " + std::string(info(inst.scalar_op).name);
    if ((inst.op == Op::reduce || inst.op == Op::dot) && low(arg(0))) return "low fold";
    if (inst.op == Op::cast &&
        ((low(arg(0)) && inst.type.dtype != float32) || (low(inst.type.dtype) && arg(0) != float32)))
      return "cast";
  }
  return "";
}

void check_expanded(const Kernel& kernel) {
  const Kernel once = expand(kernel);
  verify(once);
  CAPTURE(print(kernel));
  CHECK(leftover(once, once.body) == "");
  const Kernel twice = expand(once);
  CHECK(print(twice) == print(once));
  CHECK(twice.types == once.types);
}

std::vector<uint32_t> threefry_words(uint32_t k0, uint32_t k1, uint32_t c0, uint32_t c1) {
  std::vector<uint32_t> out;
  for (ScalarOp op : {ScalarOp::threefry0, ScalarOp::threefry1})
    out.push_back(test::run_kernel<uint32_t>(expand(scalar_kernel(op, uint32)), {{k0}, {k1}, {c0}, {c1}}).at(0));
  return out;
}

float round_low(float v, Dtype t) {
  return t == float16 ? f16_to_float(float_to_f16(v)) : bf16_to_float(float_to_bf16(v));
}
uint16_t low_bits(float v, Dtype t) { return t == float16 ? float_to_f16(v) : float_to_bf16(v); }
float from_bits(uint16_t v, Dtype t) { return t == float16 ? f16_to_float(v) : bf16_to_float(v); }

}  // namespace

TEST_CASE("every operator on every dtype expands to basic ones, once and for all") {
  for (Dtype t : {bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64})
    for (size_t k = 0; k < static_cast<size_t>(ScalarOp::count_); ++k)
      if (const ScalarInfo& row = info(static_cast<ScalarOp>(k)); takes(row, t))
        check_expanded(scalar_kernel(row.op, t));
}

TEST_CASE("Threefry gives the known answers of Random123, and both words share their iterations") {
  CHECK(threefry_words(0, 0, 0, 0) == std::vector<uint32_t>{0x6b200159, 0x99ba4efe});
  CHECK(threefry_words(~0u, ~0u, ~0u, ~0u) == std::vector<uint32_t>{0x1cb996fc, 0xbb002be7});
  CHECK(threefry_words(0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3) ==
        std::vector<uint32_t>{0xc4923a9c, 0x483df7a0});

  auto both = [](ScalarOp first, ScalarOp second) {
    Builder b("pair");
    const Ref in = b.param("x", uint32, false), out = b.param("y", uint32, true);
    const Value c = b.load(in, b.index(0), {4}, {1}), key = b.constant(uint32, Number::of_int(7), {4});
    b.store(out, b.add(b.scalar(first, {key, key, c, key}), b.scalar(second, {key, key, c, key})), b.index(0), {1});
    return count_insts(expand(b.finish()).body);
  };
  CHECK(both(ScalarOp::threefry0, ScalarOp::threefry1) <= both(ScalarOp::threefry0, ScalarOp::threefry0) + 4);
}

TEST_CASE("float16 and bfloat16 round after every operation") {
  for (Dtype t : {float16, bfloat16}) {
    constexpr int64_t n = 64;
    Builder b("chain");
    const Ref in = b.param("x", t, false), out = b.param("y", t, true), total = b.param("s", t, true),
              less = b.param("c", bool_, true);
    const Value x = b.load(in, b.index(0), {n}, {1}), y = b.load(in, b.index(n), {n}, {1});
    const Value product = b.mul(x, y), sum = b.add(product, x), quotient = b.scalar(ScalarOp::div, {sum, y});
    const Value smaller = b.lt(product, y),
                chain = b.select(smaller, b.scalar(ScalarOp::sqrt, {b.scalar(ScalarOp::abs, {quotient})}),
                                 b.sub(quotient, x));
    b.store(out, chain, b.index(0), {1});
    b.store(total, b.reduce(Reducer::sum, chain, 0), b.index(0), {});
    b.store(less, smaller, b.index(0), {1});
    const Kernel source = b.finish();
    check_expanded(source);

    std::mt19937 random(5);
    std::normal_distribution<float> normal(0, 3);
    std::vector<uint16_t> data, result(n), reduced(1);
    std::vector<uint8_t> flags(n);
    for (int64_t k = 0; k < 2 * n; ++k) data.push_back(low_bits(normal(random), t));
    const HostBuffer buffers[] = {{data.data(), 2 * n}, {result.data(), n}, {reduced.data(), 1}, {flags.data(), n}};
    interpret(expand(source), buffers, {}, 1);

    std::vector<float> tree;
    for (size_t k = 0; k < n; ++k) {
      const float xv = from_bits(data[k], t), yv = from_bits(data[n + k], t);
      const float p = round_low(xv * yv, t), s = round_low(p + xv, t), q = round_low(s / yv, t);
      const float expected = p < yv ? round_low(std::sqrt(std::fabs(q)), t) : round_low(q - xv, t);
      CHECK(result[k] == low_bits(expected, t));
      CHECK(flags[k] == (p < yv));
      tree.push_back(expected);
    }
    for (size_t half = n / 2; half > 0; half /= 2)  // in float32, rounded once
      for (size_t k = 0; k < half; ++k) tree[k] += tree[k + half];
    CHECK(reduced[0] == low_bits(tree[0], t));
  }
}

TEST_CASE("a function in float16 and bfloat16 is the float32 one, rounded") {
  for (Dtype t : {float16, bfloat16}) {
    std::vector<uint16_t> x;
    std::vector<float> wide;
    for (uint32_t v = 0; v < 0x10000; v += 3) {
      x.push_back(static_cast<uint16_t>(v));
      wide.push_back(from_bits(x.back(), t));
    }
    const auto y = test::run_kernel<uint16_t>(expand(scalar_kernel(ScalarOp::tanh, t)), {x});
    const auto z = test::run_expanded(ScalarOp::tanh, wide);
    size_t wrong = 0;
    for (size_t k = 0; k < x.size(); ++k)
      wrong += !(y[k] == low_bits(z[k], t) || (std::isnan(from_bits(y[k], t)) && std::isnan(z[k])));
    CHECK(wrong == 0);
  }
}

TEST_CASE("casts from and to low precision, dot with low operands") {
  for (Dtype t : {float16, bfloat16})
    for (Dtype other : {bool_, uint8, int32, int64, float16, bfloat16, float32, float64}) {
      Builder b("casts");
      const Ref in = b.param("x", t, false), out = b.param("y", t, true);
      const Value x = b.load(in, b.index(0), {4}, {1});
      b.store(out, b.cast(b.cast(x, other), t), b.index(0), {1});
      const Kernel source = b.finish(), expanded = expand(source);
      check_expanded(source);
      std::vector<uint16_t> data{low_bits(2, t), low_bits(-0.75f, t), low_bits(0, t), low_bits(100, t)}, before(4),
          after(4);
      const HostBuffer left[] = {{data.data(), 4}, {before.data(), 4}}, right[] = {{data.data(), 4}, {after.data(), 4}};
      interpret(source, left, {}, 1);
      interpret(expanded, right, {}, 1);
      CHECK(before == after);
    }

  Builder b("product");
  const Ref in = b.param("x", bfloat16, false), out = b.param("y", float32, true);
  const Value x = b.load(in, b.index(0), {2, 2}, {2, 1}), zero = b.real(float32, 0, {2, 2});
  b.store(out, b.dot(b.cast(x, float32), b.cast(b.transpose(x), float32), zero), b.index(0), {2, 1});
  check_expanded(b.finish());
}

TEST_CASE("any rank, loops and conditions: the same bits as lane by lane") {
  const std::vector<float> x{-3.5f, -0.1f, 0.25f, 7.0f};
  Builder b("shapes");
  const Ref in = b.param("x", float32, false), out = b.param("y", float32, true), one = b.param("z", float32, true);
  const Value tile = b.load(in, b.index(0), {2, 2}, {2, 1});
  const auto carried = b.loop(b.index(0), b.index(2), b.index(1), {tile}, [&](Value, const std::vector<Value>& v) {
    return std::vector<Value>{b.scalar(ScalarOp::tanh, {v[0]})};
  });
  b.store(out, carried[0], b.index(0), {2, 1});
  const Value scalar = b.load(in, b.index(3), {}, {});
  b.when(b.lt(b.real(float32, 0), scalar), [&] { b.store(one, b.scalar(ScalarOp::exp, {scalar}), b.index(0), {}); });
  const Kernel source = b.finish();
  check_expanded(source);

  std::vector<float> data = x, y(4), z(1);
  const HostBuffer buffers[] = {{data.data(), 4}, {y.data(), 4}, {z.data(), 1}};
  interpret(expand(source), buffers, {}, 1);
  CHECK(y == test::run_expanded(ScalarOp::tanh, test::run_expanded(ScalarOp::tanh, x)));
  CHECK(z[0] == test::run_expanded(ScalarOp::exp, {x[3]})[0]);
}

TEST_CASE("the block of a condition with values is expanded in its place, and shared") {
  Builder b("choice");
  const Ref in = b.param("x", float32, false), out = b.param("y", float32, true);
  const Value x = b.load(in, b.index(0), {4}, {1});
  const Value chosen =
      b.when(b.lt(x, b.real(float32, 0)), {x}, [&] { return std::vector<Value>{b.scalar(ScalarOp::tanh, {x})}; })[0];
  b.store(out, chosen, b.index(0), {1});
  const Kernel source = b.finish();
  check_expanded(source);
  std::vector<float> data{-3.5f, -0.1f, 0.25f, 7.0f}, y(4);
  const HostBuffer buffers[] = {{data.data(), 4}, {y.data(), 4}};
  interpret(expand(source), buffers, {}, 1);
  const std::vector<float> t = test::run_expanded(ScalarOp::tanh, data);
  CHECK(y == std::vector<float>{t[0], t[1], 0.25f, 7.0f});

  // sin, cos and tan of one value reduce it once; of two values, twice.
  const auto conditions = [](bool one_value) {
    Builder both("both");
    const Ref from = both.param("x", float32, false), to = both.param("y", float32, true);
    const Value first = both.load(from, both.index(0), {4}, {1}),
                second = one_value ? first : both.load(from, both.index(4), {4}, {1});
    const Value sum = both.add(both.scalar(ScalarOp::sin, {first}), both.scalar(ScalarOp::cos, {second}));
    both.store(to, both.add(sum, both.scalar(ScalarOp::tan, {first})), both.index(0), {1});
    const Kernel kernel = both.finish();
    check_expanded(kernel);
    const Kernel expanded = expand(kernel);
    return std::count_if(expanded.body.insts.begin(), expanded.body.insts.end(),
                         [](const Inst& i) { return i.op == Op::when; });
  };
  CHECK(conditions(true) == 1);
  CHECK(conditions(false) == 2);
}

TEST_CASE("results that are rounded to 16 bits are expanded to what 16 bits hold, and no others") {
  // y = tail(op(x)), in float32 up to the store
  using Tail = Value (*)(Builder&, Value, Value);
  const auto make = [](ScalarOp op, Dtype t, Tail tail) {
    Builder b("tail");
    const Ref in = b.param("x", float32, false), out = b.param("y", t, true);
    const Value start = b.mul(b.program_id(), b.index(256)), left = b.sub(b.symbol("n"), start),
                x = b.load(in, start, {256}, {1}, {left});
    b.store(out, b.cast(tail(b, b.scalar(op, {x}), x), t), start, {1}, {left});
    return b.finish();
  };
  const Tail plain = [](Builder&, Value v, Value) { return v; };
  const Tail product = [](Builder& b, Value v, Value x) {
    return b.scalar(ScalarOp::neg, {b.scalar(ScalarOp::mul, {v, x})});
  };
  const Tail choice = [](Builder& b, Value v, Value x) {
    return b.when(b.lt(x, b.real(float32, 0)), {v},
                  [&] { return std::vector<Value>{b.scalar(ScalarOp::neg, {v})}; })[0];
  };
  const Tail sum = [](Builder& b, Value v, Value x) { return b.scalar(ScalarOp::add, {v, x}); };  // may cancel
  const auto length = [](const Kernel& k) { return count_insts(expand(k).body); };
  std::vector<float> x;
  for (float v = -110; v < 95; v += 0.0173f) x.push_back(v);
  const int64_t n = static_cast<int64_t>(x.size());
  for (ScalarOp op : {ScalarOp::exp, ScalarOp::sigmoid}) {
    CAPTURE(info(op).name);
    CHECK(length(make(op, bfloat16, plain)) < length(make(op, float16, plain)));
    CHECK(length(make(op, float16, plain)) < length(make(op, float32, plain)));
    CHECK(length(make(op, bfloat16, product)) < length(make(op, float32, product)));
    CHECK(length(make(op, bfloat16, choice)) < length(make(op, float32, choice)));
    CHECK(length(make(op, bfloat16, sum)) >= length(make(op, float32, sum)));
    for (Dtype t : {bfloat16, float16})
      for (Tail tail : {plain, product}) {
        std::vector<uint16_t> y(x.size());
        const HostBuffer buffers[] = {{x.data(), n}, {y.data(), n}};
        interpret(expand(make(op, t, tail)), buffers, std::array{n}, (n + 255) / 256);
        double worst = 0;
        for (size_t k = 0; k < x.size(); ++k) {
          const double e = std::exp(double{x[k]}), f = op == ScalarOp::exp ? e : e / (1 + e),
                       exact = tail == plain ? f : -f * x[k];
          const int digits = t == bfloat16 ? 8 : 11, smallest = t == bfloat16 ? -133 : -24;
          const double got = from_bits(y[k], t),
                       ulp =
                           std::ldexp(1.0, std::max(exact == 0 ? smallest : std::ilogb(exact) - digits + 1, smallest));
          if (std::isinf(got)) CHECK(std::abs(exact) > (t == bfloat16 ? 3.38e38 : 65500.0));
          else worst = std::max(worst, std::abs(got - exact) / ulp);
        }
        CHECK(worst <= 0.54);
        CHECK(worst >= 0.49);
      }
  }
}
