// Text and back: print, parse, and the digest of the kernel that was printed.
#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <stdexcept>

#include "kernel/expand/expand.h"
#include "kernel/language/asynchronous_kernels.h"
#include "kernel/language/random_program.h"
#include "kernel/language/trace.h"
#include "kernel/language/waiting_kernels.h"
#include "kernel/legalize/legalize.h"
#include "kernel/op_info.h"
#include "kernel/random_kernel.h"
#include "kernel/text/fields.h"
#include "kernel/text/text.h"
#include "weft/kernel.h"

using namespace weft;
using namespace weft::kernel;

namespace {

void check_round_trip(const Kernel& k) {
  const std::string text = print(k);
  CAPTURE(text);
  Kernel back;
  REQUIRE_NOTHROW(back = parse(text).kernel);
  CHECK(digest(back) == digest(k));
  CHECK(print(back) == text);
}

void collect(const Block& b, std::set<Op>& seen) {
  for (const Inst& i : b.insts) {
    seen.insert(i.op);
    for (const Block& inner : i.blocks) collect(inner, seen);
  }
}

/// Everything that moves, reduces and orders tiles.
Kernel of_values() {
  Builder b("of values");
  const Ref in = b.param("x", float32, false), out = b.param("y", float32, true), whole = b.param("z", int32, true);
  const Value zero = b.index(0), x = b.load(in, zero, {4, 8}, {8, 1}, {b.symbol("n"), no_value}, Number::of_real(-1));
  const Value line = b.reduce(Reducer::max, x, 0), lanes = b.arange(8);
  using Values = std::vector<Value>;
  const Builder::Combine crossed = [&](const Values& low, const Values& high) {
    return Values{b.add(low[0], high[1]), b.scalar(ScalarOp::max, {low[1], high[0]})};
  };
  const Builder::Combine added = [&](const Values& low, const Values& high) { return Values{b.add(low[0], high[0])}; };
  const Values pairs = b.reduce(crossed, {x, x}, 1), sums = b.scan(added, {line}, 0, true);
  const auto sorted = b.sort({line, lanes}, 0, true);
  const Value joined = b.cat({b.shift(line, sums[0], -3), b.exchange(line, 4), b.scan(Reducer::sum, sorted[0], 0)}, 0);
  const Value part = b.slice(joined, {23}, {8}, {-3}), taken = b.take(part, sorted[1], 0);
  const Value turned = b.permute(b.reshape(b.broadcast(taken, {2, 8}), {4, 4}), {1, 0});
  const Value product = b.dot(turned, turned, b.real(float32, 0.1, {4, 4}), DotPrecision::tf32x3);
  b.store(out, product, b.cast(b.extract(b.cast(pairs[0], int32), 2), int64), {4, 1}, {}, true);
  b.store(whole, b.histogram(b.bitcast(b.cast(lanes, int32), uint32), 5), zero, {1});
  return b.finish();
}

/// Memory in all ways, and control flow.
Kernel of_effects() {
  Builder b("effects");
  const Ref in = b.param("x", int64, false), out = b.param("y", int64, true), scratch = b.local(int64, 16);
  const Value id = b.program_id(), lanes = b.arange(8), eight = b.index(8), zero = b.index(0), one = b.index(1);
  b.prefetch(in, id, 64);
  const Value mask = b.lt(lanes, id), x = b.gather(in, lanes, mask, Number::of_int(-7));
  b.store(scratch, x, zero, {1});
  b.scatter(out, x, lanes, mask);
  b.atomic_add(out, x, lanes);
  const Value before = b.atomic(ScalarOp::bit_xor, out, x, lanes, mask);
  const Value swapped = b.exchange_memory(out, before, lanes), old = b.compare_exchange(out, x, swapped, lanes, mask);
  b.assert_(mask, "say \"why\"\n\\ and \x01\xff");
  b.print("x", {old, id});
  const auto flag = b.lt(id, eight);
  const auto either = b.branch(
      flag, [&] { return std::vector<Value>{x}; },
      [&] { return std::vector<Value>{b.add(x, b.broadcast(b.symbol("m"), {8}))}; });
  const auto counted = b.while_loop(
      {id, either[0]}, [&](const std::vector<Value>& v) { return b.lt(v[0], b.symbol("m")); },
      [&](const std::vector<Value>& v) {
        return std::vector<Value>{b.add(v[0], one), b.add(v[1], v[1])};
      });
  const auto looped = b.loop(zero, b.symbol("m"), one, {counted[1]}, [&](Value i, const std::vector<Value>& v) {
    return std::vector<Value>{b.add(v[0], b.broadcast(i, {8}))};
  });
  b.when(flag, [&] { b.store(out, looped[0], id, {2}, {eight}); });
  b.store(out, b.when(mask, {x}, [&] { return std::vector<Value>{b.add(x, x)}; })[0], zero, {1});
  return b.finish();
}

/// Iterations with scratch of their own.
Kernel of_iterations() {
  Builder b("iterations");
  const Ref out = b.param("c", float32, true);
  const Ref tile = b.local(float32, 64 * 72), own = b.local(float32, 8, 4);
  const Value zero = b.index(0);
  b.parallel(2, [&](Value i) { b.store(own, b.real(float32, 1, {4}), b.mul(i, b.index(4)), {1}); });
  b.store(out, b.load(tile, zero, {64, 64}, {72, 1}), zero, {64, 1});
  return b.finish();
}

/// Groups of lanes, ordered atomics and code of a target.
Kernel of_lanes() {
  Builder b("lanes");
  const Ref in = b.param("x", float32, false), out = b.param("y", float32, true);
  const Value x = b.load(in, b.index(0), {64}, {1}), lane = b.arange(64, int32);
  const Value mask = b.lanes(LaneOp::match_any, 32, lane), sum = b.lanes(LaneOp::scan, 32, x, mask, ScalarOp::max);
  const Value moved = b.lanes(LaneOp::shuffle, 8, sum, lane);
  const auto twice = b.inline_code({.name = "twice",
                                    .text = "y = x + x; // \"two\"\n",
                                    .constraints = {},
                                    .inputs = {"x"},
                                    .outputs = {"y", "z"},
                                    .pack = 1,
                                    .effects = true},
                                   {moved}, {float32, int32}, {64}, [&](const std::vector<Value>& v) {
                                     return std::vector<Value>{b.add(v[0], v[0]), lane};
                                   });
  b.exchange_memory(out, twice[0], b.arange(64), no_value, {MemoryOrder::acq_rel, MemoryScope::system});
  return b.finish();
}

Kernel of_source() {
  Builder b("source");
  b.param("x", float32, true);
  b.source({.name = "source", .text = "x[0] = 1;", .constraints = {}, .outputs = {"x"}, .block = {8, 2, 1}});
  return b.finish();
}

void refuses(const std::string& text, const std::string& message) {
  CAPTURE(text);
  try {
    parse(text);
    FAIL("taken");
  } catch (const std::invalid_argument& e) {
    CHECK_MESSAGE(std::string(e.what()).find(message) != std::string::npos, e.what());
  }
}

}  // namespace

TEST_CASE("kernel text: every kind of instruction comes back as it was") {
  std::set<Op> seen;
  for (Kernel k : {of_values(), of_effects(), of_iterations(), of_lanes(), of_source()}) {
    check_round_trip(k);
    k.any_size = true;
    k.params[0].constant = true;
    k.launch = {.warps = 8, .stages = 3, .cluster = 2, .registers = 168};
    k.locals.push_back({float16, 12, 3});  // that no instruction makes
    check_round_trip(k);
    collect(k.body, seen);
  }
  for (const test_kernels::AsyncKernel& asynchronous : test_kernels::asynchronous_kernels()) {
    const Kernel& k = asynchronous.program.data().kernel;
    check_round_trip(k);
    collect(k.body, seen);
  }
  for (const k::Program& waiting :
       {test_kernels::look_back(), test_kernels::rounds(), test_kernels::sums_of_clusters()}) {
    check_round_trip(waiting.data().kernel);
    collect(waiting.data().kernel.body, seen);
  }
  for (const OpInfo& row : ops) {
    CAPTURE(row.name);
    CHECK_MESSAGE(seen.contains(row.op), "add the instruction to one of these kernels");
    for (unsigned bit = 1; bit <= row.fields; bit <<= 1) {
      bool known = false;
      for (const FieldText& field : field_texts()) known = known || field.field == (row.fields & bit);
      CHECK_MESSAGE((known || !(row.fields & bit)), "a field has no row in kernel/text/fields.cpp");
    }
    for (size_t k = 0; k < static_cast<size_t>(ScalarOp::count_); ++k)
      CHECK((row.op == Op::scalar || info(static_cast<ScalarOp>(k)).name != row.name));
  }
}

TEST_CASE("kernel text: random kernels come back as they were, before and after the passes") {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    const Kernel k = test::random_case(seed).kernel;
    check_round_trip(k);
    if (seed % 5 == 0) check_round_trip(expand(k));
  }
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const Kernel k = test_kernels::RandomProgram(seed).make().data().kernel;
    check_round_trip(k);
    if (seed % 6 == 0) check_round_trip(legalize(expand(k), {32, 16}));
  }
}

TEST_CASE("kernel text: numbers keep their bits") {
  const double reals[] = {0.0, -0.0, 1e-45, 0.1, -INFINITY, INFINITY, NAN, -NAN, 3.4028234663852886e38, 65504, 1.0 / 3};
  for (const Dtype t : {float16, bfloat16, float32, float64, float8_e4m3, float8_e5m2})
    for (const double v : reals) {
      const Number n = round_to(Number::of_real(v), t);
      const std::string text = number_text(n, t);
      Lexer in(text);
      CHECK(read_number(in, t) == n);
      CHECK(in.peek().kind == Token::Kind::end);
    }
  for (const Dtype t : {bool_, int8, uint64, int64})
    for (const int64_t v : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
      const Number n = round_to(Number::of_int(v), t);
      const std::string text = number_text(n, t);
      Lexer in(text);
      CHECK(read_number(in, t) == n);
    }
}

TEST_CASE("kernel text: a launch has extents, names and a number of programs") {
  const k::Program program =
      k::trace("two words", {{k::Use::in, float32, {3, 5}, "x"}, {k::Use::in_out, float32, {5}}}, {3},
               [](std::span<const k::AnyRef> refs) {
                 const k::Any row = k::load(
                     refs[0], std::vector<k::Span>{{.start = k::program(0), .squeezed = true}, {.whole = true}});
                 k::store(refs[1], std::vector<k::Span>{{.whole = true}}, row);
               });
  const Launch launch{.arrays = {{true, {3, 5}, {}}, {true, {5}, {}}}, .symbols = {}, .programs = 3, .count = {}};
  const std::string text = print(program.data().kernel, launch);
  CHECK(text.starts_with("kernel @\"two words\"(p0 x: f32[3,5], p1: inout f32[5]) grid 3 any_size {\n"));
  const ParsedKernel back = parse(text);
  CHECK(digest(back.kernel) == digest(program.data().kernel));
  CHECK(back.kernel.name == "two words");
  CHECK(back.kernel.params[0].name == "x");
  REQUIRE(back.launch);
  CHECK(back.launch->programs == 3);
  CHECK(back.launch->arrays[0].dims == std::vector<int64_t>{3, 5});
  CHECK(back.launch->arrays[1].read);
}

TEST_CASE("kernel text: extents and the number of programs may be expressions of symbols") {
  const Symbol* const n = symbol("a length", 64);
  const k::Program program = k::trace_with(
      "ragged", {{k::Use::in_out, float32, {64, 3}, {}, {n, nullptr}}},
      [](std::span<const k::AnyRef> r) {
        return k::Grid{k::cdiv(k::InOut<float, 2>(r[0]).extent(0), 8), 2};
      },
      [](std::span<const k::AnyRef> r) {
        const k::InOut<float, 2> x(r[0]);
        x(k::block(k::program_id(0), 8), 1) = 0.0f;
      });
  const Launch launch{.arrays = {{true, {64, 3}, {0, -1}}},
                      .symbols = {{"a length", 64}},
                      .programs = 16,
                      .count = program.data().count};
  const std::string text = print(program.data().kernel, launch);
  CHECK(
      text.starts_with("kernel @ragged(p0: inout f32[s0,3]; s0 \"a length\" bound(64)) grid "
                       "mul(floordiv(add(s0, 7), 8), 2) most 16 any_size {\n"));
  const ParsedKernel back = parse(text);
  CHECK(digest(back.kernel) == digest(program.data().kernel));
  REQUIRE(back.launch);
  CHECK(back.launch->count == launch.count);
  CHECK(back.launch->count.value(std::vector<int64_t>{9}) == 4);
  CHECK(back.launch->programs == 16);
  CHECK(back.launch->arrays[0].dims == std::vector<int64_t>{64, 3});
  CHECK(back.launch->arrays[0].symbols == std::vector<int32_t>{0, -1});
  CHECK(back.launch->symbols[0].name == "a length");
  CHECK(print(back.kernel, *back.launch) == text);

  const auto of = [](const std::string& head) { return "kernel @k(p0: out f32[s0]" + head + " {\n}"; };
  refuses(of(") grid 1"), "1:33: an extent is s0, and there is no such symbol");
  refuses(of("; s0) grid 1"), "the symbol has no name: write one");
  refuses(of("; s0 n bound(0)) grid 1"), "the largest value of a symbol is 0");
  refuses(of("; s0 n bound(4)) grid s1 most 4"), "s1 is no symbol and no operator of lengths");
  refuses(of("; s0 n bound(4)) grid div(s0, 2) most 4"), "div is no symbol and no operator of lengths");
  refuses(of("; s0 n bound(4)) grid s0"), "\"most\" is missing");
}

TEST_CASE("kernel text: mistakes are named with line and column") {
  const std::string head = "kernel @k(p0: f32, p1: out f32) {\n", end = "}\n";
  const auto body = [&](const std::string& lines) { return head + lines + end; };
  refuses("", "1:1: \"kernel\" is missing");
  refuses("kernel @k(p1: f32) {\n}", "1:11: p1 stands where p0 is due");
  refuses("kernel @k(p0: f33) {\n}", "1:15: there is no dtype f33");
  refuses("kernel @k(p0: f32[4]) {\n}", "1:23: the arrays have extents");
  refuses("kernel @k(p0: f32[4], p1: f32) grid 1 {\n}", "1:23: the parameter has no extents");
  refuses("kernel @k(p0: f32[-1]) grid 1 {\n}", "an extent is -1: give a whole number from 0");
  refuses(head, "2:1: \"}\" is missing");
  refuses(head + end + "x", "3:1: the kernel has ended");
  refuses(body("  %0 = fly %1 : f32\n"), "2:8: there is no instruction fly");
  refuses(body("  %0 = neg %1 : f32\n"), "2:12: %1 is not defined");
  refuses(body("  %0 = constant 1 : f32\n  %0 = constant 1 : f32\n"), "3:3: %0 is defined twice");
  refuses(body("  %0 = constant x : f32\n"), "2:17: a number is missing");
  refuses(body("  %0 = constant 1.5 : i32\n"), "2:17: a number of i32 is missing");
  refuses(body("  %0 = constant 1\n"), "\":\" is missing");
  refuses(body("  %0 = arange : i64[0]\n"), "2:17: the tile has no element");
  refuses(body("  %0 = arange : i64[65536,65536]\n"), "2:17: the tile has no element, or more than 2^31 - 1");
  refuses(body("  %0, %1 = arange : i64[4]\n"), "2:3: 2 results are named, and there are 1");
  refuses(body("  %0 = program_id\n  %1 = load p7[%0] : f32\n"), "3:13: p7 does not exist");
  refuses(body("  %0 = program_id\n  %1 = load p0[%0] axis(1) : f32\n"), "3:20: there is no clause axis of load");
  refuses(body("  %0 = program_id\n  store p0[%0] %0\n"), "3:3: store: the dtype differs");
  refuses(body("  %0 = constant 1 : f32\n  %1 = constant 0 : i64\n  store p0[%1] %0\n"), "not declared as written");
  refuses(body("  %0 = constant 1 : bool\n  when %0 {\n    %1 = constant 1 : i64\n  }\n  %2 = neg %1 : i64\n"),
          "tile IR:6: ");
  refuses(body("  %0 = constant 0 : i64\n  %1 = constant 1 : f32[4]\n  store p1[%0] %1 stride()\n"),
          "4:3: store: one stride for each axis is wanted");
  refuses(body("  print text(\"never\n"), "2:14: the text in quotes has no end");
  refuses(body("  # \n"), "2:3: the byte 0x23 has no meaning here");
  std::string deep = head;
  for (int k = 0; k < 100; ++k)
    deep += "  %" + std::to_string(k) + " = constant 1 : bool\n  when %" + std::to_string(k) + " {\n";
  refuses(deep, "blocks are nested deeper than 64");
}
