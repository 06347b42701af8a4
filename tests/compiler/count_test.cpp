// The fusion contract: how many launches, library calls and copies named pieces of work become. Counted on the null target, which runs nothing.
#include "compiler/support.h"
#include "graph/composites.h"

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
  for (const Shape& shape : {Shape{1000, 128}, Shape{128, 384}, Shape{384, 128}, Shape{128, 512}, Shape{512}, Shape{300}}) {
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
