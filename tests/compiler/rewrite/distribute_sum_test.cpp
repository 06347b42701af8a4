// Sums down columns of a norm's gradient: where nobody else wants the gradient they are made of sums that need no other
// sum's result, in one pass over the data.
#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <sstream>

#include "compiler/lower/planned.h"
#include "compiler/rewrite/simplify.h"
#include "compiler/rewrite/sum_terms.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "target/cpu/cpu.h"
#include "thinning.h"

using namespace weft;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using graph::Graph;
using graph::Value;

namespace {

constexpr int64_t examples = 8;

/// g, x, what a tap sees, and a factor a channel.
std::vector<graph::Type> types(Dtype t) {
  const Shape positions{examples, 24, 24, 32};
  return {{positions, t}, {positions, t}, {{examples, 24, 24, 1}, t}, {{32}, t}};
}

enum class Also { nothing, the_gradient, a_product };

/// The sums of g and g x, and of the gradient e = a (g - mean(g) - x mean(g x)), alone and times what a tap sees.
Graph gradient_of_norm(Dtype t, Also also) {
  const Shape positions{examples, 24, 24, 32};
  const double count = static_cast<double>(examples) * 24 * 24;
  std::vector<Value> in;
  for (const graph::Type& type : types(t)) in.push_back(graph::parameter(type));
  const Value &g = in[0], &x = in[1], seen = graph::broadcast(in[2], positions);
  const auto columns = [](const Value& v) { return graph::sum(v, {0, 1, 2}); };
  const auto everywhere = [&](const Value& v) { return graph::broadcast(v, positions); };
  const Value s = columns(g), q = columns(g * x);
  const Value e = everywhere(in[3]) * (g - (everywhere(s) + x * everywhere(q)) * (1 / count));
  std::vector<Value> out{s, q, columns(e), columns(e * seen), columns(-(seen * e))};
  if (also == Also::the_gradient) out.push_back(e);
  if (also == Also::a_product) out.push_back(columns(e * e));  // not linear
  return {in, out};
}

std::vector<HostTensor> widened(std::vector<HostTensor> in) {
  for (HostTensor& t : in) t.type.dtype = float64;
  return in;
}

/// Returns the largest difference of the elements of the float32 graph's outputs from those of the float64 one, as a
/// part of scale(got, expected).
double worst_of(const std::function<Graph(Dtype)>& graph_of, const std::vector<HostTensor>& in, target::Target& target,
                const std::function<double(double, double)>& scale) {
  const std::vector<HostTensor> expected = evaluate_reference(graph_of(float64), widened(in));
  std::vector<graph::Storage> storages;
  for (const HostTensor& t : in) storages.push_back(to_storage(t));
  const auto got = build({graph_of(float32), {}, {}}, target)->run(storages);
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const HostTensor values = from_storage(got[i], {expected[i].type.shape, float32});
    for (size_t k = 0; k < values.data.size(); ++k) {
      const double a = values.data[k].f, b = expected[i].data[k].f;
      worst = std::max(worst, std::abs(a - b) / scale(a, b));
    }
  }
  return worst;
}

/// Random expressions of values, of factors a channel and of two sums, summed down columns: the outputs are the two
/// sums and three others. With `magnitudes`, those of the absolute values, added where the others are subtracted.
class Expressions {
 public:
  static constexpr int64_t rows = 4096, width = 2;

  Expressions(uint64_t seed, Dtype t, bool magnitudes) : engine_(seed), magnitudes_(magnitudes) {
    for (const Shape& shape : shapes()) inputs_.push_back(graph::parameter({shape, t}));
    for (size_t k = 0; k < 3; ++k) values_.push_back(size_of(inputs_[k]));
    outputs_ = {columns(values_[0]), columns(values_[0] * values_[1])};
    factors_ = {size_of(inputs_[3]), outputs_[0] * (1.0 / rows), outputs_[1] * (1.0 / rows)};
  }

  Graph graph() {
    // One of them is always linear in the sums.
    const Value centred = less(values_[0], everywhere(factors_[1]));
    outputs_.push_back(
        columns((centred * everywhere(factors_[0]) + values_[1] * everywhere(factors_[2])) * values_[2]));
    for (int k = 0; k < 2; ++k) outputs_.push_back(columns(expression(3)));
    return {inputs_, outputs_};
  }

  static std::vector<HostTensor> inputs(uint64_t seed) {
    std::mt19937_64 engine(seed + 1000);
    std::normal_distribution<double> normal;
    std::vector<HostTensor> out;
    for (const Shape& shape : shapes()) {
      HostTensor t{{shape, float32}, {}};
      for (int64_t k = num_elements(shape); k > 0; --k)
        t.data.push_back(kernel::round_to(Number::of_real(0.5 + normal(engine)), float32));
      out.push_back(std::move(t));
    }
    return out;
  }

 private:
  static std::vector<Shape> shapes() { return {{rows, width}, {rows, width}, {rows, width}, {width}}; }
  static Value columns(const Value& v) { return graph::sum(v, {0}); }
  static Value everywhere(const Value& v) { return graph::broadcast(v, {rows, width}); }
  Value less(const Value& a, const Value& b) const { return magnitudes_ ? a + b : a - b; }
  Value size_of(const Value& v) const { return magnitudes_ ? graph::unary(graph::Op::abs, v) : v; }
  size_t below(size_t n) { return engine_() % n; }

  Value expression(int depth) {
    const Value leaf = below(3) == 0 ? everywhere(factors_[below(3)]) : values_[below(3)];
    const size_t kind = below(5);
    if (depth == 0) return leaf;
    const Value a = expression(depth - 1);
    switch (kind) {
      case 0: return a + leaf;
      case 1: return less(a, leaf);
      case 2: return a * leaf;
      case 3: return magnitudes_ ? a : -a;
      default: {
        const Value b = expression(depth - 1);
        return below(2) == 0 ? a * b : a + b;
      }
    }
  }

  std::mt19937_64 engine_;
  const bool magnitudes_;
  graph::Values inputs_, values_, factors_, outputs_;
};

struct Outcome {
  double worst = 0;
  int64_t reads = 0;  // kernels that read g
  int64_t launches = 0;
};

int64_t reads_of_gradient(const Program& program) {
  int64_t reads = 0;
  std::istringstream plan(program.print("plan"));
  for (std::string line; std::getline(plan, line);) reads += line.find(" input0 ") != std::string::npos;
  return reads;
}

Outcome run(Also also) {
  std::mt19937_64 engine(7);
  std::normal_distribution<double> normal;
  std::vector<HostTensor> inputs;
  for (const graph::Type& type : types(float32)) {
    HostTensor t{type, {}};
    for (int64_t k = num_elements(type.shape); k > 0; --k)
      t.data.push_back(kernel::round_to(Number::of_real(0.25 + normal(engine)), float32));
    inputs.push_back(std::move(t));
  }
  std::vector<HostTensor> wide = inputs;
  for (HostTensor& t : wide) t.type.dtype = float64;
  const std::vector<HostTensor> expected = evaluate_reference(gradient_of_norm(float64, also), wide);
  weft::test::SimtTarget target;
  const auto program = build({gradient_of_norm(float32, also), {}, {}}, target);
  std::vector<graph::Storage> storages;
  for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
  const auto got = program->run(storages);
  Outcome result;
  for (size_t i = 0; i < expected.size(); ++i) {
    const HostTensor values = from_storage(got[i], {expected[i].type.shape, float32});
    for (size_t k = 0; k < values.data.size(); ++k)
      result.worst = std::max(
          result.worst, std::abs(values.data[k].f - expected[i].data[k].f) / (1 + std::abs(expected[i].data[k].f)));
  }
  result.launches = program->stats().launches;
  result.reads = reads_of_gradient(*program);
  return result;
}

}  // namespace

TEST_CASE("sums of a norm's gradient are taken beside the norm's own, in one pass") {
  const Outcome sums = run(Also::nothing);
  CHECK(sums.worst < 2e-4);  // of sums of 4608 numbers, some of which cancel
  CHECK(sums.reads == 1);
  CHECK(sums.launches <= 4);  // the pass, what its parts add up to in two, and what follows
}

TEST_CASE("a norm's gradient that somebody else wants is made, and summed as it is made") {
  for (const Also also : {Also::the_gradient, Also::a_product}) {
    const Outcome sums = run(also);
    CHECK(sums.worst < 2e-4);
    CHECK(sums.reads == 2);
  }
}

TEST_CASE("sums of centred values keep their digits where the mean is large") {
  // x = 10^4 + noise: Σ x² - 2 m Σ x + n m² leaves no digit in float32. Σ x t - m Σ t leaves those that Σ (x - m) t
  // has.
  constexpr int64_t rows = 16384;
  const auto graph_of = [](Dtype t, bool products) {
    const Shape positions{rows, 2};
    const Value x = graph::parameter({positions, t}), y = graph::parameter({positions, t}),
                w = graph::parameter({positions, t});
    const auto centred = [&](const Value& v) {
      return v - graph::broadcast(graph::sum(v, {0}) * (1.0 / rows), positions);
    };
    return products
               ? Graph{{x, y, w}, {graph::sum(centred(x) * centred(x), {0}), graph::sum(centred(x) * centred(y), {0})}}
               : Graph{{x, y, w}, {graph::sum(centred(x) * w, {0}), graph::sum(w * centred(y), {0})}};
  };
  std::mt19937_64 engine(5);
  std::normal_distribution<double> normal;
  std::vector<HostTensor> in(3, {{{rows, 2}, float32}, {}});
  for (int64_t k = 0; k < 2 * rows; ++k) {
    const double noise = normal(engine);
    const std::array row{1e4 + noise, 1e4 - noise + normal(engine), noise + normal(engine)};
    for (size_t i = 0; i < in.size(); ++i) in[i].data.push_back(kernel::round_to(Number::of_real(row[i]), float32));
  }
  const auto error = [&](bool products, target::Target& target) {
    const auto of = [&](Dtype t) { return graph_of(t, products); };
    return worst_of(of, in, target, [](double, double expected) { return std::abs(expected); });
  };
  const auto distributes = [&](bool products) {
    return !sums_to_distribute(eliminate_dead_code(simplify(import({graph_of(float32, products), {}, {}})))).empty();
  };
  weft::test::SimtTarget target;
  CHECK_FALSE(distributes(true));
  CHECK(error(true, target) < 1e-6);
  CHECK(distributes(false));
  CHECK(error(false, target) < 4 * error(false, target::cpu()));  // the CPU's sums are not distributed
}

TEST_CASE("sums of random expressions differ from float64 by a small part of the sum of their terms' magnitudes") {
  int64_t distributed = 0;
  for (uint64_t seed = 0; seed < 48; ++seed) {
    CAPTURE(seed);
    const auto graph_of = [&](Dtype t) { return Expressions(seed, t, false).graph(); };
    distributed += !sums_to_distribute(eliminate_dead_code(simplify(import({graph_of(float32), {}, {}})))).empty();
    if (seed % 3 > 0 || !weft::test::taken(static_cast<int64_t>(seed / 3))) continue;  // compiling takes seconds
    const std::vector<HostTensor> in = Expressions::inputs(seed);
    const std::vector<HostTensor> magnitudes =
        evaluate_reference(Expressions(seed, float64, true).graph(), widened(in));
    weft::test::SimtTarget target;
    CHECK(worst_of(graph_of, in, target, [&, at = size_t{0}](double, double) mutable {
            const size_t k = at++, width = static_cast<size_t>(Expressions::width);
            return magnitudes[k / width].data[k % width].real();
          }) < 2e-6);
  }
  CHECK(distributed >= 12);
}

TEST_CASE("short lines with an edge are made of long tiles, where there are many of them") {
  const Value x = graph::parameter({{600, 28, 28, 1}, float32});
  Interpreted target;
  const auto program = build({{{x}, {graph::pad(x, {0, 1, 1, 0}, {0, 1, 1, 0})}}, {}, {}}, target);
  const std::string plan = program->print("plan");
  const size_t at = plan.find(" grid ");
  REQUIRE(at != std::string::npos);
  CHECK(std::stol(plan.substr(at + 6)) < 600 * 30);
  HostTensor ones{{{600, 28, 28, 1}, float32}, std::vector<Number>(600 * 28 * 28, Number::of_real(1))};
  const std::vector<graph::Storage> storages{to_storage(ones)};
  const HostTensor got = from_storage(program->run(storages)[0], {{600, 30, 30, 1}, float32});
  for (size_t k = 0; k < got.data.size(); ++k) {
    const size_t row = k / 30 % 30, column = k % 30;
    const bool inside = row > 0 && row < 29 && column > 0 && column < 29;
    if (got.data[k].f != (inside ? 1.0 : 0.0)) FAIL("element " << k << " is " << got.data[k].f);
  }
}
