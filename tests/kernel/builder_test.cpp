#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "base/error.h"
#include "kernel/tile.h"

using namespace weft;
using namespace weft::kernel;

namespace {

Kernel scale() {
  Builder b("scale");
  const Ref in = b.param("x", float32, false), out = b.param("y", float32, true);
  const Value offset = b.mul(b.program_id(), b.index(64));
  const Value left = b.sub(b.symbol("n"), offset);
  const Value x = b.load(in, offset, {64}, {1}, {left});
  b.store(out, b.mul(x, b.real(float32, 2)), offset, {1}, {left});
  return b.finish();
}

size_t instructions(const Block& b) {
  size_t n = 0;
  for (const Inst& i : b.insts) {
    ++n;
    for (const Block& inner : i.blocks) n += instructions(inner);
  }
  return n;
}

bool is_known(const Builder& b, Value v, int64_t wanted) {
  int64_t got = 0;
  return b.known(v, got) && got == wanted;
}

}  // namespace

TEST_CASE("a kernel prints as its head comment says") {
  Builder b("scale");
  const Ref in = b.param("x", float32, false), out = b.param("y", float32, true);
  const Value program = b.program_id(), offset = b.mul(program, b.index(64));
  const Value left = b.sub(b.symbol("n"), offset);
  const Value x = b.load(in, offset, {64}, {1}, {left});
  b.store(out, b.mul(x, b.real(float32, 2, {64})), offset, {1}, {left});
  CHECK(print(b.finish()) == R"(kernel @scale(p0: f32, p1: out f32; s0) {
  %0 = program_id
  %1 = constant 64 : i64
  %2 = mul %0 %1 : i64
  s0 = symbol ref(0)
  %3 = sub s0 %2 : i64
  %4 = load p0[%2] stride(1) limit(%3) other(0) : f32[64]
  %5 = constant 2 : f32[64]
  %6 = mul %4 %5 : f32[64]
  store p1[%2] %6 stride(1) limit(%3)
}
)");
}

TEST_CASE("loops, conditions, scratch and masks print") {
  Builder b("all");
  const Ref in = b.param("x", float16, false), out = b.param("y", int32, true), scratch = b.local(int32, 8);
  const Value lanes = b.arange(8), n = b.symbol("n"), mask = b.lt(lanes, n);
  const Value zero = b.index(0), eight = b.index(8), none = b.constant(int32, {}, {8});
  const auto sums = b.loop(zero, n, eight, {none}, [&](Value i, const std::vector<Value>& carried) {
    const Value x = b.gather(in, b.add(lanes, i), mask, Number::of_real(0.1));
    return std::vector<Value>{b.add(carried[0], b.cast(x, int32))};
  });
  b.store(scratch, sums[0], b.index(0), {1});
  b.when(b.lt(n, b.index(3)), [&] { b.atomic_add(out, b.load(scratch, b.index(7), {8}, {-1}), lanes, mask); });
  b.store(out, b.reduce(Reducer::max, sums[0], 0), n, {}, {}, true);
  CHECK(print(b.finish()) == R"(kernel @all(p0: f16, p1: out i32; s0) {
  alloc l0: i32[8]
  %0 = arange : i64[8]
  s0 = symbol ref(0)
  %1 = broadcast s0 : i64[8]
  %2 = lt %0 %1 : bool[8]
  %3 = constant 0 : i64
  %4 = constant 8 : i64
  %5 = constant 0 : i32[8]
  %6 = loop %7 = %3 to s0 step %4 carry(%8 = %5) {
    %9 = broadcast %7 : i64[8]
    %10 = add %0 %9 : i64[8]
    %11 = gather p0[%10] mask(%2) other(0.099975586) : f16[8]
    %12 = cast %11 : i32[8]
    %13 = add %8 %12 : i32[8]
    yield %13
  }
  store l0[%3] %6 stride(1)
  %14 = constant 3 : i64
  %15 = lt s0 %14 : bool
  when %15 {
    %16 = constant 7 : i64
    %17 = load l0[%16] stride(-1) other(0) : i32[8]
    atomic_add p1[%0] %17 mask(%2)
  }
  %18 = reduce max %6 axis(0) : i32
  store p1[s0] %18 streaming
}
)");
}

TEST_CASE("conditions with values print, and are folded where they are known") {
  Builder b("choice");
  const Ref in = b.param("x", float32, false), out = b.param("y", float32, true);
  const Value x = b.load(in, b.index(0), {8}, {1}), negative = b.lt(x, b.real(float32, 0, {8}));
  const auto chosen = b.when(negative, {x, negative}, [&] { return std::vector<Value>{b.mul(x, x), negative}; });
  CHECK(b.when(b.constant(bool_, Number::of_int(1), {8}), {x}, [&] { return std::vector<Value>{chosen[0]}; })[0] ==
        chosen[0]);
  CHECK(b.when(b.constant(bool_, {}, {8}), {x},
               [&]() -> std::vector<Value> { throw std::logic_error("the body of what never holds"); })[0] == x);
  CHECK_THROWS_WITH_AS(b.when(b.constant(bool_, Number::of_int(1), {8}), {x}, [] { return std::vector<Value>{}; }),
                       doctest::Contains("returns 0 values, not 1"), internal_error);
  CHECK_THROWS_WITH_AS(
      b.when(b.constant(bool_, Number::of_int(1), {8}), {x}, [&] { return std::vector<Value>{negative}; }),
      doctest::Contains("is f32[8] or bool[8]"), internal_error);
  b.store(out, b.select(chosen[1], chosen[0], x), b.index(0), {1});
  const Kernel kernel = b.finish();
  CHECK(print(kernel) == R"(kernel @choice(p0: f32, p1: out f32) {
  %0 = constant 0 : i64
  %1 = load p0[%0] stride(1) other(0) : f32[8]
  %2 = constant 0 : f32[8]
  %3 = lt %1 %2 : bool[8]
  %4, %5 = when %3 else(%1, %3) {
    %6 = mul %1 %1 : f32[8]
    yield %6 %3
  }
  %7 = constant 1 : bool[8]
  %8 = constant 0 : bool[8]
  %9 = select %5 %4 %1 : f32[8]
  store p1[%0] %9 stride(1)
}
)");
  CHECK(digest(canonical(kernel)) == digest(kernel));
  const Inst& when =
      *std::find_if(kernel.body.insts.begin(), kernel.body.insts.end(), [](const Inst& i) { return i.op == Op::when; });
  const std::vector<Value> read = reads(when);
  CHECK(std::set<Value>(read.begin(), read.end()) == std::set<Value>{x, negative});
}

TEST_CASE("known integer scalars fold") {
  Builder b("fold");
  const Value six = b.index(6), x = b.program_id(), zero = b.index(0), one = b.index(1);
  CHECK(is_known(b, b.add(six, b.index(-8)), -2));
  CHECK(is_known(b, b.scalar(ScalarOp::floordiv, {b.index(-7), b.index(2)}), -4));
  CHECK(is_known(b, b.scalar(ScalarOp::mod, {b.index(-7), b.index(4)}), 1));
  CHECK(is_known(b, b.min(six, one), 1));
  CHECK(is_known(b, b.max(six, one), 6));
  CHECK(is_known(b, b.cast(b.constant(int64, Number::of_int(-1)), uint32), 0xffffffff));
  CHECK(is_known(b, b.add(b.constant(int8, Number::of_int(127)), b.constant(int8, Number::of_int(1))), -128));
  CHECK(is_known(b, b.lt(zero, six), 1));
  CHECK(b.add(x, zero) == x);
  CHECK(b.add(zero, x) == x);
  CHECK(b.sub(x, zero) == x);
  CHECK(b.mul(x, one) == x);
  CHECK(b.mul(one, x) == x);
  CHECK(b.scalar(ScalarOp::floordiv, {x, one}) == x);
  CHECK(is_known(b, b.mul(x, zero), 0));
  CHECK(is_known(b, b.scalar(ScalarOp::mod, {x, one}), 0));
  CHECK(is_known(b, b.sub(x, x), 0));
  CHECK(b.select(b.lt(zero, six), x, six) == x);
  CHECK(b.select(b.lt(six, zero), x, six) == six);
  CHECK(b.index(6) == six);
  CHECK(b.symbol("n") == b.symbol("n"));
  CHECK(b.symbol("n") != b.symbol("m"));
  CHECK(b.broadcast(six, {}) == six);
  CHECK(b.cast(six, int64) == six);
  int64_t out = 0;
  CHECK_FALSE(b.known(x, out));
  CHECK_FALSE(b.known(b.real(float32, 1), out));
  CHECK_FALSE(b.known(b.arange(1), out));
  // Nothing of a float is folded: x + 0 is not x for -0, and x * 0 not 0 for NaN.
  const Value f = b.cast(x, float32);
  CHECK(b.add(f, b.real(float32, 0)) != f);
  CHECK_FALSE(b.known(b.mul(f, b.real(float32, 0)), out));
}

TEST_CASE("known floats fold, and so do those that change no other number") {
  Builder b("fold");
  const auto all = [&](double v, Dtype t = float32) { return b.constant(t, Number::of_real(v), {8}); };
  const Value x = b.load(b.param("x", float32, false), b.index(0), {8}, {1}), one = all(1), zero = all(0);
  CHECK(b.add(all(1), all(0.1)) == all(static_cast<double>(1.0f + 0.1f)));
  CHECK(b.scalar(ScalarOp::div, {all(1), all(3)}) == all(static_cast<double>(1.0f / 3.0f)));
  CHECK(b.max(all(-1, float64), all(2, float64)) == all(2, float64));
  CHECK(b.mul(x, one) == x);
  CHECK(b.mul(one, x) == x);
  CHECK(b.scalar(ScalarOp::div, {x, one}) == x);
  CHECK(b.add(x, all(-0.0)) == x);
  CHECK(b.add(all(-0.0), x) == x);
  CHECK(b.sub(x, zero) == x);
  for (const Value kept : {b.add(x, zero), b.sub(x, all(-0.0)), b.scalar(ScalarOp::div, {one, x}), b.mul(x, zero)})
    CHECK(kept != x);  // of -0, of NaN
}

TEST_CASE("loops of no or one step and known conditions leave no trace") {
  Builder b("short");
  const Ref out = b.param("y", int64, true);
  const Value start = b.program_id();
  int runs = 0;
  auto next = [&](Value i, const std::vector<Value>& carried) {
    ++runs;
    return std::vector<Value>{b.add(carried[0], b.add(i, b.index(1)))};
  };
  CHECK(b.loop(b.index(4), b.index(4), b.index(1), {start}, next)[0] == start);
  CHECK(runs == 0);
  b.loop(b.index(4), b.index(7), b.index(3), {start}, next);
  CHECK(runs == 1);
  b.when(b.lt(b.index(2), b.index(1)), [&] { ++runs; });
  CHECK(runs == 1);
  b.when(b.lt(b.index(1), b.index(2)), [&] { b.store(out, start, b.index(0), {}); });
  for (const Inst& i : b.finish().body.insts) CHECK(i.blocks.empty());
}

TEST_CASE("what was widened is taken back as it was, what was computed is rounded") {
  Builder b("casts");
  const Ref p = b.param("p", bfloat16, true);
  const Value narrow = b.load(p, b.index(0), {16}, {1});
  const Value wide = b.cast(narrow, float32);
  CHECK(b.cast(wide, bfloat16) == narrow);
  CHECK(b.cast(wide, float16) != narrow);
  const Value sum = b.add(wide, wide), rounded = b.cast(sum, bfloat16);
  CHECK(rounded != narrow);
  CHECK(b.cast(b.cast(rounded, float32), bfloat16) == rounded);
}

TEST_CASE("a prefetch prints, is told apart by its length, and names a parameter") {
  const auto make = [](int64_t count) {
    Builder b("ahead");
    b.prefetch(b.param("p", float32, false), b.program_id(), count);
    return b.finish();
  };
  CHECK(print(make(64)).find("prefetch p0[%0] count(64)") != std::string::npos);
  CHECK(digest(make(64)) != digest(make(32)));
  Builder b("local");
  const Ref local = b.local(float32, 8);
  CHECK_THROWS_WITH_AS(b.prefetch(local, b.index(0), 8), doctest::Contains("names no parameter"), std::logic_error);
  CHECK_THROWS_WITH_AS(make(0), doctest::Contains("positive"), std::logic_error);
}

TEST_CASE("scalars spread beside tiles, results are inferred") {
  Builder b("infer");
  const Value tile = b.cast(b.arange(8), float32), matrix = b.broadcast(tile, {4, 8});
  CHECK(b.type(b.add(tile, b.cast(b.program_id(), float32))) == Type{float32, {8}});
  CHECK(b.type(b.lt(b.real(float32, 1), matrix)) == Type{bool_, {4, 8}});
  CHECK(b.type(b.select(b.lt(b.program_id(), b.index(2)), matrix, b.real(float32, 0))) == Type{float32, {4, 8}});
  CHECK(b.type(b.transpose(matrix)) == Type{float32, {8, 4}});
  CHECK(b.type(b.reduce(Reducer::sum, matrix, 0)) == Type{float32, {8}});
  CHECK(b.type(b.reduce(Reducer::sum, matrix, 1)) == Type{float32, {4}});
  CHECK(b.type(b.reduce(Reducer::sum, tile, 0)) == Type{float32, {}});
  CHECK(b.type(b.dot(matrix, b.transpose(matrix), b.real(float32, 0, {4, 4}))) == Type{float32, {4, 4}});
  CHECK(b.type(b.bitcast(tile, uint32)) == Type{uint32, {8}});
  CHECK(b.type(b.reshape(tile, {8, 1})) == Type{float32, {8, 1}});
  b.finish();
}

TEST_CASE("the builder refuses what does not fit, by name") {
  Builder b("wrong");
  const Ref in = b.param("x", float32, false);
  const Value eight = b.cast(b.arange(8), float32), four = b.cast(b.arange(4), float32);
  CHECK_THROWS_AS(b.add(eight, four), internal_error);
  CHECK_THROWS_AS(b.add(eight, b.arange(8)), internal_error);
  CHECK_THROWS_AS(b.scalar(ScalarOp::add, {eight}), internal_error);
  CHECK_THROWS_AS(b.scalar(ScalarOp::bit_and, {eight, eight}), internal_error);
  CHECK_THROWS_AS(b.scalar(ScalarOp::div, {b.index(4), b.index(2)}), internal_error);
  CHECK_THROWS_AS(b.broadcast(eight, {8, 4}), internal_error);
  CHECK_THROWS_AS(b.reshape(eight, {4}), internal_error);
  CHECK_THROWS_AS(b.transpose(eight), internal_error);
  CHECK_THROWS_AS(b.reduce(Reducer::sum, eight, 1), internal_error);
  CHECK(b.shift(eight, eight, 0) == eight);
  CHECK(b.type(b.shift(eight, b.real(float32, 0, {8}), -3)) == b.type(eight));
  CHECK(b.type(b.extract(eight, 7)) == Type{b.type(eight).dtype, {}});
  CHECK_THROWS_AS(b.extract(eight, 8), internal_error);
  CHECK_THROWS_AS(b.shift(eight, b.arange(8), 1), internal_error);
  CHECK(b.exchange(eight, 0) == eight);
  CHECK(b.type(b.exchange(eight, 5)) == b.type(eight));
  CHECK_THROWS_AS(b.exchange(eight, 8), internal_error);
  CHECK_THROWS_AS(b.exchange(b.arange(6), 1), internal_error);
  CHECK_THROWS_AS(b.reduce(Reducer::all, eight, 0), internal_error);
  CHECK_THROWS_AS(b.store(in, eight, b.index(0), {1}), internal_error);
  CHECK_THROWS_AS(b.load(7, b.index(0), {8}, {1}), internal_error);
  CHECK_THROWS_AS(b.load(in, b.index(0), {8}, {}), internal_error);
  CHECK_THROWS_AS(
      b.loop(b.index(0), b.index(9), b.index(0), {}, [](Value, const auto&) { return std::vector<Value>{}; }),
      internal_error);
  b.local(float32, 4);
  CHECK_THROWS_AS(b.param("late", float32, false), internal_error);
  CHECK_THROWS_WITH_AS(b.loop(b.index(0), b.symbol("n"), b.index(1), {eight},
                              [&](Value, const auto&) { return std::vector<Value>{four}; }),
                       doctest::Contains("carried value 0 of the loop changes from f32[8] to f32[4]"), internal_error);
}

TEST_CASE("a constant made inside a block is not used outside it") {
  Builder b("scopes");
  const Ref out = b.param("y", int64, true);
  b.when(b.lt(b.program_id(), b.symbol("n")), [&] { b.store(out, b.index(5), b.index(0), {}); });
  b.store(out, b.index(5), b.index(0), {});
  CHECK_NOTHROW(b.finish());
}

TEST_CASE("canonical forms are equal under renumbering and renaming, and under nothing else") {
  const Kernel k = scale();
  Kernel renamed = k;
  renamed.name = "other";
  renamed.params[0].name = "z";
  renamed.symbols[0] = "m";
  CHECK(digest(renamed) == digest(k));

  // Every value moved up by three.
  Kernel moved = k;
  moved.types.insert(moved.types.begin(), 3, Type{float64, {2}});
  for (Inst& i : moved.body.insts) {
    for (Value& v : i.results) v += 3;
    for (Value& v : i.args)
      if (v != no_value) v += 3;
  }
  verify(moved);
  CHECK(digest(moved) == digest(k));
  CHECK(print(canonical(moved)) == print(canonical(k)));
  CHECK(print(canonical(canonical(k))) == print(canonical(k)));
  CHECK(instructions(canonical(k).body) == instructions(k.body));
  CHECK_NOTHROW(verify(canonical(k)));

  auto find = [](Kernel& kernel, Op op) -> Inst& {
    for (Inst& i : kernel.body.insts)
      if (i.op == op) return i;
    throw internal_error("no such instruction");
  };
  auto differs = [&](const std::function<void(Kernel&)>& change) {
    Kernel other = k;
    change(other);
    return !(digest(other) == digest(k));
  };
  CHECK(differs([&](Kernel& o) { find(o, Op::constant).number = Number::of_int(32); }));
  CHECK(differs([&](Kernel& o) { find(o, Op::scalar).scalar_op = ScalarOp::add; }));
  CHECK(differs([&](Kernel& o) { find(o, Op::load).number = Number::of_real(-0.0); }));
  CHECK(differs([&](Kernel& o) { find(o, Op::load).strides = {2}; }));
  CHECK(differs([&](Kernel& o) { find(o, Op::load).args[1] = no_value; }));
  CHECK(differs([&](Kernel& o) { find(o, Op::load).ref = 1; }));
  CHECK(differs([&](Kernel& o) { find(o, Op::load).type.dims = {32}; }));
  CHECK(differs([&](Kernel& o) { find(o, Op::store).streaming = true; }));
  CHECK(differs([&](Kernel& o) { find(o, Op::store).ref = 0; }));
  CHECK(differs([&](Kernel& o) { find(o, Op::store).args[0] = find(o, Op::load).results[0]; }));
  CHECK(differs([&](Kernel& o) { o.params[0].written = true; }));
  CHECK(differs([&](Kernel& o) { o.params[0].dtype = float16; }));
  CHECK(differs([&](Kernel& o) { o.params.push_back({"p", float32, false}); }));
  CHECK(differs([&](Kernel& o) { o.symbols.push_back("more"); }));
  CHECK(differs([&](Kernel& o) { o.locals.push_back({float32, 4}); }));
  CHECK(differs([&](Kernel& o) { o.body.insts.erase(o.body.insts.end() - 2); }));
  // Fields without a meaning for their instruction do not count.
  CHECK_FALSE(differs([&](Kernel& o) { find(o, Op::scalar).axis = 1; }));

  auto reduction = [](Reducer r, int axis, int64_t step) {
    Builder b("r");
    const Ref out = b.param("y", int64, true);
    const Value v = b.broadcast(b.arange(4), {4, 4});
    const auto carried = b.loop(
        b.index(0), b.symbol("n"), b.index(step), {b.arange(4)},
        [&](Value, const std::vector<Value>& c) { return std::vector<Value>{b.add(c[0], b.reduce(r, v, axis))}; });
    b.store(out, carried[0], b.index(0), {1});
    return digest(b.finish());
  };
  CHECK(reduction(Reducer::sum, 0, 1) == reduction(Reducer::sum, 0, 1));
  CHECK_FALSE(reduction(Reducer::sum, 0, 1) == reduction(Reducer::max, 0, 1));
  CHECK_FALSE(reduction(Reducer::sum, 0, 1) == reduction(Reducer::sum, 1, 1));
  CHECK_FALSE(reduction(Reducer::sum, 0, 1) == reduction(Reducer::sum, 0, 2));
}
