// One program for every length of a dynamic axis: the same results as programs for that very length.
#include "support.h"

#include "runtime/trace.h"
#include "weft/compile.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Named {
  std::string name;
  ArrayFunction f;  // of x (n, 4) float32 and ids (n) int32
};

array sums(const array& y) { return sum(y * y, false); }

// Differentiable in x.
std::vector<Named> functions() {
  const array w = reshape(astype(noise({24}, 1), float32), {4, 6}),
              table = reshape(astype(noise({20}, 2), float32), {5, 4});
  const auto of_x = [](UnaryFunction f) { return ArrayFunction([f](const Arrays& a) { return Arrays{f(a[0])}; }); };
  return {
      {"elementwise", of_x([](const array& x) { return exp(sin(x)) * x; })},
      {"softmax along", of_x([](const array& x) { return softmax(x, 0); })},
      {"softmax across", of_x([](const array& x) { return softmax(x, 1); })},
      {"logsumexp", of_x([](const array& x) { return logsumexp(x, 0); })},
      {"layer_norm", of_x([](const array& x) { return fast::layer_norm(x, std::nullopt, std::nullopt, 1e-5f); })},
      {"all of it", of_x([](const array& x) { return reshape(sum(x) + max(cumsum(x, 0)), {1}); })},
      {"all of several axes", of_x([](const array& x) {
         const array y = stack({x, x * 2.0f, exp(x)}, 0);  // (3, n, 4)
         return sum(transpose(y, {0, 2, 1}), {0, 1, 2}, true) + sum(y, {0, 1}, true) + max(y, {1, 2}, true);
       })},
      {"sums and products", of_x([](const array& x) { return sum(x, 0) + max(x, 0) + min(x, 0); })},
      {"moments", of_x([](const array& x) {
         return mean(x, 0) * var(x, 0) + mean(x) + var(x, {0, 1}, true);
       })},
      {"matmul", of_x([w](const array& x) { return matmul(tanh(matmul(x, w)), transpose(w)); })},
      {"matmul over the length", of_x([](const array& x) { return matmul(transpose(x), x); })},
      {"matmul of the length", of_x([](const array& x) { return matmul(x, transpose(x)); })},
      {"attention", of_x([](const array& x) {
         const array q = reshape(x, {1, 1, x.shape(0), 4});
         return fast::scaled_dot_product_attention(q, q * 2.0f, q, 0.5f, "causal");
       })},
      {"movement", of_x([](const array& x) {
         return transpose(concatenate({x, slice(x, {0, 1}, {x.shape(0), 3})}, 1));
       })},
      {"columns", of_x([](const array& x) {
         return take(x, array({3, 0, 0}), 1);
       })},
      {"rows of a table", [table](const Arrays& a) { return Arrays{take(table, a[1], 0) * a[0]}; }},
      {"places along the length",
       [](const Arrays& a) { return Arrays{take(a[0], a[1] * 3 - 5, 0)}; }},  // some before the start and after the end
      {"sorted by a column", of_x([](const array& x) {
         return take_along_axis(x, astype(x * 20.0f, int32), 0) * take_along_axis(x, astype(x * 2.0f, int32), 1);
       })},
      {"one row from the end", of_x([](const array& x) {
         return take(x, array({-1, -70, 70}), 0) + take(x, astype(array({0, 63, 64}), uint64), 0);
       })},
      {"put along the length",
       [](const Arrays& a) {
         return Arrays{put_along_axis(a[0], expand_dims(a[1] - 2, 1), sum(a[0], 1, true) * 2.0f, 1) +
                       scatter_add(a[0], {a[1] - 2}, expand_dims(a[0] * a[0], 1), {0})};
       }},
      {"where", of_x([](const array& x) { return where(x > array(0.0f), x * x, -x); })},
  };
}

Arrays arguments(int n) {
  return {astype(noise({n, 4}, static_cast<uint64_t>(n)), float32),
          random::randint(array(0), array(5), {n}, int32, random::key(static_cast<uint64_t>(n)))};
}

void check_equal(const Arrays& given, const Arrays& expected, double tolerance) {
  REQUIRE(given.size() == expected.size());
  for (size_t k = 0; k < given.size(); ++k) check_close(given[k], expected[k], tolerance);
}

}  // namespace

TEST_CASE("every length 1 to 64 by one program") {
  const ArrayFunction f = [](const Arrays& a) {
    const array h = fast::gelu_tanh(a[0] * 0.5f);
    return Arrays{softmax(matmul(h, transpose(a[0])), -1), sum(h, 0)};
  };
  const ArrayFunction one = compile(f, {.dynamic = {{0, 0, "n", 64}}});
  one({arguments(64)[0]});
  const int64_t traces = runtime::counters().traces;
  for (int n = 1; n <= 64; ++n) {
    CAPTURE(n);
    const Arrays x{arguments(n)[0]};
    check_equal(one(x), f(x), 2e-6);
  }
  CHECK(runtime::counters().traces == traces);
}

TEST_CASE("lengths: values and gradients of many functions") {
  for (const Named& n : functions()) {
    CAPTURE(n.name);
    const ArrayFunction both = [&](const Arrays& a) {
      const UnaryFunction total = [&](const array& x) { return sums(n.f({x, a[1]})[0]); };
      return Arrays{n.f(a)[0], grad(total)(a[0])};
    };
    const ArrayFunction one = compile(both, {.dynamic = {{0, 0, "n", 64}, {1, 0, "n", 64}}});
    for (int length : {1, 7, 64}) {
      CAPTURE(length);
      check_equal(one(arguments(length)), both(arguments(length)), 1e-4);
    }
  }
}

TEST_CASE("gradients through a slice of symbolic length") {
  const array table = astype(noise({64, 4}, 3), float32);
  const auto loss = [](const array& t, const array& x) { return sums(slice(t, {0, 0}, {x.shape(0), 4}) * x); };
  const ArrayFunction f = [&](const Arrays& a) {
    return Arrays{grad([&](const array& t) { return loss(t, a[0]); })(table)};
  };
  const ArrayFunction one = compile(f, {.dynamic = {{0, 0, "n", 64}}});
  for (int n : {1, 5, 64}) {
    CAPTURE(n);
    const Arrays x{arguments(n)[0]};
    check_equal(one(x), f(x), 1e-5);
  }
}

TEST_CASE("sorts along a symbolic length are refused when they are compiled") {
  const auto sorted = [](int axis) {
    return compile([axis](const Arrays& a) { return Arrays{sort(a[0], axis)}; }, {.dynamic = {{0, 0, "n", 64}}});
  };
  CHECK_THROWS_WITH_AS(sorted(0)({ones({5, 3})}), doctest::Contains("[sort] axis 0"), std::invalid_argument);
  const array x = astype(noise({5, 3}, 4), float32);
  check_equal(sorted(1)({x}), Arrays{sort(x, 1)}, 0);
}

TEST_CASE("compile can be switched off") {
  int calls = 0;
  array state(0.0f);
  const ArrayFunction f = compile(ArrayFunction([&](const Arrays& a) {
                                    ++calls;
                                    state = state + a[0];
                                    return Arrays{a[0] * 2.0f};
                                  }),
                                  {.state = {&state}});
  disable_compile();
  for (float x : {1.0f, 2.0f, 3.0f}) CHECK(f({array(x)})[0].item<float>() == 2 * x);
  CHECK(calls == 3);
  enable_compile();
  for (float x : {1.0f, 2.0f, 3.0f}) CHECK(f({array(x)})[0].item<float>() == 2 * x);
  CHECK(calls == 4);
  CHECK(state.item<float>() == 12);
}
