// Gradients of user-level functions against central differences in float64, higher orders, and what gradients do at the
// edges.
#include <sstream>

#include "support.h"

using namespace weft;
using namespace weft::testing;

namespace {

// The gradient of f in every argument, element by element.
void check_gradients(const ScalarFunction& f, const Arrays& arguments, double tolerance = 1e-6) {
  std::vector<int> argnums;
  for (size_t k = 0; k < arguments.size(); ++k) argnums.push_back(static_cast<int>(k));
  const Arrays gradients = grad(f, argnums)(arguments);
  for (size_t k = 0; k < arguments.size(); ++k) {
    REQUIRE(gradients[k].shape() == arguments[k].shape());
    REQUIRE(gradients[k].dtype() == arguments[k].dtype());
    const std::vector<double> g = gradients[k].to_vector<double>(), x = arguments[k].to_vector<double>();
    for (size_t i = 0; i < x.size(); ++i) {
      const double h = 1e-5;
      const auto value = [&](double shift) {
        std::vector<double> moved = x;
        moved[i] += shift;
        Arrays a = arguments;
        a[k] = array(moved.begin(), arguments[k].shape(), float64);
        return f(a).item<double>();
      };
      const double numeric = (value(h) - value(-h)) / (2 * h);
      CAPTURE(k);
      CAPTURE(i);
      CHECK(std::abs(g[i] - numeric) <= tolerance * (1 + std::abs(numeric)));
    }
  }
}

}  // namespace

TEST_CASE("a chain of products and activations") {
  check_gradients([](const Arrays& a) { return weighted(matmul(tanh(matmul(a[0], a[1]) + a[2]), a[3])); },
                  {noise({2, 3}, 1), noise({3, 4}, 2), noise({4}, 3), noise({4, 2}, 4)});
  check_gradients([](const Arrays& a) { return weighted(matmul(a[0], a[1])); },
                  {noise({2, 2, 3}, 5), noise({3, 2}, 6)});
  check_gradients([](const Arrays& a) { return weighted(matmul(a[0], a[1])); },
                  {noise({2, 1, 2, 3}, 7), noise({2, 3, 2}, 8)});
  check_gradients([](const Arrays& a) { return weighted(matmul(a[0], a[1])); }, {noise({3}, 9), noise({2, 3, 2}, 10)});
  check_gradients([](const Arrays& a) { return weighted(matmul(a[0], a[1])); },
                  {noise({2, 3}, 9), noise({2, 3, 2}, 10)});
  check_gradients([](const Arrays& a) { return inner(a[0], a[0]); }, {noise({4}, 11)});
}

TEST_CASE("softmax, norms, losses, attention") {
  check_gradients([](const Arrays& a) { return weighted(softmax(a[0], -1)); }, {noise({3, 4}, 1)});
  check_gradients([](const Arrays& a) { return weighted(logsumexp(a[0], 0)); }, {noise({3, 4}, 2)});
  check_gradients([](const Arrays& a) { return weighted(fast::layer_norm(a[0], a[1], a[2], 1e-5f)); },
                  {noise({3, 5}, 3), noise({5}, 4), noise({5}, 5)}, 1e-5);
  const array targets = {2, 0, 3};
  check_gradients([&](const Arrays& a) { return mean(fast::cross_entropy(a[0], targets)); }, {noise({3, 4}, 6)});
  check_gradients(
      [](const Arrays& a) { return weighted(fast::scaled_dot_product_attention(a[0], a[1], a[2], 0.6f, "causal")); },
      {noise({1, 2, 3, 2}, 7), noise({1, 2, 3, 2}, 8), noise({1, 2, 3, 2}, 9)}, 1e-5);
  check_gradients(
      [](const Arrays& a) {
        return weighted(fast::scaled_dot_product_attention(a[0], a[1], a[2], 0.6f, "array", a[3]));
      },
      {noise({1, 2, 2, 2}, 7), noise({1, 1, 3, 2}, 8), noise({1, 1, 3, 2}, 9), noise({1, 2, 2, 3}, 10)}, 1e-5);
  const Arrays with_sinks{noise({2, 4, 3, 2}, 7), noise({2, 2, 5, 2}, 8), noise({2, 2, 5, 3}, 9), noise({4}, 10)};
  check_gradients(
      [](const Arrays& a) {
        return weighted(fast::scaled_dot_product_attention(a[0], a[1], a[2], 0.6f, "causal", std::nullopt, a[3]));
      },
      with_sinks, 1e-5);
  check_gradients(
      [](const Arrays& a) {
        return weighted(fast::scaled_dot_product_attention(a[0], a[1], a[2], 0.6f, "", a[4], a[3]));
      },
      {with_sinks[0], with_sinks[1], with_sinks[2], with_sinks[3], noise({4, 1, 5}, 11)}, 1e-5);
  const array key = random::key(3);
  check_gradients(
      [&](const Arrays& a) {
        return weighted(
            fast::dropout_attention(a[0], a[1], a[2], 0.6f, 0.4f, "array", broadcast_to(a[3], {2, 4, 3, 5}), key));
      },
      {with_sinks[0], with_sinks[1], with_sinks[2], noise({4, 1, 5}, 11)}, 1e-5);
  check_gradients(
      [&](const Arrays& a) {
        const ScalarFunction f = [&](const Arrays& b) {
          return weighted(fast::dropout_attention(b[0], b[1], b[1], 0.6f, 0.4f, "causal", std::nullopt, key));
        };
        const Arrays g = grad(f, {0, 1})(a);
        return weighted(g[0]) + weighted(g[1]);
      },
      {noise({1, 2, 3, 2}, 12), noise({1, 1, 3, 2}, 13)}, 1e-4);
  // The second derivative asks for the logsumexp's cotangent.
  check_gradients(
      [](const Arrays& a) {
        const ScalarFunction f = [](const Arrays& b) {
          return weighted(fast::scaled_dot_product_attention(b[0], b[1], b[1], 0.6f, "", std::nullopt, b[2]));
        };
        const Arrays g = grad(f, {0, 1, 2})(a);
        return weighted(g[0]) + weighted(g[1]) + weighted(g[2]);
      },
      {noise({1, 2, 2, 2}, 12), noise({1, 1, 3, 2}, 13), noise({2}, 14)}, 1e-4);
  check_gradients([](const Arrays& a) { return weighted(fast::rms_norm(a[0], a[1], 1e-5f)); },
                  {noise({3, 5}, 3), noise({5}, 4)}, 1e-5);
  check_gradients([](const Arrays& a) { return weighted(fast::gelu(a[0]) + fast::gelu_tanh(a[0])); }, {noise({6}, 11)},
                  1e-5);
}

TEST_CASE("indexing, movement, reductions") {
  const array rows({1, 0, 1, -1}, {2, 2});
  check_gradients([&](const Arrays& a) { return weighted(take(a[0], rows, 0)); }, {noise({3, 2}, 1)});
  check_gradients(
      [&](const Arrays& a) {
        return weighted(take_along_axis(a[0], array({1, 1, 0}, {3, 1}), 1));
      },
      {noise({3, 2}, 2)});
  check_gradients(
      [&](const Arrays& a) {
        return weighted(scatter_add(a[0], {array({1, 1})}, a[1], {0}));
      },
      {noise({3, 2}, 3), noise({2, 1, 2}, 4)});
  check_gradients(
      [&](const Arrays& a) {
        return weighted(slice_update(a[0], a[1], Shape{1, 0}, Shape{3, 1}));
      },
      {noise({3, 2}, 5), noise({2, 1}, 6)});
  check_gradients(
      [&](const Arrays& a) {
        return weighted(slice_update(a[0], a[1], array({1, 0}), {0, 1}));
      },
      {noise({3, 2}, 5), noise({2, 1}, 6)});
  check_gradients(
      [](const Arrays& a) {
        return weighted(concatenate({slice(a[0], {-1, 0}, {-4, 1}, {-2, 1}), a[0]}, 0) * array(2.0, float64));
      },
      {noise({3, 1}, 7)});
  check_gradients([](const Arrays& a) { return weighted(tril(transpose(a[0])) + array(1.0, float64)); },
                  {noise({3, 3}, 8)});
  check_gradients([](const Arrays& a) { return weighted(var(a[0], {1}, false, 1)) + weighted(mean(a[0], 0)); },
                  {noise({3, 4}, 9)});
  check_gradients(
      [](const Arrays& a) { return weighted(max(a[0], 0)) + weighted(min(a[0], 1)) + weighted(prod(a[0], {0})); },
      {noise({3, 4}, 10)});
  check_gradients([](const Arrays& a) { return weighted(where(a[0] > array(0.0, float64), a[0] * a[0], a[1])); },
                  {noise({6}, 11), noise({6}, 12)});
  check_gradients(
      [](const Arrays& a) {
        return weighted(pad(repeat(tile(a[0], {2, 1}), 2, 1), {{1, 0}, {0, 1}}, array(3.0, float64)));
      },
      {noise({2, 2}, 13)});
}

TEST_CASE("elementwise functions") {
  const array positive = abs(noise({5}, 1)) + array(0.5, float64);
  check_gradients([](const Arrays& a) { return weighted(log(a[0]) + sqrt(a[0]) + rsqrt(a[0]) + reciprocal(a[0])); },
                  {positive});
  check_gradients([](const Arrays& a) { return weighted(power(a[0], a[1])); }, {positive, noise({5}, 2)});
  check_gradients(
      [](const Arrays& a) { return weighted(exp(a[0]) + sin(a[0]) * cos(a[0]) + sigmoid(a[0]) + erf(a[0])); },
      {noise({5}, 3)});
  check_gradients([](const Arrays& a) { return weighted(a[0] / a[1] - a[1] * square(a[0])); },
                  {noise({5}, 4), positive});
  check_gradients(
      [](const Arrays& a) { return weighted(clip(a[0], array(-0.5, float64), array(0.5, float64)) + abs(a[0])); },
      {noise({6}, 5)});
  check_gradients([](const Arrays& a) { return weighted(erfinv(a[0])); }, {noise({4}, 6) * array(0.2, float64)}, 1e-5);
}

TEST_CASE("second derivatives") {
  const auto cube = [](const array& x) { return x * x * x; };
  CHECK(grad(grad(cube))(array(2.0f)).item<float>() == doctest::Approx(12));
  CHECK(grad(grad(grad(cube)))(array(2.0f)).item<float>() == doctest::Approx(6));
  const auto nested = [](const Arrays& a) {
    const ScalarFunction f = [](const Arrays& b) { return weighted(softmax(matmul(tanh(b[0]), b[0]), -1)); };
    return weighted(grad(f, {0})({a[0]})[0]);
  };
  check_gradients(nested, {noise({2, 2}, 1)}, 1e-5);
  const auto norm = [](const Arrays& a) {
    const ScalarFunction f = [](const Arrays& b) {
      return weighted(fast::layer_norm(b[0], b[1], std::nullopt, 1e-5f));
    };
    return weighted(grad(f, {0})({a[0], a[1]})[0]);
  };
  check_gradients(norm, {noise({2, 3}, 2), noise({3}, 3)}, 1e-4);
  // A gradient inside of a function that is differentiated, with the outer argument captured.
  const auto outer = [](const array& x) {
    return grad([&](const array& y) { return x * x * y * y; })(x);  // 2 x² y at y = x
  };
  CHECK(grad(outer)(array(3.0f)).item<float>() == doctest::Approx(54));
}

TEST_CASE("scattered factors that are zero, to third derivatives") {
  const array at({0, 2, 0, -1, 0, 9});  // the last one is dropped
  const ScalarFunction single = [&](const Arrays& a) {
    return weighted(scatter_prod(a[0], {at}, reshape(a[1], {6, 1}), {0}));
  };
  const ScalarFunction overlapping = [](const Arrays& a) {
    return weighted(scatter_prod(a[0], {array({0, 1, 1})}, reshape(a[1], {3, 2}), {0}));
  };
  const auto slopes = [](const ScalarFunction& f) {
    return ScalarFunction([f](const Arrays& a) {
      const Arrays g = grad(f, {0, 1})({a[0], a[1]});
      return weighted(concatenate({g[0], g[1]}));
    });
  };
  const array v({2.0f, 5.0f, 0.0f, 3.0f}, float64), t = noise({6}, 3);
  for (const std::vector<float>& factors :
       {std::vector<float>{0, 2, 0, 3, 0.5, 7}, std::vector<float>(6, 0.0f), std::vector<float>{1.5, 0, 0, -2, 4, 0}}) {
    const array u(factors.begin(), {6}, float64);
    for (const ScalarFunction& f : {single, overlapping}) {
      check_gradients(f, {v, u});
      check_gradients(slopes(f), {v, u});
      check_gradients(slopes(slopes(f)), {v, u});
      const UnaryFunction slope = [&](const array& x) { return grad(f, {1})({v, x})[0]; };
      const UnaryFunction curved = [&](const array& x) { return vjp(slope, x, t).second; };
      CHECK(allclose(jvp(slope, u, t).second, curved(u), 1e-12, 1e-12).item<bool>());  // a Hessian is symmetric
      CHECK(allclose(take(vmap(curved)(stack({u, u + t})), 1, 0), curved(u + t), 1e-12, 1e-12).item<bool>());
    }
  }
}

TEST_CASE("the same array twice is two arguments; a captured one is none") {
  const array x = {2.0f, 3.0f};
  const Arrays g = grad([](const Arrays& a) { return sum(a[0] * a[0] * a[1]); }, {0, 1})({x, x});
  CHECK(g[0].to_vector<float>() == std::vector<float>{8, 18});
  CHECK(g[1].to_vector<float>() == std::vector<float>{4, 9});
  const array h = grad([&](const array& a) { return sum(a * x); })(x);
  CHECK(h.to_vector<float>() == std::vector<float>{2, 3});
  const array pending = x * 2.0f;
  CHECK(grad([&](const array& a) { return sum(a * pending); })(pending).to_vector<float>() == std::vector<float>{4, 6});
}

TEST_CASE("zeros where nothing flows") {
  const array x = {1.0f, 2.0f};
  CHECK(grad([](const Arrays& a) { return sum(a[0]); }, {1})({x, x})[0].to_vector<float>() == std::vector<float>{0, 0});
  CHECK(grad([](const array& a) { return sum(stop_gradient(a) * a); })(x).to_vector<float>() ==
        std::vector<float>{1, 2});
  CHECK(grad([](const array& a) { return sum(floor(a)); })(x).to_vector<float>() == std::vector<float>{0, 0});
  CHECK(gradients(sum(x), {x, ones({3})})[1].to_vector<float>() == std::vector<float>{0, 0, 0});
}

TEST_CASE("value_and_grad carries further results along") {
  const ArrayFunction f = [](const Arrays& a) { return Arrays{sum(a[0] * a[1]), a[0] + a[1]}; };
  const auto [values, g] = value_and_grad(f, {-1})({array({1.0f, 2.0f}), array({3.0f, 4.0f})});
  CHECK(values.size() == 2);
  CHECK(values[0].item<float>() == 11);
  CHECK(values[1].to_vector<float>() == std::vector<float>{4, 6});
  CHECK(g[0].to_vector<float>() == std::vector<float>{1, 2});
  const auto [value, slope] = value_and_grad([](const array& a) { return square(a); })(array(3.0f));
  CHECK(value.item<float>() == 9);
  CHECK(slope.item<float>() == 6);
}

TEST_CASE("vjp: any results, any cotangents") {
  const array x = {1.0f, 2.0f};
  const auto [values, products] = vjp(
      [](const Arrays& a) {
        return Arrays{a[0] * a[0], sum(a[0])};
      },
      {x}, {array({1.0f, 10.0f}), array(5.0f)});
  CHECK(values[0].to_vector<float>() == std::vector<float>{1, 4});
  CHECK(products[0].to_vector<float>() == std::vector<float>{7, 45});
}

TEST_CASE("gradients by identity: leaves, and values on the way") {
  const array w = {1.0f, 2.0f};
  const array hidden = w * 3.0f;
  const array loss = sum(hidden * hidden);
  const Arrays g = gradients(loss, {w, hidden, loss});
  CHECK(g[0].to_vector<float>() == std::vector<float>{18, 36});
  CHECK(g[1].to_vector<float>() == std::vector<float>{6, 12});
  CHECK(g[2].item<float>() == 1);
  loss.eval();
  CHECK(message([&] { gradients(loss, {w}); }).find("[gradients] the scalar has been evaluated") != std::string::npos);
}

TEST_CASE("half types keep their dtype") {
  const array x = array({1.0f, 2.0f}, bfloat16);
  const array g = grad([](const array& a) { return sum(square(a)); })(x);
  CHECK(g.dtype() == bfloat16);
  CHECK(g.to_vector<float>() == std::vector<float>{2, 4});
}

TEST_CASE("a value that is looked at inside a gradient still has one") {
  std::ostringstream log;
  const auto f = [&](const array& a) {
    const array y = a * a;
    log << y << y.item<float>();
    y.eval();
    return y * a;
  };
  CHECK(grad(f)(array(2.0f)).item<float>() == doctest::Approx(12));
  CHECK(log.str() == "array(4, dtype=float32)4");
}

TEST_CASE("what has no gradient is refused") {
  const array x = {1.0f, 2.0f};
  const auto contains = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  CHECK(contains(message([&] { grad([](const array& a) { return a * a; })(x); }),
                 "[grad] the function must return a scalar"));
  CHECK(contains(message([&] {
                   jacrev([](const array& a) { return a * a; })(array({1, 2}));
                 }),
                 "[jacrev] argument 0 must be of a floating type"));
  CHECK(contains(message([&] { grad([](const Arrays& a) { return sum(a[0]); }, {1})({x}); }),
                 "[grad] argument 1 was asked for"));
  CHECK(contains(message([&] { grad([](const Arrays& a) { return sum(a[0]); }, {0, 0})({x}); }), "twice"));
  CHECK(contains(message([&] { vjp([](const Arrays& a) { return Arrays{a[0]}; }, {x}, {}); }), "[vjp]"));
  CHECK(contains(message([&] { vjp([](const Arrays& a) { return Arrays{a[0]}; }, {x}, {array(1.0f)}); }), "shape"));
}
