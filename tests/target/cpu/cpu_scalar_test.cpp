// Every scalar operator on every dtype it takes, every conversion and every reducer, on hard values.
#include <fmt/format.h>

#include "base/half.h"
#include "kernel/states.h"
#include "target/cpu/cpu_support.h"

using namespace weft;
using namespace weft::kernel;
using namespace weft::test;

namespace {

// y = op(x0, x1, …): each argument walks through its values at another pace, so that all pairs meet.
RandomCase operator_case(ScalarOp op, Dtype t, int64_t lanes) {
  Builder b("one_operator");
  const int arity = info(op).arity;
  const std::vector<Number> hard = hard_values(t);
  const int64_t h = static_cast<int64_t>(hard.size()), n = arity == 1 ? 2 * h : h * h;
  std::vector<Ref> in;
  std::vector<int64_t> elements;
  for (int k = 0; k < arity; ++k) {
    in.push_back(b.param("x", op == ScalarOp::select && k == 0 ? bool_ : t, false));
    elements.push_back(n);
  }
  const Ref out = b.param("y", info(op).result == ScalarResult::boolean ? bool_ : t, true);
  elements.push_back(n);
  const Value start = b.mul(b.program_id(), b.index(lanes)), left = b.sub(b.symbol("n"), start);
  std::vector<Value> args;
  for (Ref r : in) args.push_back(b.load(r, start, {lanes}, {1}, {left}));
  b.store(out, b.scalar(op, args), start, {1}, {left});
  RandomCase c = make_case(b.finish(), elements, {n}, (n + lanes - 1) / lanes);
  std::vector<Number> exponents;  // not infinite: ldexp leaves that open
  for (double e : {0.0,   -0.0,   1.0,    -1.0,   0.75,  -0.25,  24.0,  -24.0, 126.0, -126.0,
                   128.0, -149.0, -150.0, -174.0, 250.0, -277.0, 399.0, 6e4,   -6e4,  double{NAN}})
    exponents.push_back(round_to(Number::of_real(e), t));
  for (int64_t i = 0; i < n; ++i)
    for (size_t k = 0; k < 2 && k < in.size(); ++k)
      if (op == ScalarOp::ldexp && k == 1)
        write_element(c.buffers[k].data(), t, i, exponents[static_cast<size_t>(i % h) % exponents.size()]);
      else if (c.kernel.params[k].dtype == t)
        write_element(c.buffers[k].data(), t, i, hard[static_cast<size_t>(k == 0 ? i / h % h : i % h)]);
  if (arity == 1)
    for (int64_t i = 0; i < h; ++i) write_element(c.buffers[0].data(), t, i, hard[static_cast<size_t>(i)]);
  return c;
}

}  // namespace

TEST_CASE("every scalar operator on every dtype it takes") {
  int64_t turn = 0;
  for (int k = 0; k < static_cast<int>(ScalarOp::count_); ++k)
    for (Dtype t : all_dtypes) {
      const ScalarOp op = static_cast<ScalarOp>(k);
      if (!takes(info(op), t)) continue;
      CAPTURE(std::string(info(op).name));
      const int64_t lanes[] = {16, 5, 32, 1, 8};
      agree(operator_case(op, t, lanes[turn++ % 5]));
    }
}

TEST_CASE("maximum and minimum with a constant") {
  for (Dtype t : {float32, float64, float16})
    for (double k : {0.0, -0.0, 1.0, -1.0, static_cast<double>(INFINITY), -static_cast<double>(INFINITY),
                     static_cast<double>(NAN)})
      for (ScalarOp op : {ScalarOp::max, ScalarOp::min})
        for (bool first : {false, true}) {
          Builder b("with_constant");
          const Ref x = b.param("x", t, false), y = b.param("y", t, true);
          const Value start = b.mul(b.program_id(), b.index(16)), c = b.real(t, k, {16}),
                      v = b.load(x, start, {16}, {1});
          b.store(y, first ? b.scalar(op, {c, v}) : b.scalar(op, {v, c}), start, {1});
          agree(make_case(b.finish(), {256, 256}, {}, 16));
        }
}

TEST_CASE("integer division by constants") {
  for (Dtype t : {int8, uint8, int32, uint32, int64})
    for (int64_t divisor : {1, 2, 3, 7, 8, 64, -1, -3, 0})
      for (ScalarOp op : {ScalarOp::floordiv, ScalarOp::mod}) {
        Builder b("by_constant");
        const Ref x = b.param("x", t, false), y = b.param("y", t, true);
        const Value start = b.mul(b.program_id(), b.index(16));
        const Value d = b.constant(t, round_to(Number::of_int(divisor), t), {16});
        b.store(y, b.scalar(op, {b.load(x, start, {16}, {1}), d}), start, {1});
        agree(make_case(b.finish(), {128, 128}, {}, 8));
      }
}

TEST_CASE("every conversion") {
  int64_t turn = 0;
  for (Dtype from : all_dtypes)
    for (Dtype to : all_dtypes) {
      const int64_t lanes = std::array<int64_t, 4>{16, 1, 7, 32}[static_cast<size_t>(turn++ % 4)], n = 320;
      Builder b("convert");
      const Ref x = b.param("x", from, false), y = b.param("y", to, true);
      const Value start = b.mul(b.program_id(), b.index(lanes)), left = b.sub(b.symbol("n"), start);
      b.store(y, b.cast(b.load(x, start, {lanes}, {1}, {left}), to), start, {1}, {left});
      agree(make_case(b.finish(), {n, n}, {n}, (n + lanes - 1) / lanes, static_cast<uint64_t>(turn)));
    }
}

TEST_CASE("16-bit floats: every value widens, and narrowing rounds as the library's own types do") {
  for (Dtype t : {float16, bfloat16})
    for (const char* isa : instruction_sets) {
      if (!cpu_target(isa)) continue;
      Builder b("through_float");
      const Ref x = b.param("x", t, false), f = b.param("f", float32, true), y = b.param("y", t, true);
      const Value start = b.mul(b.program_id(), b.index(64));
      const Value wide = b.cast(b.load(x, start, {64}, {1}), float32);
      b.store(f, wide, start, {1});
      const Value nudged = b.mul(wide, b.real(float32, 1.0009765625 + 1.0 / 4096, {64}));  // between neighbours
      b.store(y, b.cast(nudged, t), start, {1});
      RandomCase c = make_case(b.finish(), {65536, 65536, 65536}, {}, 1024);
      for (uint32_t k = 0; k < 65536; ++k)
        reinterpret_cast<uint16_t*>(c.buffers[0].data())[k] = static_cast<uint16_t>(k);
      run_compiled(*cpu_target(isa), c);
      int64_t wrong = 0;
      for (int64_t k = 0; k < 65536; ++k) {
        const Number in = read_element(c.buffers[0].data(), t, k), w = read_element(c.buffers[1].data(), float32, k),
                     out = read_element(c.buffers[2].data(), t, k);
        const Number expected =
            round_to(Number::of_real(static_cast<float>(in.real()) * static_cast<float>(1.0009765625 + 1.0 / 4096)), t);
        const bool nan = in.real() != in.real();
        wrong += nan ? w.real() == w.real() || out.real() == out.real() : !(w == in) || !(out == expected);
      }
      CHECK(wrong == 0);
    }
}

TEST_CASE("every reducer along every axis") {
  constexpr std::array<std::pair<int64_t, int64_t>, 6> shapes{{{8, 32}, {4, 2}, {2, 16}, {16, 1}, {1, 8}, {3, 4}}};
  size_t dtypes = 0;
  for (Dtype t : all_dtypes) {
    ++dtypes;
    for (const ReducerInfo& row : reducers) {
      const Reducer r = row.reducer;
      if (!takes(r, t)) continue;
      Builder b("reduce");
      std::vector<Ref> in, out;
      for (size_t k = 0; k < components_of(r); ++k) {
        in.push_back(b.param(fmt::format("x{}", k), component_dtype(r, k, t), false));
        out.push_back(b.param(fmt::format("y{}", k), component_dtype(r, k, t), true));
      }
      const Value base = b.mul(b.program_id(), b.index(512));
      int64_t to = 0;
      auto put = [&](std::vector<int64_t> dims, int axis, int64_t n) {
        const Value at = b.add(base, b.index(to));
        State tiles;
        for (Ref ref : in)
          tiles.push_back(
              b.load(ref, base, dims, dims.size() == 1 ? std::vector<int64_t>{1} : std::vector<int64_t>{dims[1], 1}));
        const State results = reduce_state(b, r, tiles, axis);
        for (size_t k = 0; k < out.size(); ++k)
          b.store(out[k], results[k], at, n == 0 ? std::vector<int64_t>{} : std::vector<int64_t>{1});
        to += std::max<int64_t>(n, 1);
      };
      const size_t turn = static_cast<size_t>(&row - reducers.data()) + dtypes;
      put({turn % 2 == 0 ? 64 : 1}, 0, 0);
      for (size_t k = 0; k < 2; ++k) {  // of six: a reducer meets the others on other dtypes
        const auto [m, n] = shapes[(2 * turn + k) % shapes.size()];
        put({m, n}, 1, m);
        if (m != 3) put({m, n}, 0, n);
      }
      agree(make_case(b.finish(), std::vector<int64_t>(2 * in.size(), 1024), {}, 2));
    }
  }
}

TEST_CASE("rows are rounded to bfloat16 alike with and without subnormal numbers among them") {
  for (const float scale : {1.0f, 0x1p-126f, 0x1p-130f}) {
    Builder b("narrow");
    const Ref x = b.param("x", float32, false), y = b.param("y", bfloat16, true);
    const Value at = b.mul(b.program_id(), b.index(64));
    b.store(y, b.cast(b.load(x, at, {64}, {1}), bfloat16), at, {1});
    RandomCase c = make_case(b.finish(), {512, 512}, {}, 8);
    std::mt19937_64 random(11);
    for (int64_t k = 128; k < 512; ++k)
      write_element(c.buffers[0].data(), float32, k,
                    Number::of_real(static_cast<float>(std::normal_distribution<double>(0, 2)(random)) * scale));
    agree(c);
  }
}

TEST_CASE("integer division of any operands, on lanes") {
  for (Dtype t : {uint8, uint16, uint32, int8, int16, int32})
    for (const ScalarOp op : {ScalarOp::floordiv, ScalarOp::mod}) {
      Builder b("division");
      const Ref x = b.param("x", t, false), d = b.param("d", t, false), y = b.param("y", t, true);
      const Value at = b.mul(b.program_id(), b.index(16));
      b.store(y, b.scalar(op, {b.load(x, at, {16}, {1}), b.load(d, at, {16}, {1})}), at, {1});
      agree(make_case(b.finish(), {8192, 8192, 8192}, {}, 512, 12));
    }
}

TEST_CASE("8-bit floats: every value widens, and narrowing rounds and saturates as the definition does") {
  for (Dtype t : {float8_e4m3, float8_e5m2})
    for (const char* isa : instruction_sets) {
      if (!cpu_target(isa)) continue;
      Builder b("through_float");
      const Ref x = b.param("x", t, false), f = b.param("f", float32, true), z = b.param("z", float32, false),
                y = b.param("y", t, true);
      const Value start = b.mul(b.program_id(), b.index(64));
      b.store(f, b.cast(b.load(x, start, {64}, {1}), float32), start, {1});
      b.store(y, b.cast(b.load(z, start, {64}, {1}), t), start, {1});
      constexpr int64_t n = 65536;
      RandomCase c = make_case(b.finish(), {n, n, n, n}, {}, n / 64);
      const auto* bits = reinterpret_cast<const uint8_t*>(c.buffers[0].data());
      const auto* wide = reinterpret_cast<const float*>(c.buffers[1].data());
      const auto* narrow = reinterpret_cast<const uint8_t*>(c.buffers[3].data());
      auto* from = reinterpret_cast<float*>(c.buffers[2].data());
      for (uint32_t k = 0; k < n; ++k) {
        reinterpret_cast<uint8_t*>(c.buffers[0].data())[k] = static_cast<uint8_t>(k);
        from[k] = std::bit_cast<float>(k << 16 | (k % 3 == 0   ? 0
                                                  : k % 3 == 1 ? 1
                                                               : 0xffff));  // all upper halves: ties, and beside them
      }
      run_compiled(*cpu_target(isa), c);
      size_t wrong = 0;
      for (size_t k = 0; k < n; ++k) {
        wrong += std::bit_cast<uint32_t>(wide[k]) != std::bit_cast<uint32_t>(low_to_float(bits[k], t));
        wrong += narrow[k] != float_to_low(from[k], t);
      }
      CHECK(wrong == 0);
    }
}
