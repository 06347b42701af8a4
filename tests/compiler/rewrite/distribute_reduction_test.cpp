// Sums down columns of a norm's gradient: where nobody else wants the gradient they are made of sums that need no other
// sum's result, in one pass over the data.
#include <algorithm>
#include <random>
#include <sstream>

#include "compiler/simt_target.h"
#include "compiler/support.h"

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

TEST_CASE("short lines with an edge are made of long tiles, where there are many of them") {
  const Value x = graph::parameter({{600, 28, 28, 1}, float32});
  weft::test::SimtTarget target;
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
