// Forward mode and whole Jacobians: against differences, against reverse mode, and each other.
#include "support.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Named {
  std::string name;
  UnaryFunction f;
};

// Functions of a (3,4) array; results of any shape.
std::vector<Named> functions() {
  const array w = noise({4, 3}, 50), rows({2, 0, 2, -1}, {2, 2});
  const array one(1.0, float64);
  return {
      {"elementwise", [](const array& x) { return exp(sin(x)) * x + tanh(x) / (square(x) + array(1.0, float64)); }},
      {"matmul", [w](const array& x) { return matmul(tanh(matmul(x, w)), transpose(w)); }},
      {"batched matmul",
       [](const array& x) {
         return matmul(reshape(x, {3, 2, 2}), swapaxes(reshape(x, {3, 2, 2}), 1, 2));
       }},
      {"softmax", [](const array& x) { return softmax(x * x, -1); }},
      {"logsumexp", [](const array& x) { return logsumexp(x, 0); }},
      {"layer_norm", [](const array& x) { return fast::layer_norm(x, sum(x, 0), std::nullopt, 1e-5f); }},
      {"gelu", [](const array& x) { return fast::gelu(x) + fast::gelu_tanh(x); }},
      {"cross_entropy",
       [](const array& x) {
         return fast::cross_entropy(x, array({1, 3, 0}));
       }},
      {"attention with sinks",
       [](const array& x) {
         return fast::scaled_dot_product_attention(reshape(x, {1, 2, 3, 2}), reshape(x, {1, 2, 3, 2}),
                                                   reshape(sin(x), {1, 2, 3, 2}), 0.6f, "", std::nullopt,
                                                   slice(reshape(x, {12}), {0}, {2}));
       }},
      {"attention",
       [](const array& x) {
         return fast::scaled_dot_product_attention(reshape(x, {1, 2, 3, 2}), reshape(x, {1, 2, 3, 2}),
                                                   reshape(sin(x), {1, 2, 3, 2}), 0.6f, "causal");
       }},
      {"indexing",
       [rows](const array& x) {
         return take(x, rows, 0) * take(sin(x), array({0, 0}), 0);
       }},
      {"scatter",
       [](const array& x) {
         return scatter_add(x * x, {array({1, 1})}, reshape(slice(sin(x), {0, 0}, {2, 4}), {2, 1, 4}), {0});
       }},
      {"movement",
       [one](const array& x) {
         return concatenate({slice(x, {2, 0}, {-4, 4}, {-1, 2}) * one,
                             pad(slice(x, {0, 1}, {2, 3}), {{1, 0}, {0, 0}}, array(2.0, float64))},
                            0);
       }},
      {"reductions", [](const array& x) { return max(x, 1) + var(x, {1}, false, 0) + prod(x, {1}) + min(x, 1); }},
      {"where", [](const array& x) { return where(x > array(0.0, float64), x * x * x, sin(x)); }},
      {"integer between",
       [](const array& x) { return x * astype(floor(x), float64) + astype(argmax(x, 1, true), float64) * x; }},
  };
}

}  // namespace

TEST_CASE("jvp agrees with differences") {
  const array x = noise({3, 4}, 1), t = noise({3, 4}, 2);
  for (const Named& n : functions()) {
    CAPTURE(n.name);
    const auto [value, tangent] = jvp(n.f, x, t);
    check_close(value, n.f(x));
    check_close(tangent, difference(n.f, x, t), 1e-7);
  }
}

TEST_CASE("jacfwd and jacrev are one matrix") {
  const array x = noise({3, 4}, 3), t = noise({3, 4}, 4);
  for (const Named& n : functions()) {
    CAPTURE(n.name);
    const array forward = jacfwd(n.f)(x), reverse = jacrev(n.f)(x);
    check_close(forward, reverse, 1e-9);
    const array product = sum(forward * t, {-2, -1});
    check_close(product, jvp(n.f, x, t).second, 1e-9);
  }
}

TEST_CASE("hessians by differences of gradients") {
  const array x = noise({3, 4}, 5, 0.7), t = noise({3, 4}, 6);
  for (const Named& n : functions()) {
    CAPTURE(n.name);
    const UnaryFunction f = [&](const array& a) { return weighted(n.f(a)); };
    const array h = hessian(f)(x);
    REQUIRE(h.shape() == Shape{3, 4, 3, 4});
    check_close(sum(h * t, {-2, -1}), difference(grad(f), x, t), 1e-6);
    check_close(h, transpose(h, {2, 3, 0, 1}), 1e-8);
  }
}

TEST_CASE("modes compose in any order, to third derivatives") {
  const array x = noise({3, 4}, 7, 0.7), t = noise({3, 4}, 8), u = noise({3, 4}, 9);
  const std::vector<Named> all = functions();
  for (size_t k = 0; k < all.size(); k += 2) {  // every second one: each takes a dozen programs
    const Named& n = all[k];
    CAPTURE(n.name);
    const UnaryFunction f = [&](const array& a) { return weighted(n.f(a)); };
    const UnaryFunction along = [&](const array& a) { return jvp(f, a, t).second; };  // t·∇f
    const UnaryFunction reverse_over_forward = grad(along);                           // ∇²f t
    const UnaryFunction forward_over_reverse = [&](const array& a) { return jvp(grad(f), a, t).second; };
    const UnaryFunction reverse_over_reverse = [&](const array& a) { return vjp(grad(f), a, t).second; };
    const UnaryFunction forward_over_forward = [&](const array& a) { return jvp(along, a, u).second; };  // u·∇²f t
    const array expected = difference(grad(f), x, t);
    check_close(reverse_over_forward(x), expected, 1e-6);
    check_close(forward_over_reverse(x), expected, 1e-6);
    check_close(reverse_over_reverse(x), expected, 1e-6);
    check_close(forward_over_forward(x), sum(expected * u), 1e-6);
    // Third: the derivative of each along u.
    const array third = difference(reverse_over_reverse, x, u);
    check_close(jvp(reverse_over_reverse, x, u).second, third, 1e-5);
    check_close(vjp(reverse_over_forward, x, u).second, third, 1e-5);
    check_close(jvp(forward_over_reverse, x, u).second, third, 1e-5);
    check_close(grad(forward_over_forward)(x), third, 1e-5);
  }
}

TEST_CASE("functions of several arrays") {
  const ScalarFunction f = [](const Arrays& a) { return sum(matmul(a[0], a[1]) * a[2]); };
  const Arrays at{noise({2, 3}, 1), noise({3, 2}, 2), noise({2}, 3)};
  const auto h = hessian(f, {0, -1})(at);
  REQUIRE(h.size() == 2);
  CHECK(h[0][0].shape() == Shape{2, 3, 2, 3});
  CHECK(h[0][1].shape() == Shape{2, 3, 2});
  CHECK(h[1][0].shape() == Shape{2, 2, 3});
  check_close(h[0][0], zeros({2, 3, 2, 3}, float64));
  check_close(h[0][1], transpose(h[1][0], {1, 2, 0}));
  const ArrayFunction g = [](const Arrays& a) { return Arrays{a[0] * a[1], sum(a[1])}; };
  const Arrays xy{array({1.0f, 2.0f}), array({3.0f, 4.0f})};
  const auto j = jacfwd(g, {0, 1})(xy), k = jacrev(g, {0, 1})(xy);
  CHECK(j[0][0].to_vector<float>() == Floats{3, 0, 0, 4});
  CHECK(j[0][1].to_vector<float>() == Floats{1, 0, 0, 2});
  CHECK(j[1][0].to_vector<float>() == Floats{0, 0});
  CHECK(j[1][1].to_vector<float>() == Floats{1, 1});
  for (size_t a : {0u, 1u})
    for (size_t b : {0u, 1u}) check_close(j[a][b], k[a][b]);
  const auto [values, tangents] = jvp(g, xy, {array({1.0f, 0.0f}), array({0.0f, 1.0f})});
  CHECK(values[0].to_vector<float>() == Floats{3, 8});
  CHECK(tangents[0].to_vector<float>() == Floats{3, 2});
  CHECK(tangents[1].item<float>() == 1);
}

TEST_CASE("tangents of integers are integers; of what is discrete, zeros of its dtype") {
  const ArrayFunction f = [](const Arrays& a) {
    return Arrays{astype(a[0] * 2.0f, int32), a[0] * astype(a[1], float32), floor(a[1]), argsort(a[0])};
  };
  const auto [values, tangents] = jvp(f, {array({1.5f, 2.5f}), array({2, 3})}, {ones({2}), array({1, 1})});
  CHECK(tangents[0].dtype() == int32);
  CHECK(tangents[0].to_vector<int>() == std::vector<int>{2, 2});
  CHECK(tangents[1].to_vector<float>() == Floats{3.5f, 5.5f});
  CHECK(tangents[2].to_vector<int>() == std::vector<int>{0, 0});
  CHECK(tangents[3].dtype() == uint32);
  CHECK(tangents[3].to_vector<uint32_t>() == std::vector<uint32_t>{0, 0});
}

TEST_CASE("jvp: what is refused") {
  const UnaryFunction f = [](const array& x) { return x * x; };
  CHECK(contains(message([&] { jvp(f, array(1.0f), ones({2})); }),
                 "[jvp] tangent 0, float32 (2), must have the shape of its primal"));
  CHECK(contains(message([&] { jvp([](const Arrays& a) { return a; }, Arrays{array(1.0f)}, Arrays{}); }),
                 "[jvp] 1 primals, but 0 tangents"));
  CHECK(contains(message([&] { jacrev([](const array& x) { return astype(x, int32); })(array(1.0f)); }),
                 "[jacrev] result 0 must be of a floating type"));
  CHECK(contains(message([&] { jacfwd(f)(array(1)); }), "[jacfwd] argument 0 must be of a floating type"));
  // An index has no direction, whatever is made of it on the way; MLX refuses it too. Captured, or behind
  // stop_gradient, it is a constant.
  const array x = ones({3, 4}), at = zeros({2}, int32), along = zeros({3, 4}, int32);
  const auto refused = [&](const ArrayFunction& g, const array& index) {
    CHECK_THROWS_AS(jvp(g, {x, index}, {x, index}), std::invalid_argument);
  };
  refused([](const Arrays& a) { return Arrays{take(a[0], a[1], 0)}; }, at);
  refused([](const Arrays& a) { return Arrays{take(a[0], a[1] + 1, 0) * 2.0f}; }, at);
  refused([](const Arrays& a) { return Arrays{take_along_axis(a[0], a[1], 0)}; }, along);
  refused([](const Arrays& a) { return Arrays{put_along_axis(a[0], a[1], array(1.0f), 0)}; }, along);
  refused([](const Arrays& a) { return Arrays{gather(a[0], a[1], 0, {1, 4})}; }, at);
  CHECK(jvp([](const Arrays& a) { return Arrays{take(a[0], stop_gradient(a[1]), 0)}; }, {x, at}, {x, at})
            .second[0]
            .shape() == Shape{2, 4});
  CHECK(
      jvp([&](const Arrays& a) { return Arrays{take(a[0], at, 0) + sum(a[1])}; }, {x, at}, {x, at}).second[0].shape() ==
      Shape{2, 4});
}
