// Kernels as functions of arrays: lazy, compiled with state, mapped, differentiated by rules of their own, configured.
#include "weft/kernel_function.h"

#include <thread>

#include "runtime/trace.h"
#include "support.h"
#include "weft/compile.h"

using namespace weft;
using namespace weft::testing;

namespace {

int64_t built() { return runtime::counters().programs_built; }

constexpr int64_t block = 16;

/// Blocks of an array of one axis.
constexpr auto blocks = [](const auto& x, const auto&...) { return k::Grid{k::cdiv(x.dim(0), block)}; };

auto square_kernel() {
  return k::kernel("square",
                   [](k::In<float, 1> x, k::Out<float, 1> y) {
                     const auto part = k::ds(k::program_id(0) * block, block);
                     const auto v = x(part).load();
                     y(part) = v * v;
                   })
      .grid(blocks);
}

/// Adds x to state in place and gives the difference that a scalar makes: parameters in an order of their own.
auto step_kernel() {
  return k::kernel("step",
                   [](k::InOut<float, 1> state, k::In<float, 0> rate, k::In<float, 1> x, k::Out<float, 1> before) {
                     const auto part = k::ds(k::program_id(0) * block, block);
                     const auto was = state(part).load();
                     before(part) = was;
                     state(part) = was + rate().load() * x(part).load();
                   })
      .grid(blocks);
}

constexpr int64_t width = 8;  // of the rows of softmax

auto softmax_kernel() {
  return k::kernel("softmax",
                   [](k::In<float, 2> x, k::Out<float, 2> y) {
                     const auto row = k::program_id(0);
                     const auto v = x(row, k::ds(0, width)).load();
                     const auto e = k::exp(v - k::max(v, 0));
                     y(row, k::ds(0, width)) = e / k::sum(e, 0);
                   })
      .grid([](auto x, auto) { return k::Grid{x.dim(0)}; });
}

auto softmax_backward_kernel() {
  return k::kernel("softmax_backward",
                   [](k::In<float, 2> y, k::In<float, 2> g, k::Out<float, 2> dx) {
                     const auto row = k::program_id(0);
                     const auto p = y(row, k::ds(0, width)).load(), c = g(row, k::ds(0, width)).load();
                     dx(row, k::ds(0, width)) = p * (c - k::sum(c * p, 0));
                   })
      .grid([](auto y, auto, auto) { return k::Grid{y.dim(0)}; });
}

array normal(const Shape& shape, uint64_t seed) { return random::normal(shape, float32, 0, 1, random::key(seed)); }

}  // namespace

TEST_CASE("a kernel is a function of arrays, and lazy") {
  const auto square_of = square_kernel();
  const array x = normal({37}, 1);
  const array y = square_of(x);
  CHECK(!y.is_available());
  CHECK(y.shape() == x.shape());
  CHECK(y.dtype() == float32);
  check_close(y, x * x, 0);
  check_close(square_of(x + 1.0f) * 2.0f, (x + 1.0f) * (x + 1.0f) * 2.0f, 1e-6);
  check_close(square_of(slice(x, {1}, {37}, {2})), square(slice(x, {1}, {37}, {2})), 0);
  check_close(square_of(std::vector{x})[0], x * x, 0);
  CHECK(square_of.name() == "square");
}

TEST_CASE("an equal kernel compiles nothing again") {
  const array x = normal({50}, 2);
  eval(x);
  eval(square_kernel()(x));
  const int64_t before = built();
  eval(square_kernel()(x));
  const auto again = square_kernel();
  eval(again(x));
  eval(again(x));
  CHECK(built() == before);
}

TEST_CASE("an in-out argument does not change") {
  const auto step = step_kernel();
  const array state = ones({20}), x = normal({20}, 1);
  const auto [next, before] = step(state, 0.5f, x);
  check_close(next, 1.0f + 0.5f * x, 1e-6);
  check_close(before, ones({20}), 0);
  check_close(state, ones({20}), 0);
  // A value that was pending, and is read by others.
  const array pending = x * x;
  const auto [more, was] = step(pending, 1.0f, x);
  eval(more, was, pending);
  check_close(pending, x * x, 0);
  check_close(more, x * x + x, 1e-6);
  check_close(was, x * x, 0);
}

TEST_CASE("compiled functions launch kernels on captured state, in place") {
  const auto step = step_kernel();
  array state = zeros({32}) + 0.0f;
  eval(state);
  const auto run = compile(
      [&](const Arrays& a) {
        auto [next, before] = step(state, 0.5f, a[0]);
        state = next;
        return Arrays{sum(before)};
      },
      {.state = {&state}});
  const array x = ones({32});
  CHECK(run({x})[0].item<float>() == 0);
  const int64_t programs = built();
  const void* const memory = state.raw_data();
  CHECK(run({x})[0].item<float>() == 16);
  CHECK(state.raw_data() == memory);
  const array kept = state;
  CHECK(run({x})[0].item<float>() == 32);
  CHECK(built() == programs);
  check_close(kept, full({32}, 1.0f), 0);  // an old handle keeps its value
  check_close(state, full({32}, 1.5f), 0);
}

TEST_CASE("vmap runs all elements in one launch") {
  const auto step = step_kernel();
  const array states = normal({3, 4, 20}, 1), rates = normal({4}, 2), x = normal({20, 3}, 3);
  const ArrayFunction one = [&](const Arrays& a) { return step(a); };
  const ArrayFunction inner = vmap(one, {0, 0, -1}, {0, 1});
  const Arrays got = vmap(inner, {0, -1, 1}, {1, 0})({states, rates, x});
  REQUIRE(got[0].shape() == Shape{4, 3, 20});
  REQUIRE(got[1].shape() == Shape{3, 20, 4});
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) {
      const array state = take(take(states, i, 0), j, 0), rate = take(rates, j, 0), by = take(x, i, 1);
      const auto [next, before] = step(state, rate, by);
      check_close(take(take(got[0], j, 0), i, 0), next, 0);
      check_close(take(take(got[1], i, 0), j, 1), before, 0);
    }
  check_close(vmap(UnaryFunction([](const array& a) { return square_kernel()(a); }), 1, 1)(x), x * x, 0);
}

TEST_CASE("arrays without elements") {
  const auto square_of = square_kernel();
  CHECK(square_of(zeros({0})).shape() == Shape{0});
  CHECK(square_of(zeros({0})).to_vector<float>().empty());
  const ArrayFunction f = [&](const Arrays& a) { return Arrays{square_of(a[0])}; };
  CHECK(vmap(f)({zeros({3, 0})})[0].shape() == Shape{3, 0});
  CHECK(vmap(f)({zeros({0, 5})})[0].shape() == Shape{0, 5});
  CHECK(softmax_kernel()(zeros({0, 8})).to_vector<float>().empty());
  CHECK(softmax_kernel()(zeros({5, 0})).shape() == Shape{5, 0});
  CHECK(softmax_kernel().interpret(zeros({0, 8})).shape() == Shape{0, 8});
}

TEST_CASE("derivatives by kernels of their own") {
  const auto forward = softmax_kernel();
  const auto backward = softmax_backward_kernel();
  const ArrayFunction f = custom_vjp(ArrayFunction(forward), [&](const Arrays&, const Arrays& g, const Arrays& y) {
    return Arrays{backward(y[0], g[0])};
  });
  const array x = normal({5, width}, 1), w = normal({5, width}, 2);
  check_close(f({x})[0], softmax(x, -1), 1e-5);
  const auto loss = [&](const array& a) { return sum(f({a})[0] * w); };
  const array expected = grad([&](const array& a) { return sum(softmax(a, -1) * w); })(x);
  check_close(grad(UnaryFunction(loss))(x), expected, 1e-5);
  const ArrayFunction compiled =
      compile(ArrayFunction([&](const Arrays& a) { return Arrays{grad(UnaryFunction(loss))(a[0])}; }));
  check_close(compiled({x})[0], expected, 1e-5);
  // A batch of them: the rule's kernel is mapped, too.
  const array batch = normal({3, 5, width}, 4);
  const array mapped = grad([&](const array& a) { return sum(vmap(f)({a})[0] * w); })(batch);
  check_close(mapped, grad([&](const array& a) { return sum(softmax(a, -1) * w); })(batch), 1e-5);
  // Without a rule the derivative follows from the body.
  check_close(grad(UnaryFunction([&](const array& a) { return sum(forward(a) * w); }))(x), expected, 1e-5);
}

namespace {

struct Scaling {
  float by = 2;
  int block = 16;
  friend bool operator==(const Scaling&, const Scaling&) = default;
};

std::atomic<int> traced = 0;

auto scale_kernel() {
  return k::kernel("scale",
                   [](k::In<float, 1> x, k::Out<float, 2> y, Scaling s) {
                     ++traced;
                     const auto i = k::program_id(0);
                     const auto v = x(k::ds(i * s.block, s.block)).load();
                     y(0, k::ds(i * s.block, s.block)) = v * s.by;
                     y(1, k::ds(i * s.block, s.block)) = v;
                   })
      .grid([](const auto& x, const auto&, const Scaling& s) { return k::Grid{k::cdiv(x.dim(0), s.block)}; })
      .outputs([](const array& x) {
        return Shape{2, x.shape(0)};
      });
}

}  // namespace

TEST_CASE("a configuration is a part of what is traced, and traced once") {
  const auto scale = scale_kernel();
  const array x = normal({40}, 1);
  traced = 0;
  check_close(scale(x), stack({x * 2.0f, x}), 0);
  check_close(scale(x + 1.0f), stack({(x + 1.0f) * 2.0f, x + 1.0f}), 1e-6);
  CHECK(traced == 1);
  const auto wider = scale.config({.by = 3, .block = 32});
  check_close(wider(x), stack({x * 3.0f, x}), 0);
  CHECK(traced == 2);
  check_close(scale.config({.by = 3, .block = 32})(x), stack({x * 3.0f, x}), 0);
  CHECK(traced == 2);
  check_close(scale(normal({41}, 1)), stack({normal({41}, 1) * 2.0f, normal({41}, 1)}), 0);
  CHECK(traced == 3);
}

TEST_CASE("the interpreter gives the same, at once") {
  const array x = normal({4, width}, 1), w = normal({20}, 2);
  check_close(softmax_kernel().interpret(x), softmax_kernel()(x), 1e-6);
  const auto [next, before] = step_kernel().interpret(w, 0.25f, w);
  check_close(next, w * 1.25f, 1e-6);
  check_close(before, w, 0);
  CHECK(contains(softmax_kernel().program(x).to_string(), "kernel @softmax"));
}

TEST_CASE("what does not fit is refused by the kernel's name") {
  const auto square_of = square_kernel();
  CHECK(contains(message([&] { square_of(zeros({3}, int32)); }),
                 "[kernel square] argument 0 must be float32 with 1 axes, got int32 (3): convert it with astype"));
  CHECK(contains(message([&] {
                   square_of(zeros({3, 3}));
                 }),
                 "[kernel square] argument 0 must be float32 with 1 axes, got float32 (3,3)"));
  CHECK(message([&] { square_of(Arrays{}); }) == "[kernel square] takes 1 arrays, got 0");
  CHECK(message([&] { square_of(Arrays{zeros({3}), zeros({3})}); }) == "[kernel square] takes 1 arrays, got 2");
  const auto aimless = k::kernel("aimless", [](k::In<float, 1>, k::Out<float, 1>) {});
  CHECK(message([&] { aimless(zeros({3})); }) == "[kernel aimless] has no grid: give one by .grid");
  CHECK(contains(message([&] { aimless.grid({1})(zeros({3})); }), "nothing is ever stored there"));
  const auto other = k::kernel("other", [](k::In<float, 1>, k::Out<float, 2>) {}).grid({1});
  CHECK(message([&] { other(zeros({3})); }) ==
        "[kernel other] result 0 has 2 axes, its shape would be (3): give shapes by .outputs");
  const auto shapes = other.outputs([](const array&) { return std::vector<Shape>{{1, 1}, {2, 2}}; });
  CHECK(message([&] { shapes(zeros({3})); }) ==
        "[kernel other] has 1 results of its own (k::Out), but 2 shapes: give them by .outputs");
  const auto dynamic = compile([&](const Arrays& a) { return Arrays{square_of(a[0])}; },
                               {.dynamic = {{.argument = 0, .axis = 0, .name = "n", .bound = 64}}});
  CHECK(contains(message([&] { dynamic({zeros({3})}); }), "[kernel square] "));
  CHECK(contains(message([&] { dynamic({zeros({3})}); }), "extent(0) is its value, bound(0) the largest one"));
}

TEST_CASE("several threads may call one kernel") {
  const auto scale = scale_kernel();
  const array x = normal({64}, 1);
  eval(x);
  std::vector<std::thread> threads;
  std::vector<float> sums(4);
  for (size_t t = 0; t < sums.size(); ++t)
    threads.emplace_back([&, t] {
      for (int n = 0; n < 8; ++n)
        sums[t] = sum(scale.config({.by = 1.0f + static_cast<float>(n % 2)})(x)).item<float>();
    });
  for (std::thread& t : threads) t.join();
  for (const float s : sums) CHECK(s == sums[0]);
}

TEST_CASE("rows of a large result, which a CPU takes several at a time, have the bits of rows alone") {
  const auto softmax_of = k::kernel("rows", [](k::In<float, 2> x, k::Out<float, 2> y) {
                            const auto row = k::program_id(0);
                            const auto v = x(row, k::all).load();
                            const auto e = k::exp(v - k::max(v, 0));
                            y(row, k::all) = e / k::sum(e, 0);
                          }).grid([](auto x, auto) { return k::Grid{x.dim(0)}; });
  const int rows = 4099, columns = 1024;  // 16 MB and more: streaming stores
  const array x = reshape(sin(arange(static_cast<double>(rows) * columns)), {rows, columns});
  eval(x);
  const array all = softmax_of(x);
  eval(all);
  for (const int first : {0, 2000, rows - 20}) {
    const array own = softmax_of(slice(x, {first, 0}, {first + 20, columns}));
    CHECK(array_equal(slice(all, {first, 0}, {first + 20, columns}), own).item<bool>());
  }
}
