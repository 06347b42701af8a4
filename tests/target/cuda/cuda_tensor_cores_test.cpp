// Products of users' kernels on tensor cores, as they are rendered for a GPU: thread by thread on the host against the
// interpreter, and compiled without spills.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>

#include "kernel/language/kernels.h"
#include "kernel/language/trace.h"
#include "target/cuda/driver/nvrtc.h"
#include "target/cuda/near_interpreter.h"
#include "weft/kernel.h"

using namespace weft;
using namespace weft::kernel;
using namespace weft::test;
namespace cuda = weft::target::cuda;

namespace {

RandomCase traced(const k::Program& program) {
  std::vector<int64_t> elements;
  for (const k::Param& p : program.params()) elements.push_back(static_cast<int64_t>(size_of(p.dims)));
  return moderate(program.data().kernel, elements, program.programs());
}

template <class T>
RandomCase matmul(Dtype t, int64_t m, int64_t n, int64_t depth, test_kernels::Tiles tile) {
  return traced(k::trace(
      "matmul",
      {{k::Use::in, t, {m, depth}}, {k::Use::in, t, {depth, n}}, {k::Use::in, float32, {n}}, {k::Use::out, t, {m, n}}},
      {k::cdiv(m, tile.m), k::cdiv(n, tile.n)}, [&](std::span<const k::AnyRef> r) {
        test_kernels::matmul_bias_relu<T>(k::In<T, 2>(r[0]), k::In<T, 2>(r[1]), k::In<float, 1>(r[2]),
                                          k::Out<T, 2>(r[3]), tile);
      }));
}

template <class T>
RandomCase attention(Dtype t, int64_t length, int64_t d, int64_t queries, int64_t block, bool causal) {
  return traced(k::trace("attention",
                         {{k::Use::in, t, {length, d}},
                          {k::Use::in, t, {length, d}},
                          {k::Use::in, t, {length, d}},
                          {k::Use::out, t, {length, d}},
                          {k::Use::out, float32, {length}}},
                         {k::cdiv(length, queries)}, [&](std::span<const k::AnyRef> r) {
                           test_kernels::attention<T>(k::In<T, 2>(r[0]), k::In<T, 2>(r[1]), k::In<T, 2>(r[2]),
                                                      k::Out<T, 2>(r[3]), k::Out<float, 1>(r[4]), queries, block,
                                                      causal);
                         }));
}

/// A product in a loop whose operands lie in memory as they are or turned, and are turned once more or not; what
/// follows makes a result of the accumulators.
struct Form {
  Dtype dtype = bfloat16;
  bool a_turned = false, b_turned = false, a_views = false, b_views = false;
  DotPrecision precision = DotPrecision::exact;
  int64_t m = 64, n = 32, depth = 32, steps = 3, pitch = 0;  // pitch: more than rows have
  bool a_computed = false, b_computed = false;               // from float32, by a multiplication and a cast
};

using Finish = std::function<void(Builder&, Ref, Value)>;

RandomCase product(const Form& f, const Finish& finish, int64_t made) {
  Builder b("product");
  const Dtype sums = is_integer(f.dtype) ? int32 : float32;
  const Ref a = b.param("a", f.a_computed ? float32 : f.dtype, false),
            x = b.param("b", f.b_computed ? float32 : f.dtype, false), y = b.param("y", sums, true);
  const auto zeros = [&] {
    return b.constant(sums, sums == int32 ? Number::of_int(0) : Number::of_real(0), {f.m, f.n});
  };
  const int64_t whole = f.depth * f.steps;
  const auto side = [&](Ref ref, int64_t rows, bool turned, bool view, bool depth_first, bool computed, Value k) {
    // In memory: rows along which k runs, or, turned, such that it does not.
    const int64_t pitch = (turned ? rows : whole) + f.pitch;
    const int64_t along_k = turned ? pitch : 1, along = turned ? 1 : pitch;
    const Value at = b.mul(k, b.index(along_k));
    const bool loads_depth_first = depth_first != view;
    Value tile = loads_depth_first ? b.load(ref, at, {f.depth, rows}, {along_k, along})
                                   : b.load(ref, at, {rows, f.depth}, {along, along_k});
    if (computed) tile = b.cast(b.mul(tile, b.real(float32, 0.5, b.type(tile).dims)), f.dtype);
    return view ? b.transpose(tile) : tile;
  };
  const std::vector<Value> sum =
      b.loop(b.index(0), b.index(whole), b.index(f.depth), {zeros()}, [&](Value k, const std::vector<Value>& carried) {
        const Value left = side(a, f.m, f.a_turned, f.a_views, false, f.a_computed, k);
        const Value right = side(x, f.n, f.b_turned, f.b_views, true, f.b_computed, k);
        return std::vector<Value>{b.add(carried[0], b.dot(left, right, zeros(), f.precision))};
      });
  finish(b, y, sum[0]);
  const int64_t elements = (std::max({f.m, f.n, whole}) + f.pitch) * std::max({f.m, f.n, whole});
  return moderate(b.finish(), {elements, elements, made}, 1);
}

void whole_tile(Builder& b, Ref y, Value v) { b.store(y, v, b.index(0), {b.type(v).dims[1], 1}); }

std::vector<RandomCase> forms() {
  std::vector<RandomCase> out;
  const auto add = [&](const Form& f) { out.push_back(product(f, whole_tile, f.m * f.n)); };
  for (const Dtype t : {bfloat16, float16})
    for (int bits = 0; bits < 16; ++bits) {
      if (t == float16 && bits % 5 != 0) continue;
      add({.dtype = t,
           .a_turned = (bits & 1) != 0,
           .b_turned = (bits & 2) != 0,
           .a_views = (bits & 4) != 0,
           .b_views = (bits & 8) != 0});
    }
  for (const DotPrecision p : {DotPrecision::tf32, DotPrecision::tf32x3})
    for (int bits = 0; bits < 4; ++bits)
      add({.dtype = float32, .a_turned = (bits & 1) != 0, .b_turned = (bits & 2) != 0, .precision = p});
  add({.pitch = 3});
  add({.m = 16, .n = 16, .depth = 16, .steps = 5});
  add({.m = 128, .n = 128, .depth = 64, .steps = 5});
  add({.m = 48, .n = 80, .depth = 48});
  add({.m = 32, .n = 256, .depth = 16, .steps = 1});
  add({.dtype = float32, .m = 64, .n = 64, .depth = 16});
  add({.dtype = float32, .m = 24, .n = 20, .depth = 7, .steps = 2});
  return out;
}

/// What users do with accumulators.
std::vector<RandomCase> finishes() {
  std::vector<RandomCase> out;
  const Form f;
  const auto add = [&](int64_t made, const Finish& finish) { out.push_back(product(f, finish, made)); };
  const auto rows = [&](Reducer r) {
    return [r](Builder& b, Ref y, Value v) { b.store(y, b.reduce(r, v, 1), b.index(0), {1}); };
  };
  const auto columns = [&](Reducer r) {
    return [r](Builder& b, Ref y, Value v) { b.store(y, b.reduce(r, v, 0), b.index(0), {1}); };
  };
  for (const Reducer r : {Reducer::sum, Reducer::max}) add(f.m, rows(r)), add(f.n, columns(r));
  add(f.m * f.n, [&](Builder& b, Ref y, Value v) {
    const Value sums = b.broadcast(b.reshape(b.reduce(Reducer::sum, v, 0), {1, f.n}), {f.m, f.n});
    const Value most = b.broadcast(b.reshape(b.reduce(Reducer::max, v, 1), {f.m, 1}), {f.m, f.n});
    const Value i = b.broadcast(b.reshape(b.arange(f.m), {f.m, 1}), {f.m, f.n});
    const Value j = b.broadcast(b.reshape(b.arange(f.n), {1, f.n}), {f.m, f.n});
    whole_tile(b, y, b.select(b.lt(j, i), b.add(b.mul(v, sums), most), v));
  });
  add(f.m * f.n, [&](Builder& b, Ref y, Value v) { whole_tile(b, y, b.transpose(v)); });
  add(f.m * f.n, [&](Builder& b, Ref y, Value v) { b.store(y, b.reshape(v, {f.m * f.n}), b.index(0), {1}); });
  add(f.m * f.n, [&](Builder& b, Ref y, Value v) { whole_tile(b, y, b.scan(Reducer::sum, v, 1)); });
  add(f.m * f.n, [&](Builder& b, Ref y, Value v) {
    const Value at = b.reshape(b.arange(f.m * f.n), {f.m, f.n});
    b.atomic_add(y, b.add(v, b.gather(y, at)), at);
  });
  add(f.m * f.n, [&](Builder& b, Ref y, Value v) {
    b.store(y, v, b.index(0), {f.n, 1}, {b.index(f.m - 3), b.index(f.n - 5)});
  });
  add(f.m,
      [&](Builder& b, Ref y, Value v) { b.store(y, b.sort({b.reduce(Reducer::sum, v, 1)}, 0)[0], b.index(0), {1}); });
  return out;
}

/// Two sums of products with the same tiles: as they are, and turned. `after`: the first product is no part of a sum
/// that the loop carries, so that its wait ends within the iteration.
RandomCase shared_tiles(int64_t rows, int64_t n, int64_t steps, bool after) {
  return traced(k::trace("shared",
                         {{k::Use::in, bfloat16, {2 * rows, n}},
                          {k::Use::in, bfloat16, {steps * n, n}},
                          {k::Use::out, float32, {2 * rows, n}}},
                         {1}, [&](std::span<const k::AnyRef> r) {
                           const k::In<bfloat16_t, 2> a(r[0]), tiles(r[1]);
                           const k::Out<float, 2> c(r[2]);
                           const auto left = a(k::ds(0, rows), k::all).load(),
                                      right = a(k::ds(rows, rows), k::all).load();
                           k::Mut x = k::zeros<float>({rows, n}), y = k::zeros<float>({rows, n});
                           k::loop(0, steps * n, n, [&](k::Index i) {
                             const auto tile = tiles(k::ds(i, n), k::all).load();
                             x = after ? k::maximum(x, k::dot(left, k::trans(tile)))
                                       : k::dot(left, k::trans(tile), x.get());
                             y = k::dot(right, tile, y.get());
                           });
                           c(k::ds(0, rows), k::all) = x;
                           c(k::ds(rows, rows), k::all) = y;
                         }));
}

std::vector<RandomCase> language_cases() {
  return {matmul<bfloat16_t>(bfloat16, 72, 88, 104, {}),
          matmul<bfloat16_t>(bfloat16, 70, 90, 101, {}),
          matmul<float16_t>(float16, 130, 128, 96, {128, 128, 32}),
          matmul<float>(float32, 70, 90, 33, {}),
          attention<bfloat16_t>(bfloat16, 100, 64, 64, 32, true),
          attention<bfloat16_t>(bfloat16, 100, 32, 64, 64, true),
          attention<float16_t>(float16, 130, 32, 128, 64, false),
          attention<bfloat16_t>(bfloat16, 64, 128, 32, 16, true)};
}

constexpr cuda::Features hopper{.warpgroups = true, .clusters = true};

}  // namespace

TEST_CASE("operands in all orders are multiplied, thread by thread") {
  if (can_run_kernels()) check_near(forms());
}

TEST_CASE("accumulators are reduced, spread, moved and stored, thread by thread") {
  if (can_run_kernels()) check_near(finishes());
}

TEST_CASE("products and attention of the kernel language give what the interpreter gives, thread by thread") {
  if (can_run_kernels()) check_near(language_cases());
}

TEST_CASE("warpgroups multiply operands in all orders and from registers, thread by thread") {
  if (!can_run_kernels()) return;
  std::vector<RandomCase> cases;
  const auto add = [&](const Form& f) { cases.push_back(product(f, whole_tile, f.m * f.n)); };
  for (int bits = 0; bits < 16; ++bits)
    add({.dtype = bits % 3 == 0 ? float16 : bfloat16,
         .a_turned = (bits & 1) != 0,
         .b_turned = (bits & 2) != 0,
         .a_views = (bits & 4) != 0,
         .b_views = (bits & 8) != 0,
         .m = 128,
         .n = bits % 2 == 0 ? 64 : 32,
         .depth = bits % 2 == 0 ? 64 : 32});
  add({.m = 128, .n = 48, .depth = 16, .steps = 5, .pitch = 3});
  add({.m = 192, .n = 128, .depth = 32, .steps = 2});
  cases.push_back(product(
      {.m = 64, .n = 64},
      [&](Builder& b, Ref y, Value v) {
        b.store(y, v, b.index(0), {64, 1}, {b.index(61), b.index(59)});
      },
      64 * 64));
  cases.push_back(matmul<bfloat16_t>(bfloat16, 120, 136, 101, {}));
  cases.push_back(matmul<float16_t>(float16, 130, 256, 96, {128, 128, 32}));
  cases.push_back(attention<bfloat16_t>(bfloat16, 100, 64, 64, 32, true));
  cases.push_back(attention<float16_t>(float16, 130, 32, 128, 64, false));
  cases.push_back(attention<bfloat16_t>(bfloat16, 192, 64, 192, 64, true));
  for (const RandomCase& c : cases)
    CHECK(cuda::render(expand(c.kernel), "k", {}, hopper).source.find("wgmma of ") != std::string::npos);
  check_near(cases, hopper);
}

TEST_CASE("warpgroups multiply TF32 along the contracted axis, thread by thread") {
  if (!can_run_kernels()) return;
  std::vector<RandomCase> cases;
  const auto add = [&](const Form& f, const char* text) {
    cases.push_back(product(f, whole_tile, f.m * f.n));
    const std::string source = cuda::render(expand(cases.back().kernel), "k", {}, hopper).source;
    CAPTURE(source.substr(0, 400));
    CHECK(source.find(text) != std::string::npos);
  };
  // Numbers that TF32 has: warpgroups cut the others off, which the interpreter rounds.
  const auto tf32 = [&](Form f) {
    f.dtype = float32, f.precision = DotPrecision::tf32;
    add(f, "wgmma of tf32 by ");
    for (size_t p = 0; p < 2; ++p)
      for (size_t byte = 0; byte + 4 <= cases.back().buffers[p].size(); byte += 4) {
        uint32_t bits;
        std::memcpy(&bits, cases.back().buffers[p].data() + byte, 4);
        bits &= 0xffffe000u;
        std::memcpy(cases.back().buffers[p].data() + byte, &bits, 4);
      }
  };
  for (int bits = 0; bits < 4; ++bits)
    tf32({.a_views = (bits & 1) != 0, .b_views = (bits & 2) != 0, .m = 128, .n = 64, .depth = bits < 2 ? 32 : 16});
  tf32({.m = 128, .n = 256, .depth = 32, .steps = 6});
  check_near(cases, hopper);
  const auto says = [&](const Form& f, const char* text) {
    const std::string source = cuda::render(expand(product(f, whole_tile, f.m * f.n).kernel), "k", {}, hopper).source;
    CAPTURE(source.substr(0, 400));
    CHECK(source.find(text) != std::string::npos);
  };
  says({.dtype = float32, .b_turned = true, .precision = DotPrecision::tf32},
       "multiplies float32 whose lines do not run along the contracted axis");
  says({.dtype = float32, .precision = DotPrecision::tf32x3}, "multiplies TF32 three times");
}

TEST_CASE("operands of 8 bits in all orders are multiplied by warps and by warpgroups, thread by thread") {
  if (!can_run_kernels()) return;
  constexpr cuda::Features ada{.float8 = true};
  std::vector<RandomCase> by_warps, by_warpgroups;
  const auto add = [&](std::vector<RandomCase>& to, const Form& f, const cuda::Features& features, const char* text) {
    to.push_back(product(f, whole_tile, f.m * f.n));
    const std::string source = cuda::render(expand(to.back().kernel), "k", {}, features).source;
    CAPTURE(source.substr(0, 400));
    CHECK(source.find(fmt::format("{} of {} by ", text, dtype_name(f.dtype))) != std::string::npos);
  };
  const Dtype dtypes[] = {int8, uint8, float8_e4m3, float8_e5m2};
  for (int bits = 0; bits < 64; bits += bits < 15 ? 1 : 5) {
    Form f{.dtype = dtypes[(bits ^ bits >> 2) & 3], .a_computed = (bits & 16) != 0, .b_computed = (bits & 32) != 0};
    f.a_turned = (bits & 1) != 0, f.b_turned = (bits & 2) != 0, f.a_views = (bits & 4) != 0,
    f.b_views = (bits & 8) != 0;
    add(by_warps, f, ada, "mma.sync");
    f.dtype = dtypes[(bits + bits / 4) % 4], f.m = 128, f.n = bits % 3 == 0 ? 48 : 64, f.depth = 64;
    add(by_warpgroups, f, hopper, "wgmma");
  }
  add(by_warps, {.dtype = int8, .m = 128, .n = 128, .depth = 64, .steps = 5}, {}, "mma.sync");
  add(by_warpgroups, {.dtype = int8, .m = 128, .n = 256, .depth = 128, .steps = 5}, hopper, "wgmma");
  add(by_warpgroups, {.dtype = float8_e4m3, .b_views = true, .m = 128, .n = 256, .depth = 128}, hopper, "wgmma");
  check_near(by_warps, ada);
  check_near(by_warpgroups, hopper);
  const auto says = [&](const Form& f, const char* text) {
    CHECK(cuda::render(expand(product(f, whole_tile, 1).kernel), "k").source.find(text) != std::string::npos);
  };
  says({.dtype = float8_e4m3}, "fma: warps multiply 8-bit floats from sm_89 on, and warpgroups do not as it is not");
  says({.dtype = int8, .depth = 16}, "are not multiples of 16, 16 and 32");
}

TEST_CASE("a producer copies by TMA what warpgroups multiply, thread by thread") {
  if (!can_run_kernels()) return;
  std::vector<RandomCase> cases{matmul<bfloat16_t>(bfloat16, 128, 256, 384, {128, 256, 64}),
                                matmul<float16_t>(float16, 128, 512, 192, {128, 256, 32}),
                                attention<bfloat16_t>(bfloat16, 256, 128, 128, 64, false),
                                attention<bfloat16_t>(bfloat16, 256, 128, 128, 64, true)};
  for (int bits = 0; bits < 4; ++bits) {
    const Form f{.a_turned = (bits & 1) != 0, .b_turned = (bits & 2) != 0, .m = 128, .n = 256, .depth = 64, .steps = 6};
    cases.push_back(product(f, whole_tile, f.m * f.n));
  }
  // Tiles that pass the ends of rows, columns and the contracted axis; arrays whose lines are no whole boxes.
  for (const auto& [m, n, depth] :
       {std::array<int64_t, 3>{200, 256, 384}, {128, 264, 384}, {128, 256, 200}, {136, 520, 72}, {72, 40, 136}})
    cases.push_back(matmul<bfloat16_t>(bfloat16, m, n, depth, {128, 256, 64}));
  for (const RandomCase& c : cases) {
    const std::string source = cuda::render(expand(c.kernel), "k", {}, hopper).source;
    CAPTURE(source.substr(0, 400));
    CHECK(source.find("copied by TMA") != std::string::npos);
  }
  check_near(cases, hopper);
}

TEST_CASE("stages that find no room twice are copied and multiplied one after the other, thread by thread") {
  if (!can_run_kernels()) return;
  const Form f{.m = 128, .n = 256, .depth = 128, .steps = 3};
  const RandomCase large = product(f, whole_tile, f.m * f.n);
  const std::string source = cuda::render(expand(large.kernel), "k", {}, hopper).source;
  CHECK(source.find("its stages take too much memory") != std::string::npos);
  CHECK(source.find("wgmma_wait<1>();") == std::string::npos);
  check_near({large}, hopper);
}

TEST_CASE("what is multiplied is loaded while the iteration before is multiplied, thread by thread") {
  if (!can_run_kernels()) return;
  std::vector<RandomCase> cases;
  for (int bits = 0; bits < 16; ++bits)
    for (const int64_t steps : {1, 2, 5}) {
      const Form f{.a_turned = (bits & 1) != 0,
                   .b_turned = (bits & 2) != 0,
                   .m = 128,
                   .n = 64,
                   .depth = 32,
                   .steps = steps,
                   .a_computed = (bits & 4) != 0,
                   .b_computed = (bits & 8) != 0};
      cases.push_back(product(f, whole_tile, f.m * f.n));
    }
  const Form large{.m = 128, .n = 256, .depth = 64, .steps = 5, .b_computed = true};
  cases.push_back(product(large, whole_tile, large.m * large.n));
  const std::string source = cuda::render(expand(cases.back().kernel), "k", {}, hopper).source;
  CHECK(source.find("copied by TMA") != std::string::npos);
  CHECK(source.find("wgmma_wait<1>") == std::string::npos);
  check_near(cases, hopper);
  check_near(cases);
}

TEST_CASE("a tile that two products read is copied once, thread by thread") {
  if (!can_run_kernels()) return;
  const std::vector<RandomCase> cases{shared_tiles(128, 128, 6, false), shared_tiles(128, 128, 6, true),
                                      shared_tiles(128, 32, 3, false), shared_tiles(64, 48, 2, true)};
  const std::string by_tma = cuda::render(expand(cases[0].kernel), "k", {}, hopper).source;
  CHECK(by_tma.find("copied by TMA") != std::string::npos);
  size_t copies = 0;
  for (size_t at = 0; (at = by_tma.find(" copy_box(", at)) != std::string::npos; ++at) ++copies;
  CHECK(copies == 3);  // of the shared tile, and of the two that stay
  CHECK(by_tma.find(" copy_async(") == std::string::npos);
  check_near(cases, hopper);
  check_near(cases);
}

namespace {

/// A sum of products with two tiles that stay, which are turned in the loop.
RandomCase turned_in_loop() {
  constexpr int64_t rows = 64, n = 64, steps = 3;
  return traced(k::trace("turned",
                         {{k::Use::in, bfloat16, {2 * n, n}},
                          {k::Use::in, bfloat16, {steps * rows, n}},
                          {k::Use::out, float32, {rows, n}}},
                         {1}, [&](std::span<const k::AnyRef> r) {
                           const k::In<bfloat16_t, 2> stays(r[0]), tiles(r[1]);
                           const k::Out<float, 2> c(r[2]);
                           const auto x = stays(k::ds(0, n), k::all).load(), y = stays(k::ds(n, n), k::all).load();
                           k::Mut sum = k::zeros<float>({rows, n});
                           k::loop(0, steps * rows, rows, [&](k::Index i) {
                             const auto tile = tiles(k::ds(i, rows), k::all).load();
                             sum = k::maximum(sum, k::dot(tile, k::trans(x)) - k::dot(tile, k::trans(y)));
                           });
                           c(k::all, k::all) = sum;
                         }));
}

}  // namespace

TEST_CASE("tiles that stay have a space each while a loop turns them, thread by thread") {
  if (!can_run_kernels()) return;
  const std::vector<RandomCase> cases{turned_in_loop()};
  const std::string source = cuda::render(expand(cases[0].kernel), "k", {}, hopper).source;
  CHECK(source.find("copied by TMA") != std::string::npos);
  // The producer may copy for the next program behind the loop, and not before.
  CHECK(source.rfind("barrier_arrive(") > source.rfind(" wgmma("));
  check_near(cases, hopper);
}

TEST_CASE("windows that pass the end of a line are not copied by TMA, thread by thread") {
  if (!can_run_kernels()) return;
  std::vector<RandomCase> cases;
  for (const int64_t pitch : {-64, -128})
    cases.push_back(product({.m = 64, .n = 64, .depth = 128, .steps = 2, .pitch = pitch}, whole_tile, 64 * 64));
  const auto by_tma = [](const RandomCase& c) {
    return cuda::render(expand(c.kernel), "k", {}, hopper).source.find("copy_box(") != std::string::npos;
  };
  CHECK(!by_tma(cases[0]));  // a tile of 128 columns that begins at 128 of 192
  CHECK(by_tma(cases[1]));   // whole lines of 128
  check_near(cases, hopper);
}

TEST_CASE("exact products of float32 give the interpreter's bits, thread by thread") {
  if (!can_run_kernels()) return;
  std::vector<RandomCase> cases;
  for (int bits = 0; bits < 64; ++bits) {
    const Form f{.dtype = float32,
                 .a_turned = (bits & 1) != 0,
                 .b_turned = (bits & 2) != 0,
                 .a_views = (bits & 4) != 0,
                 .b_views = (bits & 8) != 0,
                 .m = (bits & 16) != 0 ? 128 : 32,
                 .n = 64,
                 .depth = 16,
                 .pitch = bits % 3,
                 .b_computed = (bits & 32) != 0};
    cases.push_back(product(f, whole_tile, f.m * f.n));
  }
  cases.push_back(matmul<float>(float32, 70, 90, 33, {}));
  cases.push_back(matmul<float>(float32, 128, 160, 64, {64, 64, 16}));
  check_on_host(cases);
  check_on_host(cases, {}, hopper);
}

TEST_CASE("a source says what became of each product") {
  const auto source = [](const RandomCase& c) { return cuda::render(expand(c.kernel), "k").source; };
  const auto says = [&](const RandomCase& c, const char* text) { return source(c).find(text) != std::string::npos; };
  CHECK(says(matmul<bfloat16_t>(bfloat16, 128, 128, 128, {128, 128, 32}),
             "mma.sync of bfloat16 by 2 x 4 warps; copied ahead; no wgmma: it is not compiled for sm_90a"));
  const auto on_hopper = [&](const RandomCase& c) { return cuda::render(expand(c.kernel), "k", {}, hopper).source; };
  const auto hopper_says = [&](const RandomCase& c, const char* text) {
    return on_hopper(c).find(text) != std::string::npos;
  };
  CHECK(hopper_says(matmul<bfloat16_t>(bfloat16, 128, 256, 128, {128, 256, 64}),
                    "wgmma of bfloat16 by 2 warpgroups, beside the copies; copied by TMA"));
  CHECK(hopper_says(matmul<bfloat16_t>(bfloat16, 128, 256, 96, {128, 256, 64}),
                    "wgmma of bfloat16 by 2 warpgroups, beside the copies; copied by TMA"));
  CHECK(hopper_says(matmul<bfloat16_t>(bfloat16, 128, 128, 128, {128, 128, 64}),
                    "wgmma of bfloat16 by 2 warpgroups, beside the copies; copied by TMA"));
  CHECK(hopper_says(matmul<bfloat16_t>(bfloat16, 128, 128, 128, {32, 128, 32}), "32 rows, no multiple of 64"));
  CHECK(hopper_says(product({.m = 256, .n = 256}, whole_tile, 256 * 256), "no wgmma: their accumulators take more"));
  CHECK(says(matmul<bfloat16_t>(bfloat16, 70, 90, 101, {}), "not pipelined: rows of p0 are not 16-byte aligned"));
  CHECK(says(matmul<float>(float32, 70, 90, 33, {}), "fma of float32 by "));
  CHECK(says(product({.m = 24}, whole_tile, 24 * 32), "fma: its extents 24 x 32 x 32 are not multiples of"));
}

TEST_CASE("blocks take turns where programs are equally long, and TMA stores what nobody reads") {
  const auto has = [](const RandomCase& c, const char* text) {
    return cuda::render(expand(c.kernel), "k", {}, hopper).source.find(text) != std::string::npos;
  };
  const RandomCase even = matmul<bfloat16_t>(bfloat16, 512, 512, 128, {128, 256, 64});
  CHECK(has(even, "program += gridDim.x"));
  CHECK(has(even, "store_box(map"));
  const RandomCase narrow = matmul<bfloat16_t>(bfloat16, 512, 512, 128, {128, 32, 64});
  CHECK(!has(narrow, "store_box(map"));  // lines of less than 128 bytes
  const RandomCase causal = attention<bfloat16_t>(bfloat16, 1024, 128, 128, 64, true);
  CHECK(has(attention<bfloat16_t>(bfloat16, 1024, 128, 128, 64, false), "program += gridDim.x"));
  CHECK(has(causal, "copy_box("));
  CHECK(!has(causal, "program += gridDim.x"));
}

static RandomCase in_turns(RandomCase c) {
  c.kernel.launch.ping_pong = 1;
  return c;
}

TEST_CASE("two programs of a block multiply in turns, thread by thread") {
  if (!can_run_kernels()) return;
  // Programs of two blocks: more and fewer iterations than stages, an odd number of programs, edges, one program.
  std::vector<RandomCase> cases{in_turns(matmul<bfloat16_t>(bfloat16, 384, 384, 640, {128, 128, 64})),
                                in_turns(matmul<float16_t>(float16, 640, 128, 128, {128, 128, 64})),
                                in_turns(matmul<bfloat16_t>(bfloat16, 200, 264, 200, {64, 128, 64})),
                                in_turns(matmul<bfloat16_t>(bfloat16, 128, 128, 448, {128, 128, 64})),
                                in_turns(matmul<bfloat16_t>(bfloat16, 128, 768, 192, {64, 256, 32}))};
  for (const RandomCase& c : cases) {
    const std::string source = cuda::render(expand(c.kernel), "k", {}, hopper).source;
    CAPTURE(source.substr(0, 400));
    CHECK(source.find("wgmma of ") != std::string::npos);
    CHECK(source.find("by 1 warpgroup, two programs in turns") != std::string::npos);
  }
  check_near(cases, hopper);
}

TEST_CASE("what cannot multiply in turns is multiplied by all warpgroups together, and says why") {
  const auto says = [](const RandomCase& c, const char* text) {
    const std::string source = cuda::render(expand(c.kernel), "k", {}, hopper).source;
    CAPTURE(source.substr(0, 400));
    CHECK(source.find(text) != std::string::npos);
    CHECK(source.find("wgmma of ") != std::string::npos);
    CHECK(source.find("meet_set") == std::string::npos);
  };
  says(in_turns(matmul<bfloat16_t>(bfloat16, 512, 512, 128, {128, 256, 64})),
       "not in turns: its accumulators take more registers than a warpgroup has");
  says(in_turns(attention<bfloat16_t>(bfloat16, 1024, 32, 64, 64, true)), "not in turns: its programs are not equally");
  says(in_turns(matmul<bfloat16_t>(bfloat16, 120, 136, 101, {128, 128, 32})), "not in turns: an operand is computed");
  RandomCase many = in_turns(matmul<bfloat16_t>(bfloat16, 512, 512, 128, {128, 128, 64}));
  many.kernel.launch.warps = 8;
  says(many, "not in turns: the launch asks for more than the four warps");
}

TEST_CASE("products and attention compile for GPUs of several kinds, and spill nothing") {
  std::string why;
  if (!cuda::nvrtc_available(&why)) {
    MESSAGE("skipped: " << why);
    return;
  }
  const std::vector<RandomCase> cases{matmul<bfloat16_t>(bfloat16, 4096, 4096, 4096, {128, 128, 32}),
                                      matmul<bfloat16_t>(bfloat16, 4096, 4096, 4096, {128, 128, 64}),
                                      matmul<bfloat16_t>(bfloat16, 4096, 4096, 4096, {128, 256, 64}),
                                      in_turns(matmul<bfloat16_t>(bfloat16, 4096, 4096, 4096, {128, 128, 64})),
                                      attention<bfloat16_t>(bfloat16, 1024, 64, 128, 64, false),
                                      attention<bfloat16_t>(bfloat16, 1024, 128, 128, 64, true)};
  std::vector<RandomCase> bytes;  // each dtype in both orders, as large as tiles get
  for (const Dtype t : {int8, float8_e4m3})
    for (const bool turned : {false, true})
      bytes.push_back(product({.dtype = t, .b_turned = turned, .m = 128, .n = turned ? 128 : 256, .depth = 128},
                              whole_tile, 128 * 256));
  for (const char* arch : {"sm_80", "sm_89", "sm_90a"}) {
    CAPTURE(std::string(arch));
    const cuda::Features features = cuda::features_of(target::gpu_of(arch));
    std::vector<RandomCase> all = cases;
    for (const RandomCase& c : bytes)
      if (features.warpgroups || (features.float8 && c.kernel.params[0].dtype == int8)) all.push_back(c);
    std::string log, source(cuda::prelude());
    for (size_t n = 0; n < all.size(); ++n)
      source += cuda::render(expand(all[n].kernel, cuda::operators), "k" + std::to_string(n), {}, features).source;
    CHECK(!cuda::compile(source, arch, {}, &log).empty());
    CHECK_MESSAGE(log.find("serialized") == std::string::npos, log);
    const std::vector<cuda::KernelUsage> usage = cuda::parse_usage(log);
    CHECK(usage.size() == all.size());
    for (const cuda::KernelUsage& use : usage) {
      CAPTURE(use.name);
      CHECK(use.spill_store_bytes == 0);
      CHECK(use.stack_bytes == 0);
    }
  }
}
