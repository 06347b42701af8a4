// custom_function: whose rules are used when; checkpoint: the same gradients and bits from less memory.
#include "support.h"

#include "models/gpt.h"
#include "transforms/traced.h"
#include "weft/compile.h"

using namespace weft;
using namespace weft::testing;

namespace {

// sin, whose derivative claims to be 10 times what it is.
ArrayFunction loud_sine() {
  return custom_vjp([](const Arrays& a) { return Arrays{sin(a[0])}; },
                    [](const Arrays& primals, const Arrays& cotangents, const Arrays& outputs) {
                      CHECK(outputs.size() == 1);
                      return Arrays{array(10.0, float64) * cotangents[0] * cos(primals[0])};
                    });
}

int64_t arena(const ArrayFunction& fun, const Arrays& arguments) {
  std::vector<graph::Type> types;
  for (const array& a : arguments) types.push_back(a.value().type());
  return transforms::trace_function(fun, types, {&random::default_key()}, true).program->stats().arena_bytes;
}

}  // namespace

TEST_CASE("a derivative of one's own is used, under every transform") {
  const array x = noise({4}, 1), slope = array(10.0, float64) * cos(x);
  const ArrayFunction f = loud_sine();
  const UnaryFunction total = [&](const array& a) { return sum(f({a})[0]); };
  check_close(f({x})[0], sin(x));
  check_close(grad(total)(x), slope);
  check_close(grad([&](const array& a) { return sum(vmap(f)({a})[0]); })(x), slope);
  check_close(vmap(grad(total))(expand_dims(x, 1)), expand_dims(slope, 1));
  check_close(vmap(vmap(grad(total)))(reshape(x, {2, 2, 1})), reshape(slope, {2, 2, 1}));
  check_close(compile(ArrayFunction([&](const Arrays& a) { return Arrays{grad(total)(a[0])}; }))({x})[0], slope);
  check_close(grad([&](const array& a) { return sum(compile(f)({a})[0]); })(x), slope);
  // The rule itself is differentiated: d/dx (10 cos x) = -10 sin x.
  check_close(grad([&](const array& a) { return sum(grad(total)(a)); })(x), array(-10.0, float64) * sin(x));
  check_close(jvp(grad(total), x, ones({4}, float64)).second, array(-10.0, float64) * sin(x));
  // Forward mode goes through the function, which has no jvp of its own.
  check_close(jvp(total, x, ones({4}, float64)).second, sum(cos(x)));
}

TEST_CASE("tangents and batches of one's own") {
  int maps = 0;
  const ArrayFunction f = custom_function(
      [](const Arrays& a) {
        return Arrays{a[0] * a[1], sum(a[0])};
      },
      std::nullopt,
      [](const Arrays& primals, const Arrays& tangents, const std::vector<int>& argnums) {
        array t = zeros_like(primals[0]);
        for (size_t k = 0; k < argnums.size(); ++k) t = t + array(100.0 + argnums[k], float64) * tangents[k];
        return Arrays{t, sum(t)};
      },
      [&maps](const Arrays& in, const std::vector<int>& axes) {
        ++maps;
        CHECK(axes == std::vector<int>{1, -1});
        return std::pair(Arrays{in[0] * expand_dims(in[1], 1), sum(in[0], 0)}, std::vector<int>{1, 0});
      });
  const array x = noise({3}, 1), y = noise({3}, 2), t = noise({3}, 3), u = noise({3}, 4);
  check_close(jvp(f, {x, y}, {t, u}).second[0], array(100.0, float64) * t + array(101.0, float64) * u);
  check_close(jvp([&](const array& b) { return f({x, b})[0]; }, y, u).second, array(101.0, float64) * u);
  check_close(grad([&](const array& a) { return sum(f({a, y})[0]); })(x), y);  // through the function
  const array batch = noise({3, 5}, 5);
  const Arrays r = vmap(f, {1, -1}, {1, 0})({batch, y});
  CHECK(maps == 1);
  check_close(r[0], batch * expand_dims(y, 1));
  check_close(r[1], sum(batch, 0));
}

TEST_CASE("what a custom function captures, and what its rules may not return") {
  const array w = noise({3}, 1), x = noise({3}, 2);
  const ArrayFunction plain = custom_function([&](const Arrays& a) { return Arrays{a[0] * w}; });
  check_close(grad([&](const array& a) { return sum(plain({a})[0]); })(x), w);
  // Captured arrays that are mapped or differentiated outside: the function sees them, a vjp of its own gives them
  // nothing.
  const auto scaled = [](const array& factor) {
    return custom_vjp([factor](const Arrays& a) { return Arrays{a[0] * factor}; },
                      [](const Arrays&, const Arrays& g, const Arrays&) { return Arrays{g[0]}; });
  };
  check_close(grad([&](const array& c) { return sum(scaled(c)({x})[0]); })(w), zeros({3}, float64));
  check_close(vmap(UnaryFunction([&](const array& c) { return scaled(c)({x})[0]; }))(noise({4, 3}, 3)),
              noise({4, 3}, 3) * x);
  // The function may read values, also where it is differentiated.
  const ArrayFunction looks =
      custom_vjp([](const Arrays& a) { return Arrays{a[0] * array(a[0].item<double>() > 0 ? 2.0 : 3.0, float64)}; },
                 [](const Arrays&, const Arrays& g, const Arrays&) { return Arrays{g[0] * array(7.0, float64)}; });
  check_close(grad([&](const array& a) { return looks({a})[0]; })(array(-1.0, float64)), array(7.0, float64));
  const auto wrong = custom_vjp([](const Arrays& a) { return Arrays{a[0]}; },
                                [](const Arrays&, const Arrays&, const Arrays&) { return Arrays{ones({2})}; });
  const auto none = custom_vjp([](const Arrays& a) { return Arrays{a[0]}; },
                               [](const Arrays&, const Arrays&, const Arrays&) { return Arrays{}; });
  CHECK(contains(message([&] { grad([&](const array& a) { return sum(wrong({a})[0]); })(x); }),
                 "[custom_function] the vjp returned float32 (2) for f64(3)"));
  CHECK(contains(message([&] { grad([&](const array& a) { return sum(none({a})[0]); })(x); }),
                 "[custom_function] the vjp returned 0 arrays, but 1 are needed"));
}

TEST_CASE("checkpoint changes no value and no gradient") {
  const array w = noise({4, 4}, 1), x = noise({3, 4}, 2);
  const ArrayFunction body = [&](const Arrays& a) {
    return Arrays{tanh(matmul(a[0], w)) * softmax(a[0], -1), sum(a[0])};
  };
  const auto loss = [&](const ArrayFunction& f) {
    return [&f](const array& a) {
      const Arrays once = f({a});
      return weighted(f({once[0]})[0]) + once[1];
    };
  };
  const ArrayFunction again = checkpoint(body);
  const UnaryFunction plain = loss(body), less = loss(again);
  check_close(less(x), plain(x), 0);
  check_close(grad(less)(x), grad(plain)(x), 1e-12);
  check_close(gradients(less(x), {w})[0], gradients(plain(x), {w})[0], 1e-12);  // of what it captures
  check_close(grad([&](const array& a) { return sum(square(grad(less)(a))); })(x),
              grad([&](const array& a) { return sum(square(grad(plain)(a))); })(x), 1e-10);
  check_close(jvp(grad(less), x, x).second, jvp(grad(plain), x, x).second, 1e-10);
  const array batch = noise({2, 3, 4}, 3);
  check_close(vmap(grad(less))(batch), vmap(grad(plain))(batch), 1e-12);
  check_close(grad([&](const array& a) { return sum(vmap(less)(a)); })(batch), vmap(grad(plain))(batch), 1e-12);
}

TEST_CASE("the recomputation draws the same random numbers") {
  const array x = ones({64});
  const ArrayFunction drop = [](const Arrays& a) {
    const array mask = astype(random::bernoulli(array(0.5f), a[0].shape()), float32);
    return Arrays{exp(a[0] * mask)};
  };
  const auto slope = [&](const ArrayFunction& f) {
    random::seed(7);
    return grad([&](const array& a) { return sum(f({a})[0]); })(x).to_vector<float>();
  };
  CHECK(slope(checkpoint(drop)) == slope(drop));
  const ArrayFunction step = compile(ArrayFunction([&](const Arrays& a) {
    return Arrays{grad([&](const array& b) { return sum(checkpoint(drop)({b})[0]); })(a[0])};
  }));
  random::seed(7);
  const Floats compiled = step({x})[0].to_vector<float>();
  CHECK(compiled == slope(drop));
  CHECK(step({x})[0].to_vector<float>() != step({x})[0].to_vector<float>());
}

TEST_CASE("checkpointed blocks lower the planned peak of a GPT step") {
  random::seed(1);
  models::Gpt model({.vocab = 64, .context = 64, .layers = 4, .heads = 4, .width = 64, .dropout = 0.1f});
  const auto step = nn::value_and_grad(model, [&](const Arrays& in) { return model.loss(in[0], in[1]); });
  const Arrays batch{astype(random::randint(array(0), array(64), {8, 64}, int32, random::key(1)), int32),
                     astype(random::randint(array(0), array(64), {8, 64}, int32, random::key(2)), int32)};
  const ArrayFunction fun = [&](const Arrays& in) {
    auto [loss, slopes] = step(in);
    slopes.insert(slopes.begin(), loss);
    return slopes;
  };
  const int64_t whole = arena(fun, batch);
  random::seed(5);
  const Arrays expected = compile(fun)(batch);
  model.checkpoint_blocks = true;
  const int64_t lowered = arena(fun, batch);
  random::seed(5);
  const Arrays given = compile(fun)(batch);
  MESSAGE("planned peak: " << whole << " bytes, with checkpoints " << lowered);
  CHECK(static_cast<double>(lowered) <= 0.7 * static_cast<double>(whole));
  REQUIRE(given.size() == expected.size());
  for (size_t k = 0; k < given.size(); ++k) check_close(given[k], expected[k], 2e-5);
}
