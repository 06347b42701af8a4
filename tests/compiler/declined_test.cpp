// Libraries that decline once their plan is made: generated code takes the place of their steps, and of no other.
#include <set>

#include "compiler/compiled_when_run.h"
#include "compiler/support.h"
#include "graph/calls/call.h"
#include "graph/instances.h"
#include "graph/regions/composites.h"
#include "graph/regions/convolution.h"
#include "runtime/trace.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

/// A CPU whose library says that it takes products, attention and routines, and changes its mind when its plan is made.
class DecliningTarget final : public target::Target {
 public:
  DecliningTarget() { machine_ = target::cpu().machine(); }
  std::string fingerprint() const override { return "declining " + target::cpu().fingerprint(); }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return weft::test::compile_when_run(kernels);
  }
  std::vector<std::shared_ptr<const target::Executable>> begin(std::span<const kernel::Kernel> kernels,
                                                               std::span<const std::vector<size_t>>) override {
    begun += static_cast<int>(kernels.size());
    return compile(kernels);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc& desc) const override {
    // Declined with whatever epilogue: the library has no algorithm for the shape.
    const std::string text = desc.to_string();
    return call_of(products, text.substr(0, text.find(' ', text.find('x'))));
  }
  std::shared_ptr<const target::LibraryCall> attention(const kernel::AttentionDesc& desc) const override {
    return call_of(attentions, desc.to_string());
  }
  std::shared_ptr<const target::LibraryCall> call(const kernel::CallDesc& desc) const override {
    auto mine = call_of(routines, desc.to_string());
    return mine || routines ? mine : target::cpu().call(desc);
  }
  target::CompileStats stats() const override { return {}; }

  bool products = false, attentions = false, routines = false;  // which of them it says it takes
  int begun = 0;                                                // kernels
  mutable std::set<std::string> declined;

 private:
  struct Call final : target::LibraryCall {
    Call(const DecliningTarget& made_by, std::string of) : owner(made_by), desc(std::move(of)) {}
    std::string name() const override { return "declining"; }
    bool ready() const override {
      owner.declined.insert(desc);
      return false;
    }
    void run(std::span<void* const>) const override { throw std::logic_error("a declined call runs"); }
    const DecliningTarget& owner;
    std::string desc;
  };
  std::shared_ptr<const target::LibraryCall> call_of(bool takes, std::string desc) const {
    if (!takes || declined.contains(desc)) return nullptr;
    return std::make_shared<Call>(*this, std::move(desc));
  }
};

std::vector<HostTensor> random_inputs(const Graph& g) {
  graph::testing::Random r(7);
  std::vector<HostTensor> inputs;
  for (const Value& v : g.inputs) inputs.push_back(graph::testing::random_tensor(r, v.type()));
  return inputs;
}

/// Builds the source for `target` and runs it: "" where its results are those of the reference.
std::string check(const Source& source, DecliningTarget& target, std::shared_ptr<const Program>* kept = nullptr) {
  const std::vector<HostTensor> inputs = random_inputs(source.graph);
  const auto program = build(source, target);
  if (kept) *kept = program;
  std::vector<graph::Storage> storage;
  for (const HostTensor& t : inputs) storage.push_back(to_storage(t));
  const auto results = program->run(storage);
  const auto expected = evaluate_reference(source.graph, inputs);
  for (size_t k = 0; k < expected.size(); ++k)
    if (auto error = difference(from_storage(results[k], source.graph.outputs[k].type()), expected[k], 64, 1e-4);
        !error.empty())
      return error + "\n" + program->print("plan");
  return {};
}

/// Attention over heads that lie behind the rows, as parts of one array; with the gradients as one array again.
Graph attention_step(int64_t batch, int64_t rows, int64_t heads, int64_t width, bool causal) {
  const Value all = parameter({{batch, rows, 3, heads, width}, float32});
  const auto part = [&](int64_t i) {
    return permute(
        graph::reshape(graph::slice(all, {0, 0, i, 0, 0}, {batch, rows, 1, heads, width}), {batch, rows, heads, width}),
        {0, 2, 1, 3});
  };
  const Value o = attention(part(0), part(1), part(2), 0.5, causal, {}, {});
  const Value cotangent = parameter({{batch, rows, heads * width}, float32});
  const Value by_head = permute(graph::reshape(cotangent, {batch, rows, heads, width}), {0, 2, 1, 3});
  const Values gradients =
      o.node->attrs().composite->vjp(o.node->inputs(), Values{o, {o.node, 1}}, Values{by_head, {}});
  Values parts;
  for (const Value& g : gradients)
    if (g) parts.push_back(graph::reshape(permute(g, {0, 2, 1, 3}), {batch, rows, 1, heads, width}));
  const Value flat = graph::reshape(permute(o, {0, 2, 1, 3}), {batch, rows, heads * width});
  return {{all, cotangent}, {graph::exp(flat), graph::concat(parts, 2)}};
}

}  // namespace

TEST_CASE("a product that its library declines is computed by a kernel in its place; the program is built once") {
  DecliningTarget target;
  target.products = true;
  const Value x = parameter({{64, 48}, float32}), w = parameter({{48, 80}, float32}), b = parameter({{80}, float32});
  const Value y = graph::dot(x, w, {1}, {0}) + graph::broadcast(b, {64, 80});
  const Source source{{{x, w, b}, {graph::softmax(graph::tanh(y), {1})}}, {}, {}};
  const int64_t built = runtime::counters().programs_built;
  std::shared_ptr<const Program> program;
  CHECK(check(source, target, &program) == "");
  CHECK(runtime::counters().programs_built == built + 1);
  CHECK(program->stats().library_calls == 0);
  CHECK(target.declined.size() == 1);
}

TEST_CASE("attention that its library declines is inlined in its place, forward and backward") {
  for (const bool causal : {false, true}) {
    DecliningTarget target;
    target.attentions = true;
    std::shared_ptr<const Program> program;
    CHECK(check({attention_step(2, 24, 3, 8, causal), {}, {}}, target, &program) == "");
    CHECK(target.declined.size() == 2);
    CHECK(program->stats().library_calls == 0);
  }
}

TEST_CASE("products inside of inlined attention may be declined as well") {
  DecliningTarget target;
  target.attentions = target.products = true;
  CHECK(check({attention_step(1, 40, 2, 16, true), {}, {}}, target) == "");
  CHECK(target.declined.size() > 2);
}

TEST_CASE("equal declined steps of several layers are compiled once") {
  const auto layers = [](int count) {
    Graph g;
    Value x = parameter({{2, 3, 24, 8}, float32});
    g.inputs.push_back(x);
    for (int k = 0; k < count; ++k) {
      const Value w = parameter({{8, 8}, float32}, k);
      g.inputs.push_back(w);
      x = graph::tanh(graph::dot(attention(x, x, x, 0.5, false, {}, {}), w, {3}, {0}));
    }
    g.outputs = {x};
    return g;
  };
  const auto begun = [&](int count) {
    DecliningTarget target;
    target.attentions = true;
    CHECK(check({layers(count), {}, {}}, target) == "");
    return target.begun;
  };
  CHECK(begun(6) == begun(3));
}

TEST_CASE("a declined product that takes over the memory of what it adds to still does") {
  DecliningTarget target;
  target.products = true;
  const Value x = parameter({{256, 64}, float32}), w = parameter({{64, 256}, float32}),
              sum = parameter({{256, 256}, float32});
  const Graph g{{x, w, sum}, {sum + graph::dot(x, w, {1}, {0})}};
  std::shared_ptr<const Program> program;
  CHECK(check({g, {}, {{0, 2}}}, target, &program) == "");
  CHECK(program->stats().library_calls == 0);
  CHECK(program->stats().copies == 0);
}

TEST_CASE("inputs of a declined step may lie in any strides") {
  DecliningTarget target;
  target.products = true;
  const Value x = parameter({{48, 64}, float32}), w = parameter({{48, 80}, float32});
  const Graph g{{x, w}, {graph::dot(x, w, {0}, {0}), graph::dot(w, x, {0}, {0})}};
  const auto inputs = random_inputs(g);
  const Source source{g, {{{1, 48}}, {{1, 48}}}, {}};
  const auto program = build(source, target);
  std::vector<graph::Storage> storage;
  for (const HostTensor& t : inputs) storage.push_back(to_storage(t, {1, 48}));
  const auto results = program->run(storage);
  const auto expected = evaluate_reference(g, inputs);
  for (size_t k = 0; k < expected.size(); ++k)
    CHECK(difference(from_storage(results[k], g.outputs[k].type()), expected[k], 64, 1e-4) == "");
}

TEST_CASE("a region that names a routine is inlined where the routine is declined") {
  DecliningTarget target;
  target.routines = true;
  Value x = parameter({{2, 8, 8, 3}, float32}), w = parameter({{4, 3, 3, 3}, float32});
  const Graph g{
      {x, w},
      {graph::convolution(
          x, w, {.stride = {1, 1}, .low = {1, 1}, .high = {1, 1}, .dilation = {1, 1}, .input_dilation = {1, 1}})}};
  std::shared_ptr<const Program> program;
  CHECK(check({g, {}, {}}, target, &program) == "");
  CHECK(target.declined.size() == 1);
  CHECK(program->stats().library_calls == 0);
}

TEST_CASE("a declined routine that nothing else can compute is an error that names it") {
  DecliningTarget target;
  target.routines = true;
  Value x = parameter({{16, 8}, float32});
  CHECK_THROWS_WITH_AS(build({{{x}, {sort(x, 1).values}}, {}, {}}, target), doctest::Contains("sort"),
                       std::runtime_error);
}
