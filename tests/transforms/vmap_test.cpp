// vmap against a loop over the batch: axes, nesting, random numbers, compositions with derivatives and compile; and how
// many kernels it takes.
#include "support.h"

#include "compiler/program.h"
#include "graph/build.h"
#include "graph/derive/derive.h"
#include "target/target.h"
#include "weft/compile.h"
#include "weft/fast.h"

using namespace weft;
using namespace weft::testing;
using graph::Values;

namespace {

array element(const array& a, int axis, int at) { return take(a, array(at), axis); }

// What vmap must give: the function on each element, stacked.
Arrays looped(const ArrayFunction& f, const Arrays& arguments, const std::vector<int>& axes, int extent) {
  std::vector<Arrays> parts;
  for (int k = 0; k < extent; ++k) {
    Arrays one = arguments;
    for (size_t i = 0; i < one.size(); ++i)
      if (axes[i] >= 0) one[i] = element(one[i], axes[i], k);
    Arrays results = f(one);
    parts.resize(results.size());
    for (size_t r = 0; r < results.size(); ++r) parts[r].push_back(results[r]);
  }
  Arrays out;
  for (const Arrays& p : parts) out.push_back(stack(p, 0));
  return out;
}

struct Named {
  std::string name;
  BinaryFunction f;
};

// Functions of two (3,4) arrays.
std::vector<Named> functions() {
  return {
      {"elementwise", [](const array& x, const array& y) { return sin(x) * y + maximum(x, y); }},
      {"matmul", [](const array& x, const array& y) { return matmul(x, transpose(y)); }},
      {"softmax", [](const array& x, const array& y) { return softmax(x, -1) * logsumexp(y, 0); }},
      {"layer_norm",
       [](const array& x, const array& y) { return fast::layer_norm(x, sum(y, 0), std::nullopt, 1e-5f); }},
      {"attention",
       [](const array& x, const array& y) {
         return fast::scaled_dot_product_attention(reshape(x, {1, 2, 3, 2}), reshape(y, {1, 2, 3, 2}),
                                                   reshape(y, {1, 2, 3, 2}), 0.6f, "causal");
       }},
      {"attention with sinks",
       [](const array& x, const array& y) {
         return fast::scaled_dot_product_attention(reshape(x, {1, 2, 3, 2}), reshape(x, {1, 2, 3, 2}),
                                                   reshape(y, {1, 2, 3, 2}), 0.6f, "", std::nullopt,
                                                   slice(sum(y, 0), {1}, {3}));
       }},
      {"cross_entropy", [](const array& x, const array& y) { return fast::cross_entropy(x, argmax(y, 1)); }},
      {"take", [](const array& x, const array& y) { return take(x, argmax(y, 1), 1); }},
      {"take_along_axis",
       [](const array& x, const array& y) {
         return take_along_axis(x, astype(greater(y, array(0.0, float64)), int32), 0);
       }},
      {"scatter",
       [](const array& x, const array& y) {
         return scatter_add(x, {array({2, 2})}, reshape(slice(y, {0, 0}, {2, 4}), {2, 1, 4}), {0});
       }},
      {"movement",
       [](const array& x, const array& y) {
         return concatenate({slice(x, {2, 0}, {-4, 4}, {-1, 1}), repeat(tile(slice(y, {1, 0}, {2, 4}), {2, 1}), 2, 0)},
                            0);
       }},
      {"reductions", [](const array& x, const array& y) { return max(x, 1) + mean(y, 1) + prod(x * y, {1}); }},
      {"no use of the second", [](const array& x, const array&) { return x * x; }},
  };
}

}  // namespace

TEST_CASE("vmap is a loop: every choice of mapped arguments and axes") {
  const array x = noise({3, 4}, 1), y = noise({3, 4}, 2);
  const auto batched = [](uint64_t seed, int axis) {
    Shape shape{3, 4};
    shape.insert(shape.begin() + axis, Dim(5));
    return noise(shape, seed);
  };
  for (const Named& n : functions()) {
    CAPTURE(n.name);
    const ArrayFunction f = [&](const Arrays& a) { return Arrays{n.f(a[0], a[1])}; };
    for (int ax : {-1, 0, 1, 2})
      for (int ay : {-1, 0, 2}) {
        if (ax < 0 && ay < 0) continue;
        CAPTURE(ax);
        CAPTURE(ay);
        const Arrays arguments{ax < 0 ? x : batched(3, ax), ay < 0 ? y : batched(4, ay)};
        const array given = vmap(n.f, ax, ay)(arguments[0], arguments[1]);
        check_close(given, looped(f, arguments, {ax, ay}, 5)[0]);
      }
  }
}

TEST_CASE("a batch of convolutions is one convolution, whatever is mapped, in groups too, and so are its gradients") {
  const auto calls = [](const Arrays& results) {
    std::vector<std::string> keys;
    Values outputs;
    for (const array& r : results) outputs.push_back(r.value());
    for (const auto& node : graph::topological(outputs))
      if (node->op() == graph::Op::composite) keys.push_back(node->attrs().composite->call);
    return keys;
  };
  struct Form {
    int groups, stride;
  };
  for (const Form& form : {Form{1, 1}, Form{2, 2}}) {
    const int groups = form.groups;
    const ArrayFunction conv = [g = groups, s = form.stride](const Arrays& a) {
      return Arrays{conv_general(a[0], a[1], {s}, {1}, {}, {}, g)};
    };
    const ArrayFunction gradients = [&](const Arrays& a) {
      return grad([&](const Arrays& b) { return weighted(conv(b)[0]); }, {0, 1})(a);
    };
    for (const auto& axes : {std::vector<int>{0, -1}, std::vector<int>{-1, 0}, std::vector<int>{2, 1}}) {
      CAPTURE(groups);
      CAPTURE(axes[0]);
      Shape x{2, 7, 4}, w{6, 3, 4 / groups};
      if (axes[0] >= 0) x.insert(x.begin() + axes[0], Dim(3));
      if (axes[1] >= 0) w.insert(w.begin() + axes[1], Dim(3));
      const Arrays a{noise(x, 5), noise(w, 6)};
      const Arrays y = vmap(conv, axes)(a), g = vmap(gradients, axes)(a);
      CHECK(calls(y) == std::vector<std::string>{"convolution"});
      const std::vector<std::string> backward = calls(g);
      CHECK(std::count(backward.begin(), backward.end(), "convolution_weights") == 1);
      CHECK(std::count(backward.begin(), backward.end(), "convolution") <=
            2);  // forward, where it is still read, and the gradient of the input
      check_close(y[0], looped(conv, a, axes, 3)[0], 1e-12);
      const Arrays expected = looped(gradients, a, axes, 3);
      for (size_t k = 0; k < 2; ++k) check_close(g[k], expected[k], 1e-12);
    }
  }
  // Two maps, one inside the other; and any number of examples next to a mapped input.
  const BinaryFunction conv = [](const array& x, const array& w) { return conv1d(x, w); };
  const array x = noise({2, 3, 1, 5, 2}, 7), w = noise({3, 4, 2, 2}, 8);
  check_close(vmap(BinaryFunction([&](const array& a, const array& b) { return vmap(conv)(a, b); }), 0, -1)(x, w),
              looped(
                  [&](const Arrays& a) {
                    return looped([&](const Arrays& b) { return Arrays{conv(b[0], b[1])}; }, {a[0], a[1]}, {0, 0}, 3);
                  },
                  {x, w}, {0, -1}, 2)[0],
              1e-12);
}

TEST_CASE("results carry the axis where it is asked for") {
  const array x = noise({5, 3, 4}, 1);
  const UnaryFunction f = [](const array& a) { return a * array(2.0, float64); };
  check_close(vmap(f, 0, 2)(x), transpose(x, {1, 2, 0}) * array(2.0, float64));
  check_close(vmap(f, 2, 2)(x), x * array(2.0, float64));
  check_close(vmap(f, 1, 0)(x), transpose(x, {1, 0, 2}) * array(2.0, float64));
  const ArrayFunction two = [](const Arrays& a) { return Arrays{a[0] + a[1], sum(a[0])}; };
  const Arrays r = vmap(two, {1, -1}, {1, 0})({array({1.0f, 2.0f, 3.0f, 4.0f}, Shape{2, 2}), array({10.0f, 20.0f})});
  CHECK(r[0].to_vector<float>() == Floats{11, 12, 23, 24});
  CHECK(r[1].to_vector<float>() == Floats{4, 6});
  // A result that depends on nothing mapped is repeated.
  CHECK(vmap(
            [](const Arrays& a) {
              return Arrays{a[0], a[1] * 2.0f};
            },
            {0, -1})({ones({3}), array(4.0f)})[1]
            .to_vector<float>() == Floats{8, 8, 8});
}

TEST_CASE("nested maps") {
  const array x = noise({3, 4}, 1), y = noise({5, 4}, 2);
  const BinaryFunction dot = [](const array& a, const array& b) { return sum(a * b); };
  const BinaryFunction table =
      vmap(BinaryFunction([&](const array& a, const array& ys) { return vmap(dot, -1, 0)(a, ys); }), 0, -1);
  check_close(table(x, y), matmul(x, transpose(y)));
  const array cube = noise({2, 3, 4}, 3);
  const UnaryFunction norm = [](const array& a) { return softmax(a, 0); };
  check_close(vmap(vmap(norm))(cube), softmax(cube, 2));
  check_close(vmap(vmap(norm, 0, 0), 2, 2)(cube), softmax(cube, 1));
  // The inner function captures what the outer one maps.
  const UnaryFunction outer = [&](const array& a) {
    return vmap(UnaryFunction([&](const array& b) { return a * b + sum(a); }))(a);
  };
  const array v = noise({3, 4}, 4);
  check_close(vmap(outer)(v), expand_dims(v, 1) * expand_dims(v, 2) + reshape(sum(v, 1), {3, 1, 1}));
}

TEST_CASE("derivatives of maps, maps of derivatives") {
  const array x = noise({5, 3, 4}, 1), y = noise({3, 4}, 2);
  for (const Named& n : functions()) {
    CAPTURE(n.name);
    const UnaryFunction f = [&](const array& a) { return weighted(n.f(a, y)); };
    const array each = vmap(grad(f))(x), whole = grad([&](const array&a) { return sum(vmap(f)(a)); })(x);
    Arrays parts, tangents;
    const array t = noise({3, 4}, 3);
    for (int k = 0; k < 5; ++k) {
      parts.push_back(grad(f)(element(x, 0, k)));
      tangents.push_back(jvp(grad(f), element(x, 0, k), t).second);
    }
    check_close(each, stack(parts, 0));
    check_close(whole, stack(parts, 0));
    // The unmapped argument collects from the whole batch.
    const array shared = grad([&](const array& b) {
      return sum(vmap(UnaryFunction([&](const array& a) { return weighted(n.f(a, b)); }))(x));
    })(y);
    array expected = zeros({3, 4}, float64);
    for (int k = 0; k < 5; ++k)
      expected = expected + grad([&](const array& b) { return weighted(n.f(element(x, 0, k), b)); })(y);
    check_close(shared, expected);
    // Second: forward over reverse inside of the map, and outside.
    check_close(vmap(UnaryFunction([&](const array& a) { return jvp(grad(f), a, t).second; }))(x), stack(tangents, 0));
    check_close(jvp(vmap(grad(f)), x, broadcast_to(t, {5, 3, 4})).second, stack(tangents, 0));
    // Third: the map in the middle.
    const UnaryFunction curvature = [&](const array& a) { return sum(square(vmap(grad(f))(a))); };
    const array u = noise({5, 3, 4}, 4);
    check_close(jvp(grad(curvature), x, u).second, difference(grad(curvature), x, u), 1e-5);
  }
}

TEST_CASE("a mapped region keeps its derivative") {
  const UnaryFunction f = [](const array& a) { return softmax(a, -1); };
  const array x = noise({2, 3}, 1);
  const graph::Value mapped = vmap(f)(x).value();
  REQUIRE(mapped.node->op() == graph::Op::composite);
  CHECK(mapped.node->attrs().composite->name == "softmax");
  check_close(array(mapped), softmax(x, -1));
}

TEST_CASE("every element draws for itself") {
  const UnaryFunction drop = [](const array& x) {
    return x * astype(random::bernoulli(array(0.5f), {16}, std::nullopt), float32);
  };
  random::seed(3);
  const array y = vmap(drop)(ones({4, 16}));
  const Floats bits = y.to_vector<float>();
  CHECK(Floats(bits.begin(), bits.begin() + 16) != Floats(bits.begin() + 16, bits.begin() + 32));
  random::seed(3);
  CHECK(vmap(drop)(ones({4, 16})).to_vector<float>() == bits);
  // The keys are those of split, the outer map's first.
  random::seed(3);
  const array keys = random::split(random::split(random::default_key()).second, 4);
  const UnaryFunction by_key = [](const array& k) { return random::normal({3}, float32, 0, 1, k); };
  Arrays one_by_one;
  for (int k = 0; k < 4; ++k) one_by_one.push_back(by_key(element(keys, 0, k)));
  const array together = vmap(by_key)(keys);
  CHECK(array_equal(together, stack(one_by_one, 0), false).item<bool>());
  random::seed(3);
  CHECK(array_equal(vmap(UnaryFunction([](const array& x) { return x + random::normal({3}); }))(zeros({4, 3})),
                    together, false)
            .item<bool>());
  // Nested, and odd numbers of words.
  random::seed(4);
  const array grid = vmap(vmap(UnaryFunction([](const array& x) { return x + random::uniform({}); })))(zeros({3, 5}));
  const Floats values = grid.to_vector<float>();
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t j = 0; j < i; ++j) CHECK(values[i] != values[j]);
  const array outside = random::uniform({3});  // what is drawn outside is the same for all
  const array shared = vmap(UnaryFunction([&](const array& x) { return x + outside; }))(zeros({2, 3}));
  CHECK(array_equal(element(shared, 0, 0), element(shared, 0, 1), false).item<bool>());
}

TEST_CASE("attention with dropout draws for each element by its key") {
  const array x = random::normal({3, 1, 2, 20, 8}, float32, 0, 1, random::key(1)),
              keys = random::split(random::key(2), 3);
  const ArrayFunction attend = [](const Arrays& in) {
    return Arrays{fast::dropout_attention(in[0], in[0], in[0], 0.4f, 0.5f, "causal", std::nullopt, in[1])};
  };
  const ArrayFunction loss = [&](const Arrays& in) { return Arrays{sum(square(attend(in)[0]))}; };
  for (const std::vector<int>& axes : {std::vector{0, 0}, {-1, 0}, {0, -1}}) {
    CAPTURE(axes[0]);
    CAPTURE(axes[1]);
    const Arrays in{axes[0] < 0 ? element(x, 0, 0) : x, axes[1] < 0 ? element(keys, 0, 0) : keys};
    const array each = looped(attend, in, axes, 3)[0];
    const ArrayFunction mapped = vmap(attend, axes);
    check_close(mapped(in)[0], each, 1e-5);
    check_close(compile(mapped)(in)[0], each, 1e-5);
    // The derivative draws the same weights.
    const auto gradient = [&](const std::function<array(const array&)>& total) { return grad(total)(in[0]); };
    check_close(gradient([&](const array& y) {
                  return sum(vmap(loss, axes)({y, in[1]})[0]);
                }),
                gradient([&](const array& y) {
                  return sum(looped(loss, {y, in[1]}, axes, 3)[0]);
                }),
                1e-4);
  }
}

TEST_CASE("maps and compile") {
  const UnaryFunction f = [](const array& x) { return softmax(x, -1) * sum(x); };
  const ArrayFunction wrapped = [&](const Arrays& a) { return Arrays{f(a[0])}; };
  const array x = noise({4, 3}, 1);
  const array expected = vmap(f)(x);
  check_close(vmap(compile(wrapped))({x})[0], expected);
  check_close(compile(vmap(wrapped))({x})[0], expected);
  const ArrayFunction slopes = compile(vmap(ArrayFunction(
      [&](const Arrays& a) { return Arrays{grad([&](const array& v) { return weighted(f(v)); })(a[0])}; })));
  check_close(slopes({x})[0], vmap(grad([&](const array& v) { return weighted(f(v)); }))(x));
}

TEST_CASE("the number of kernels does not grow with the batch") {
  const UnaryFunction layer = [](const array& x) {
    const array w = reshape(arange(0, 12, 1), {4, 3});
    const array h = fast::gelu(matmul(x, astype(w, float32)));
    return sum(softmax(h + random::normal(h.shape()), -1) * fast::layer_norm(h, std::nullopt, std::nullopt, 1e-5f));
  };
  const auto count = [&](int batch) {
    const graph::Value p = graph::parameter({{batch, 2, 4}, float32});
    random::seed(1);
    graph::Value out = vmap(grad(layer))(array(p)).value();
    compiler::Source source{{{p}, {out}}, {}, {}};
    for (const auto& node : graph::topological(source.graph.outputs))  // data that the function captures
      if (node->storage(0)) source.graph.inputs.push_back({node, 0});
    return compiler::build(source, target::null())->stats().count();
  };
  const int small = count(2);
  CHECK(small > 0);
  CHECK(count(3) == small);
  CHECK(count(64) == small);
}

TEST_CASE("vmap: what is refused") {
  const UnaryFunction f = [](const array& x) { return x; };
  CHECK(contains(message([&] { vmap(f)(array(1.0f)); }), "[vmap] argument 0 is a scalar"));
  CHECK(contains(message([&] { vmap(f, 2)(ones({2, 2})); }), "[vmap] axis 2 of argument 0"));
  CHECK(contains(message([&] { vmap(f, -1, -1)(ones({2, 2})); }), "[vmap] no argument is mapped"));
  // When the function is made, as in MLX: axes of which the arguments', or the results', alone say that nothing is
  // mapped.
  const ArrayFunction all = [](const Arrays& a) { return a; };
  const BinaryFunction sum = [](const array& a, const array& b) { return a + b; };
  CHECK_THROWS_WITH_AS(vmap(f, 0, -1), doctest::Contains("[vmap] no axis of the results is mapped"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(vmap(f, -1, 0), doctest::Contains("[vmap] no axis of the arguments is mapped"),
                       std::invalid_argument);
  CHECK_THROWS_AS(vmap(f, -2), std::invalid_argument);
  CHECK_THROWS_AS(vmap(sum, -1, -1, 0), std::invalid_argument);
  CHECK_THROWS_AS(vmap(sum, 0, -1, -1), std::invalid_argument);
  CHECK_THROWS_AS(vmap(all, {-1, -1, -1}, {0}), std::invalid_argument);
  CHECK_THROWS_AS(vmap(all, {0, -1}, {-1}), std::invalid_argument);
  CHECK_THROWS_AS(vmap(all, {0}, {-2}), std::invalid_argument);
  CHECK_NOTHROW(vmap(all, {0, -1}, {-1, 0}));
  CHECK_NOTHROW(vmap(all));
  CHECK(vmap(all, {0, 0}, {-1, 0})({ones({2, 3}), ones({2})})[0].shape() == Shape{3, 2});
  // Axes that do not exist, when it is called.
  CHECK_THROWS_AS(vmap(f, 7, 0)(ones({2, 2})), std::out_of_range);
  CHECK_THROWS_AS(vmap(f, 0, 7)(ones({2, 2})), std::out_of_range);
  CHECK_THROWS_AS(vmap(all, {0, -2}, {0, 0})({ones({2, 2}), ones({2, 2})}), std::out_of_range);
  CHECK(contains(message([&] { vmap(f, 0, 2)(ones({2, 2})); }), "[vmap] result 0 cannot carry its batch axis at 2"));
  CHECK(contains(message([&] { vmap([](const array& a, const array& b) { return a + b; })(ones({2}), ones({3})); }),
                 "[vmap] mapped axes must be equally long"));
  CHECK(contains(message([&] {
                   vmap([](const Arrays& a) { return a; }, {0})({ones({2}), ones({2})});
                 }),
                 "[vmap] 1 argument axes were given for 2"));
  CHECK(contains(message([&] { vmap(UnaryFunction([](const array& x) { return x * x.item<float>(); }))(ones({2})); }),
                 "being compiled or mapped"));
}
