// The fusion contract: how many launches, library calls and copies named pieces of work become. Counted on the null
// target, which runs nothing.
#include "compiler/null_machine.h"
#include "compiler/support.h"
#include "graph/derive/derive.h"
#include "graph/regions/composites.h"

using namespace weft;
using namespace weft::graph;

namespace {

int count(const Graph& g, std::vector<compiler::Update> updates = {}) {
  auto program = compiler::build({g, {}, updates}, target::null());
  INFO(program->print("plan"));
  return program->stats().count();
}

Value param(Shape shape, Dtype dtype = float32) { return parameter({std::move(shape), dtype}); }

}  // namespace

/// GPT-2's parameters and what is computed with them; `inputs` takes up every parameter in order.
struct Gpt {
  int64_t batch = 4, time = 64, width = 768, heads = 12;
  Values inputs = {};

  Value weight(Shape shape) { return inputs.emplace_back(param(std::move(shape))); }
  Value linear(const Value& x, int64_t out) {
    Value w = weight({out, x.shape().back()});
    return dot(x, w, {2}, {1}) + broadcast(weight({out}), {batch, time, out});
  }
  Value norm(const Value& x) {
    Value w = weight({width});
    return layer_norm(x, w, weight({width}), 1e-5);
  }
  Value block(const Value& x) {
    Value qkv = linear(norm(x), 3 * width);
    auto part = [&](int64_t i) {
      return permute(graph::reshape(graph::slice(qkv, {0, 0, i * width}, {batch, time, width}),
                                    {batch, time, heads, width / heads}),
                     {0, 2, 1, 3});
    };
    Value merged = graph::reshape(permute(attention(part(0), part(1), part(2), 0.125, true, {}), {0, 2, 1, 3}),
                                  {batch, time, width});
    Value after = x + linear(merged, width);
    return after + linear(gelu_tanh(linear(norm(after), 4 * width)), width);
  }
};

TEST_CASE("softmax is one kernel") {
  for (const Shape& shape : {Shape{64, 64}, Shape{4, 8, 1000}, Shape{2, 50257}}) {
    Value x = param(shape);
    CHECK(count({{x}, {softmax(x, {static_cast<int64_t>(shape.size()) - 1})}}) == 1);
  }
}

TEST_CASE("layer_norm is one kernel, with a residual in front and a second output too") {
  Value x = param({12, 64, 128}), w = param({128}), b = param({128}), r = param({12, 64, 128});
  CHECK(count({{x, w, b}, {layer_norm(x, w, b, 1e-5)}}) == 1);
  Value sum = x + r;
  CHECK(count({{x, r, w, b}, {sum, layer_norm(sum, w, b, 1e-5)}}) == 1);
}

TEST_CASE("cross-entropy is one kernel") {
  Value logits = param({768, 65}), targets = param({768}, int32);
  CHECK(count({{logits, targets}, {cross_entropy(logits, targets)}}) == 1);
}

TEST_CASE("a chain of elementwise operators is one kernel, whatever moves in between") {
  Value x = param({8, 16}), y = param({16, 8});
  CHECK(count({{x, y}, {exp(permute(x, {1, 0}) * y) + 1.0}}) == 1);
  CHECK(count({{x}, {gelu_tanh(x)}}) == 1);
}

TEST_CASE("an update of all parameters is one launch for each kind of update, whatever their shapes") {
  Graph g;
  std::vector<compiler::Update> updates;
  for (const Shape& shape :
       {Shape{1000, 128}, Shape{128, 384}, Shape{384, 128}, Shape{128, 512}, Shape{512}, Shape{300}}) {
    Value p = param(shape), grad = param(shape), m = param(shape);
    double decay = shape.size() > 1 ? 0.1 : 0.0;
    Value m1 = m * 0.9 + grad * 0.1;
    Value p1 = decay > 0 ? p * (1 - 1e-3 * decay) - m1 * 1e-3 : p - m1 * 1e-3;
    int first = static_cast<int>(g.inputs.size());
    g.inputs.insert(g.inputs.end(), {p, grad, m});
    updates.push_back({static_cast<int>(g.outputs.size()), first});
    g.outputs.push_back(p1);
    updates.push_back({static_cast<int>(g.outputs.size()), first + 2});
    g.outputs.push_back(m1);
  }
  CHECK(count(g, updates) == 2);
}

TEST_CASE("a linear layer is one library call") {
  Value x = param({12, 64, 128}), w = param({512, 128}), b = param({512});
  CHECK(count({{x, w, b}, {dot(x, w, {2}, {1}) + broadcast(b, {12, 64, 512})}}) == 1);
}

TEST_CASE("biases, activations and residuals ride on the product before them") {
  Value x = param({256, 128}), w = param({512, 128}), b = param({512}), r = param({256, 512});
  Value y = dot(x, w, {1}, {1}) + broadcast(b, {256, 512});
  CHECK(count({{x, w, b}, {gelu_tanh(y)}}) == 1);
  CHECK(count({{x, w, b}, {gelu(y)}}) == 1);
  CHECK(count({{x, w, b}, {binary(Op::max, y, zeros_like(y))}}) == 1);
  CHECK(count({{x, w, b, r}, {tanh(y) + r}}) == 1);
  CHECK(count({{x, w, b, r}, {r + y}}) == 1);
  CHECK(count({{x, w, b}, {gelu_tanh(y), y}}) == 2);  // what somebody else reads has to be stored
  CHECK(count({{x, w, b, r}, {y + r * 0.5}}) == 2);   // an expression would have to be stored first
}

TEST_CASE("the gradient of a bias rides on that of its weight") {
  Value x = param({4, 64, 128}), g = param({4, 64, 512});
  CHECK(count({{x, g}, {dot(g, x, {0, 1}, {0, 1}), sum(g, {0, 1})}}) == 1);
  CHECK(count({{x, g}, {sum(g, {0, 1}), dot(x, g, {0, 1}, {0, 1})}}) == 1);
  CHECK(count({{x, g}, {sum(g, {0}), dot(x, g, {0, 1}, {0, 1})}}) == 2);
  Value w = param({512, 128}), b = param({512}), y = dot(x, w, {2}, {1}) + broadcast(b, {4, 64, 512});
  CHECK(count({{x, w, b, g}, pull_back(Values{y}, Values{g}, Values{x, w, b})}) == 2);
}

TEST_CASE("on a GPU the gradient of a bias is a kernel of its own, which reads the operand once") {
  test::NullMachine gpu("NVIDIA H100");
  for (const int64_t rows : {1024, 8192}) {
    const Value x = param({rows, 512}), g = param({rows, 512});
    const auto program = compiler::build({{{x, g}, {dot(g, x, {0}, {0}), sum(g, {0})}}, {}, {}}, gpu);
    INFO(program->print("plan"));
    CHECK(program->stats().library_calls == 1);
    CHECK(program->stats().count() == 2);
    CHECK(program->print("plan").find("sum(") == std::string::npos);
  }
}

TEST_CASE("a GPT-2 block is seven steps forward") {
  Gpt gpt;
  Value x = param({4, 64, 768}), y = gpt.block(x);
  gpt.inputs.push_back(x);
  CHECK(count({gpt.inputs, {y}}) == 7);
}

TEST_CASE("the derivatives of a norm and of a loss are two kernels and one") {
  Value x = param({12, 64, 128}), w = param({128}), b = param({128}), g = param({12, 64, 128});
  Value y = layer_norm(x, w, b, 1e-5);
  CHECK(count({{x, w, b, g}, pull_back(Values{y}, Values{g}, Values{x, w, b})}) == 2);
  for (const int64_t classes : {65, 50257}) {
    Value logits = param({768, classes}), targets = param({768}, int32), seed = param({768});
    const Value loss = cross_entropy(logits, targets), slope = pull_back(Values{loss}, Values{seed}, Values{logits})[0];
    CHECK(count({{logits, targets, seed}, {slope}}) == 1);
    CHECK(count({{logits, targets, seed}, {loss, slope}}) ==
          2);  // the loss, and its derivative from the logsumexp that the loss leaves behind
    const Value average = mean(loss, {0});
    CHECK(count({{logits, targets},
                 {average,
                  pull_back(Values{average}, Values{full({}, float32, Number::of_real(1))}, Values{logits})[0]}}) == 2);
  }
}

TEST_CASE("a training step of a GPT-2 with four layers is 100 steps at most") {
  Gpt gpt{.batch = 12, .time = 64, .width = 128, .heads = 4};
  Value ids = param({12, 64}, int32), targets = param({12, 64}, int32), embedding = gpt.weight({65, 128}),
        positions = gpt.weight({64, 128});
  Value x = take(embedding, ids, 0) + broadcast(positions, {12, 64, 128});
  for (int layer = 0; layer < 4; ++layer) x = gpt.block(x);
  Value loss = mean(cross_entropy(dot(gpt.norm(x), embedding, {2}, {1}), targets), {0, 1});
  Values gradients = pull_back(Values{loss}, Values{full({}, float32, Number::of_real(1))}, gpt.inputs);
  Graph g{{ids, targets}, {loss}};
  std::vector<compiler::Update> updates;
  auto update = [&](const Value& state, const Value& next) {
    updates.push_back({static_cast<int>(g.outputs.size()), static_cast<int>(g.inputs.size())});
    g.inputs.push_back(state);
    g.outputs.push_back(next);
  };
  for (size_t k = 0; k < gradients.size(); ++k) {
    const Value &p = gpt.inputs[k], &grad = gradients[k];
    Value m = param(p.shape()), v = param(p.shape()), m1 = m * 0.9 + grad * 0.1, v1 = v * 0.99 + square(grad) * 0.01;
    update(p, p * (p.shape().size() > 1 ? 0.999 : 1.0) - m1 * rsqrt(v1 + 1e-8) * 1e-3);
    update(m, m1);
    update(v, v1);
  }
  CHECK(count(g, updates) <= 100);
}

TEST_CASE("positions of extremes, sums of exponentials and variances are one kernel each") {
  Value x = param({64, 1000});
  Value best = broadcast(max(x, {1}, true), x.shape());
  Value hit = binary(Op::bit_or, binary(Op::eq, x, best), binary(Op::ne, x, x));
  Value position = select(hit, iota(x.shape(), 1, uint32), full(x.shape(), uint32, Number::of_int(UINT32_MAX)));
  CHECK(count({{x}, {reduce(kernel::Reducer::min, position, {1})}}) == 1);
  CHECK(count({{x}, {logsumexp(x, {1}, false)}}) == 1);
  CHECK(count({{x}, {mean(square(x - broadcast(mean(x, {1}, true), x.shape())), {1})}}) == 1);
}
