// Rows of arrays that matmuls write or read begin at 16 bytes on GPUs, whatever their length.
#include <set>

#include "compiler/pipeline.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/calls/call.h"
#include "graph/derive/derive.h"
#include "graph/instances.h"
#include "graph/regions/composites.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler::testing;
using compiler::NodeId;
using graph::testing::Random;

namespace {

/// The gradient of sum(log(sum(exp(x w + bias)))) by x and w, with the logits stored for both directions.
Graph classifier(Dtype dtype, int64_t rows, int64_t depth, int64_t classes) {
  const Value x = parameter({{rows, depth}, dtype}), w = parameter({{classes, depth}, dtype}),
              bias = parameter({{classes}, dtype});
  const Value logits = dot(x, w, {1}, {1}) + broadcast(bias, {rows, classes});
  const Value e = exp(cast(logits, float32));
  const Value gradient = cast(e / broadcast(sum(e, {1}, true), e.shape()), dtype);
  return {{x, w, bias}, {dot(gradient, w, {1}, {0}), dot(gradient, x, {0}, {0})}};
}

/// The mean cross-entropy of `classes` logits, and its gradients by x, w and bias.
Graph language_model(int64_t batch, int64_t time, int64_t depth, int64_t classes) {
  const Value x = parameter({{batch, time, depth}, bfloat16}), w = parameter({{classes, depth}, bfloat16}),
              bias = parameter({{classes}, bfloat16}), targets = parameter({{batch, time}, int32});
  const Value logits = dot(x, w, {2}, {1}) + broadcast(bias, {batch, time, classes});
  const Value loss = sum(cast(cross_entropy(logits, targets), float32), {0, 1}) * (1.0 / double(batch * time));
  Values results = pull_back(Values{loss}, Values{full({}, float32, Number::of_real(1))}, Values{x, w, bias});
  results.push_back(loss);
  return {{x, w, bias, targets}, std::move(results)};
}

/// An H200 whose library takes every product. Nothing is compiled.
class Planned final : public target::Target {
 public:
  Planned() { machine_ = target::stated_machine("NVIDIA H200"); }
  std::string fingerprint() const override { return "planned"; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return target::null().compile(kernels);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc& desc) const override {
    return target::null().library(desc);
  }
  std::shared_ptr<const target::LibraryCall> call(const kernel::CallDesc& desc) const override {
    return target::null().call(desc);
  }
  target::CompileStats stats() const override { return {}; }
};

/// Returns the strides of all values of this shape that lie in memory.
std::set<Strides> strides_of(const Graph& g, const Shape& shape) {
  static auto& target = *new Planned;
  const compiler::Source source{g, {}, {}};
  const compiler::Policy policy;
  const compiler::Compilation made = compiler::run_passes({source, target, policy}, true);
  std::set<Strides> out;
  for (NodeId id = 0; id < made.ir.size(); ++id)
    if (made.grouping.is_root[id] && made.ir[id].type.shape == shape) out.insert(made.grouping.strides[id]);
  return out;
}

/// A product in float32 without epilogue, element by element.
struct Product final : target::LibraryCall {
  explicit Product(kernel::DotDesc d) : desc(std::move(d)) {}
  std::string name() const override { return "product"; }
  void run(std::span<void* const> operands) const override {
    const auto *a = static_cast<const float*>(operands[0]), *b = static_cast<const float*>(operands[1]);
    auto* c = static_cast<float*>(operands[2]);
    for (int64_t i = 0; i < desc.m; ++i)
      for (int64_t j = 0; j < desc.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < desc.k; ++k)
          sum += double{a[i * desc.a_m + k * desc.a_k]} * double{b[k * desc.b_k + j * desc.b_n]};
        c[i * desc.c_m + j * desc.c_n] = static_cast<float>(sum);
      }
  }
  kernel::DotDesc desc;
};

/// The CPU as a GPU with tensor cores, to which every product is worth padding. Its library takes plain products, or
/// says so and declines when the plan is made; the machine then has no tensor cores for generated code either.
class Worth final : public test::SimtTarget {
 public:
  explicit Worth(bool declines) : declines_(declines) {
    machine_.tensor_cores = true;
    machine_.shared_bytes = 1 << 17;
    machine_.peak = {1e12, 1e12, 1e13, 1e13, 0};
  }
  std::string fingerprint() const override { return "worth"; }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc& desc) const override {
    const bool plain = !desc.bias && !desc.residual && desc.activation == kernel::Activation::none &&
                       desc.sum == kernel::OperandSum::none && desc.batch.empty();
    if (!plain || !machine_.tensor_cores) return nullptr;
    if (declines_) return std::make_shared<Declining>(*own_);
    padded += desc.c_m > desc.n || desc.a_k > desc.m || desc.a_m > desc.k;
    return std::make_shared<Product>(desc);
  }
  mutable int padded = 0;  // products with an array of padded rows

 private:
  struct Declining final : target::LibraryCall {
    explicit Declining(target::Machine& m) : machine(m) {}
    std::string name() const override { return "declining"; }
    bool ready() const override { return machine.tensor_cores = false; }
    void run(std::span<void* const>) const override { throw std::logic_error("a declined call runs"); }
    target::Machine& machine;
  };
  bool declines_;
  target::Machine* own_ = &machine_;
};

/// Builds the graph for the target with padded rows and holds its results against the reference.
void check_values(const Graph& g, target::Target& target, uint64_t seed) {
  Random r(seed);
  std::vector<HostTensor> inputs;
  std::vector<Storage> storage;
  for (const Value& v : g.inputs) inputs.push_back(graph::testing::random_tensor(r, v.type()));
  for (const HostTensor& t : inputs) storage.push_back(to_storage(t));
  compiler::Policy policy;
  policy.numerics.tf32 = true;
  const auto program = compiler::build({g, {}, {}}, target, policy);
  INFO(program->print("plan"));
  const auto results = program->run(storage);
  const auto expected = evaluate_reference(g, inputs);
  for (size_t k = 0; k < expected.size(); ++k)
    CHECK(difference(from_storage(results[k], g.outputs[k].type()), expected[k], 64, 1e-4) == "");
}

}  // namespace

TEST_CASE("the rows of what matmuls write and read begin at 16 bytes") {
  CHECK(strides_of(classifier(bfloat16, 8192, 768, 30522), {8192, 30522}) == std::set<Strides>{{30528, 1}});
  CHECK(strides_of(classifier(bfloat16, 8192, 768, 30528), {8192, 30528}) == std::set<Strides>{{30528, 1}});
  CHECK(strides_of(classifier(float16, 4096, 512, 50257), {4096, 50257}) == std::set<Strides>{{50264, 1}});
}

TEST_CASE("logits and their gradient have padded rows, through the loss of a language model") {
  CHECK(strides_of(language_model(64, 128, 768, 30522), {64, 128, 30522}) ==
        std::set<Strides>{{128 * 30528, 30528, 1}});
}

TEST_CASE("small matmuls, products in float32 and outputs keep dense rows") {
  CHECK(strides_of(classifier(bfloat16, 64, 32, 65), {64, 65}) == std::set<Strides>{{65, 1}});
  CHECK(strides_of(classifier(float32, 8192, 768, 30522), {8192, 30522}) == std::set<Strides>{{30522, 1}});
  const Value x = parameter({{8192, 768}, bfloat16}), w = parameter({{768, 1001}, bfloat16});
  CHECK(strides_of({{x, w}, {dot(x, w, {1}, {0})}}, {8192, 1001}) == std::set<Strides>{{1001, 1}});
  const Value y = dot(x, w, {1}, {0}), table = parameter({{1001, 1001}, bfloat16});
  const Value whole = sort(y, 1).values;  // a routine reads it as one dense array
  CHECK(strides_of({{x, w, table}, {whole, dot(y, table, {1}, {0})}}, {8192, 1001}) == std::set<Strides>{{1001, 1}});
}

TEST_CASE("programs with padded rows have the values of the reference, also where the library declines") {
  Random r(3);
  Worth takes(false);
  for (int round = 0; round < 12; ++round) {
    const int64_t rows = r.below(20) + 1, depth = r.below(12) + 1, classes = r.below(60) + 5;
    CAPTURE(rows);
    CAPTURE(depth);
    CAPTURE(classes);
    check_values(classifier(float32, rows, depth, classes), takes, static_cast<uint64_t>(round));
    Worth declining(true);
    check_values(classifier(float32, rows, depth, classes), declining, static_cast<uint64_t>(round));
  }
  CHECK(takes.padded > 12);
}
