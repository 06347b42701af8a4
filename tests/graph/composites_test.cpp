// The named regions: their values against sums written out, their derivatives against finite differences, their forms
// in 16-bit floats.
#include <doctest/doctest.h>

#include "checks.h"
#include "graph/regions/composites.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::graph::testing;

namespace {

using Function = std::function<Value(const Values&)>;

HostTensor evaluate(const Function& f, const std::vector<HostTensor>& in) {
  Graph graph;
  for (const HostTensor& t : in) graph.inputs.push_back(parameter(t.type));
  graph.outputs = {f(graph.inputs)};
  verify(graph);
  verify(inline_composites(graph));
  const HostTensor out = evaluate_reference(graph, in)[0], flat = evaluate_reference(inline_composites(graph), in)[0];
  CHECK(reals(out) == reals(flat));
  return out;
}

/// The region's own vjp, with a random cotangent for each output (or for the first `counted` ones), against differences
/// of Σ cotangent · output in each element of each float64 input.
void check_gradient(const Function& f, const std::vector<HostTensor>& in, int counted = -1) {
  Graph graph;
  for (const HostTensor& t : in) graph.inputs.push_back(parameter(t.type));
  const Value out = f(graph.inputs);
  REQUIRE(out.node->op() == Op::composite);
  REQUIRE(out.node->inputs() == graph.inputs);
  Values outputs, cotangents;
  Random random(5);
  std::vector<HostTensor> values = in, weights;
  Graph backward{graph.inputs, {}};
  for (int k = 0; k < (counted < 0 ? out.node->outputs() : counted); ++k) {
    outputs.push_back({out.node, k});
    weights.push_back(random_tensor(random, outputs.back().type()));
    values.push_back(weights.back());
    cotangents.push_back(parameter(outputs.back().type()));
    backward.inputs.push_back(cotangents.back());
  }
  Values all;
  for (int k = 0; k < out.node->outputs(); ++k) all.push_back({out.node, k});
  cotangents.resize(all.size());
  const Values gradients = out.node->attrs().composite->vjp(graph.inputs, all, cotangents);
  REQUIRE(gradients.size() == in.size());
  const auto total = [&](const std::vector<HostTensor>& at) {
    const auto results = evaluate_reference({graph.inputs, outputs}, at);
    double s = 0;
    for (size_t k = 0; k < results.size(); ++k) s += inner(reals(results[k]), reals(weights[k]));
    return s;
  };
  for (size_t k = 0; k < in.size(); ++k) {
    if (in[k].type.dtype != float64) {
      CHECK_FALSE(static_cast<bool>(gradients[k]));
      continue;
    }
    REQUIRE(gradients[k]);
    REQUIRE(gradients[k].type() == in[k].type);
    backward.outputs = {gradients[k]};
    const std::vector<double> given = reals(evaluate_reference(backward, values)[0]);
    for (size_t j = 0; j < given.size(); ++j) {
      const auto at = [&](double h) {
        std::vector<HostTensor> moved = in;
        moved[k].data[j] = Number::of_real(in[k].data[j].real() + h);
        return total(moved);
      };
      const double h = 1e-4, slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
      CAPTURE(k);
      CAPTURE(j);
      CHECK(close(given[j], slope, 1e-7));
    }
  }
}

/// The bf16 form: its result has that dtype and is near the float64 one.
void check_narrow(const Function& f, std::vector<HostTensor> in, double tolerance) {
  const std::vector<double> wide = reals(evaluate(f, in));
  for (HostTensor& t : in) {
    if (t.type.dtype != float64) continue;
    t.type.dtype = bfloat16;
    for (Number& n : t.data) n = kernel::round_to(n, bfloat16);
  }
  const HostTensor narrow = evaluate(f, in);
  CHECK(narrow.type.dtype == bfloat16);
  for (size_t k = 0; k < wide.size(); ++k) CHECK(close(narrow.data[k].real(), wide[k], tolerance));
}

HostTensor random_tensor(const Shape& shape, uint64_t seed, Dtype t = float64, const Domain& d = {}) {
  Random r(seed);
  return random_tensor(r, {shape, t}, d);
}

}  // namespace

TEST_CASE("softmax") {
  const HostTensor x = random_tensor({3, 4, 2}, 1);
  for (const std::vector<int64_t>& axes : {std::vector<int64_t>{1}, {2}, {0, 2}}) {
    const Function f = [&](const Values& in) { return softmax(in[0], axes); };
    const std::vector<double> y = reals(evaluate(f, {x}));
    std::map<std::vector<int64_t>, double> totals;
    const auto kept = [&](size_t at) {
      std::vector<int64_t> c = coordinates({3, 4, 2}, static_cast<int64_t>(at));
      for (int64_t axis : axes) c[static_cast<size_t>(axis)] = 0;
      return c;
    };
    for (size_t k = 0; k < y.size(); ++k) totals[kept(k)] += std::exp(x.data[k].real());
    for (size_t k = 0; k < y.size(); ++k) CHECK(y[k] == doctest::Approx(std::exp(x.data[k].real()) / totals[kept(k)]));
    check_gradient(f, {x});
    check_narrow(f, {x}, 0.02);
  }
  HostTensor large = x;
  for (Number& v : large.data) v.f += 5000;
  const Function f = [](const Values& in) { return softmax(in[0], {1}); };
  const auto a = reals(evaluate(f, {x})), b = reals(evaluate(f, {large}));
  for (size_t k = 0; k < a.size(); ++k) CHECK(close(a[k], b[k], 1e-9));
}

TEST_CASE("logsumexp") {
  const HostTensor x = random_tensor({3, 5}, 2);
  for (bool keep : {false, true}) {
    const Function f = [&](const Values& in) { return logsumexp(in[0], {1}, keep); };
    const HostTensor y = evaluate(f, {x});
    CHECK(y.type.shape == (keep ? Shape{3, 1} : Shape{3}));
    for (size_t r = 0; r < 3; ++r) {
      double total = 0;
      for (size_t c = 0; c < 5; ++c) total += std::exp(x.data[r * 5 + c].real());
      CHECK(y.data[r].real() == doctest::Approx(std::log(total)));
    }
    check_gradient(f, {x});
    check_narrow(f, {x}, 0.02);
  }
  HostTensor edge{{{2, 2}, float64}, {}};
  for (double v : std::vector<double>{-INFINITY, -INFINITY, 3, INFINITY}) edge.data.push_back(Number::of_real(v));
  CHECK(reals(evaluate([](const Values& in) { return logsumexp(in[0], {1}, false); }, {edge})) ==
        std::vector<double>{-INFINITY, INFINITY});
}

TEST_CASE("layer_norm") {
  const HostTensor x = random_tensor({3, 2, 6}, 3), w = random_tensor({6}, 4), b = random_tensor({6}, 5);
  const double eps = 1e-3;
  const Function both = [&](const Values& in) { return layer_norm(in[0], in[1], in[2], eps); };
  const std::vector<double> y = reals(evaluate(both, {x, w, b}));
  for (size_t r = 0; r < 6; ++r) {
    double mean = 0, variance = 0;
    for (size_t c = 0; c < 6; ++c) mean += x.data[r * 6 + c].real() / 6;
    for (size_t c = 0; c < 6; ++c) variance += std::pow(x.data[r * 6 + c].real() - mean, 2) / 6;
    for (size_t c = 0; c < 6; ++c)
      CHECK(y[r * 6 + c] ==
            doctest::Approx((x.data[r * 6 + c].real() - mean) / std::sqrt(variance + eps) * w.data[c].real() +
                            b.data[c].real()));
  }
  check_gradient(both, {x, w, b});
  check_gradient([&](const Values& in) { return layer_norm(in[0], in[1], {}, eps); }, {x, w});
  check_gradient([&](const Values& in) { return layer_norm(in[0], {}, in[1], eps); }, {x, b});
  check_gradient([&](const Values& in) { return layer_norm(in[0], {}, {}, eps); }, {x});
  check_narrow(both, {x, w, b}, 0.05);
  CHECK_THROWS_AS(layer_norm(parameter({{2, 3}, float32}), parameter({{2}, float32}), {}, eps), std::invalid_argument);
}

TEST_CASE("gelu") {
  const HostTensor x = random_tensor({7}, 6);
  const Function approximate = [](const Values&in) { return gelu_tanh(in[0]); },
                 exact = [](const Values&in) { return gelu(in[0]); };
  const auto a = reals(evaluate(approximate, {x})), e = reals(evaluate(exact, {x}));
  for (size_t k = 0; k < 7; ++k) {
    const double v = x.data[k].real();
    CHECK(a[k] ==
          doctest::Approx(0.5 * v * (1 + std::tanh(std::sqrt(2 / 3.14159265358979) * (v + 0.044715 * v * v * v)))));
    CHECK(e[k] == doctest::Approx(v * 0.5 * std::erfc(-v / std::sqrt(2.0))));
  }
  check_gradient(approximate, {x});
  check_gradient(exact, {x});
  check_narrow(approximate, {x}, 0.02);
  check_narrow(exact, {x}, 0.02);
}

TEST_CASE("cross_entropy") {
  const HostTensor logits = random_tensor({2, 3, 5}, 7);
  for (Dtype t : {int32, uint8, int64}) {
    const HostTensor targets = random_tensor({2, 3}, 8, t, {0, 0, 0, 4});
    const Function f = [](const Values& in) { return cross_entropy(in[0], in[1]); };
    const std::vector<double> loss = reals(evaluate(f, {logits, targets}));
    for (size_t r = 0; r < 6; ++r) {
      double total = 0;
      for (size_t c = 0; c < 5; ++c) total += std::exp(logits.data[r * 5 + c].real());
      CHECK(loss[r] == doctest::Approx(-std::log(
                           std::exp(logits.data[r * 5 + static_cast<size_t>(targets.data[r].i)].real()) / total)));
    }
    check_gradient(f, {logits, targets});
    check_narrow(f, {logits, targets}, 0.02);
  }
  CHECK_THROWS_AS(cross_entropy(parameter({{2, 3}, float32}), parameter({{3}, int32})), std::invalid_argument);
  CHECK_THROWS_AS(cross_entropy(parameter({{2, 3}, float32}), parameter({{2}, float32})), std::invalid_argument);
}

TEST_CASE("attention") {
  const int64_t tq = 3, tk = 5, d = 4;
  const HostTensor q = random_tensor({2, tq, d}, 9), k = random_tensor({2, tk, d}, 10),
                   v = random_tensor({2, tk, 3}, 11);
  const HostTensor hidden = random_tensor({tq, tk}, 12, bool_), additive = random_tensor({2, 1, tk}, 13);
  const double scale = 0.6;
  const auto at = [](const HostTensor& t, int64_t b, int64_t i, int64_t j) {
    return t.data[static_cast<size_t>(flat(t.type.shape, {b, i, j}))].real();
  };

  const auto expected = [&](bool causal, const HostTensor* mask) {
    std::vector<double> out;
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t i = 0; i < tq; ++i) {
        std::vector<double> p;
        double total = 0;
        for (int64_t j = 0; j < tk; ++j) {
          double s = 0;
          for (int64_t c = 0; c < d; ++c) s += at(q, b, i, c) * at(k, b, j, c) * scale;
          bool visible = !causal || j <= i + tk - tq;
          if (mask == &hidden) visible = visible && hidden.data[static_cast<size_t>(i * tk + j)].i;
          if (mask == &additive) s += at(additive, b, 0, j);
          p.push_back(visible ? std::exp(s) : 0);
          total += p.back();
        }
        for (int64_t c = 0; c < 3; ++c) {
          double s = 0;
          for (int64_t j = 0; j < tk; ++j) s += p[static_cast<size_t>(j)] * at(v, b, j, c);
          out.push_back(total == 0 ? 0 : s / total);
        }
      }
    return out;
  };
  for (bool causal : {false, true})
    for (const HostTensor* mask : {static_cast<const HostTensor*>(nullptr), &hidden, &additive}) {
      const Function f = [&](const Values& in) {
        return attention(in[0], in[1], in[2], scale, causal, mask ? in[3] : Value{});
      };
      std::vector<HostTensor> in{q, k, v};
      if (mask) in.push_back(*mask);
      const std::vector<double> y = reals(evaluate(f, in)), want = expected(causal, mask);
      for (size_t e = 0; e < want.size(); ++e) CHECK(close(y[e], want[e], 1e-9));
      check_gradient(f, in);     // with the logsumexp's cotangent
      check_gradient(f, in, 1);  // and through the derivative's own region
      check_narrow(f, in, 0.05);
    }
}

TEST_CASE("attention rows that see nothing give zeros, forward and backward") {
  const HostTensor q = random_tensor({2, 3}, 1), k = random_tensor({4, 3}, 2), v = random_tensor({4, 2}, 3);
  HostTensor mask{{{2, 4}, bool_}, {}};
  for (int j = 0; j < 8; ++j) mask.data.push_back(Number::of_int(j < 4 ? 0 : 1));
  const Function f = [](const Values& in) { return attention(in[0], in[1], in[2], 1, false, in[3]); };
  const std::vector<double> y = reals(evaluate(f, {q, k, v, mask}));
  CHECK(y[0] == 0);
  CHECK(y[1] == 0);
  CHECK(y[2] != 0);
  check_gradient(f, {q, k, v, mask}, 1);  // the logsumexp of nothing is infinite
}

TEST_CASE("attention takes symbolic lengths") {
  const Dim n = symbol("t", 16);
  const Value q = parameter({{2, 1, 8}, float32}), k = parameter({{2, n, 8}, float32});
  CHECK(attention(q, k, k, 1, true, {}).shape() == Shape{2, 1, 8});
  const Value same = parameter({{2, n, 8}, float32});
  CHECK(attention(same, k, k, 1, true, {}).shape() == Shape{2, n, 8});
  CHECK_THROWS_AS(attention(parameter({{2, 4, 8}, float32}), k, k, 1, true, {}), std::invalid_argument);
  CHECK(attention(parameter({{2, 4, 8}, float32}), k, k, 1, false, parameter({{4, n}, bool_})).shape() ==
        Shape{2, 4, 8});
}

TEST_CASE("regions key what their bodies depend on") {
  const Value x = parameter({{2, 3}, float32});
  const auto key = [](const Value& v) { return v.node->attrs().composite->key; };
  CHECK(key(softmax(x, {0})) != key(softmax(x, {1})));
  CHECK(key(softmax(x, {-1})) == key(softmax(x, {1})));
  CHECK(key(layer_norm(x, {}, {}, 1e-5)) != key(layer_norm(x, {}, {}, 1e-6)));
  CHECK(key(logsumexp(x, {0}, true)) != key(logsumexp(x, {0}, false)));
  CHECK(key(attention(x, x, x, 1, false, {})) != key(attention(x, x, x, 2, false, {})));
  CHECK(key(attention(x, x, x, 1, false, {})) != key(attention(x, x, x, 1, true, {})));
}
