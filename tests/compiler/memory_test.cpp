// What a program keeps in memory, and what it does not move: results that take over memory, gradients side by side,
// products with more than generated code can do.
#include <cstring>

#include "compiler/support.h"
#include "graph/derive/derive.h"
#include "graph/regions/composites.h"
#include "target/cuda/libraries/cublaslt.h"

using namespace weft;
using namespace weft::graph;

namespace {

Value param(Shape shape, Dtype dtype = float32) { return parameter({std::move(shape), dtype}); }

class NoCode final : public target::Executable {
 public:
  void run(std::span<const target::Segment>, double) const override {}
};

class NamedCall final : public target::LibraryCall {
 public:
  explicit NamedCall(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  void run(std::span<void* const>) const override {}

 private:
  std::string name_;
};

/// Plans as for a GPU with cuBLASLt and cuDNN, and computes nothing.
class Planned final : public target::Target {
 public:
  Planned() { machine_ = target::gpu_of("sm_80"); }
  std::string fingerprint() const override { return "planned"; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return std::vector<std::shared_ptr<const target::Executable>>(kernels.size(), std::make_shared<NoCode>());
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc& desc) const override {
    return target::cuda::cublaslt_form(desc) ? std::make_shared<NamedCall>(desc.to_string()) : nullptr;
  }
  std::shared_ptr<const target::LibraryCall> attention(const kernel::AttentionDesc& desc) const override {
    return std::make_shared<NamedCall>(desc.to_string());
  }
  target::CompileStats stats() const override { return {}; }
};

struct Planning {
  int64_t arena = 0;
  std::vector<compiler::StepInfo> steps;
  int named(const std::string& part) const {
    return static_cast<int>(std::count_if(steps.begin(), steps.end(), [&](const auto& s) {
      return (s.name + " " + s.what).find(part) != std::string::npos;
    }));
  }
};

Planning planned(const Graph& g) {
  static auto& target = *new Planned;
  const auto program = compiler::build({g, {}, {}}, target);
  return {program->stats().arena_bytes, program->steps()};
}

/// Logits of a product, their loss, and what comes back to both operands.
Graph classifier(int64_t rows, int64_t classes, Dtype dtype) {
  const Value x = param({rows, 64}, dtype), w = param({classes, 64}, dtype), targets = param({rows}, int32),
              seed = param({rows});
  const Value logits = cast(dot(x, w, {1}, {1}), float32), loss = cross_entropy(logits, targets);
  const Values slopes = pull_back(Values{loss}, Values{seed}, Values{x, w});
  return {{x, w, targets, seed}, {loss, slopes[0], slopes[1]}};
}

/// x · w, of which every row's softmax is read before and after the product itself is.
Graph read_again() {
  const Value x = param({1024, 64}), w = param({512, 64}), v = param({512, 16});
  const Value a = dot(x, w, {1}, {1}), s = softmax(a, {1}), c = dot(s, v, {1}, {0});
  const Value late = exp(a * broadcast(sum(c, {1}, true), {1024, 512}) * 0.01);
  return {{x, w, v}, {c, sum(late, {1}), sum(s * 2.0 + a, {0})}};
}

/// Results on the CPU, byte for byte, where large results may take over memory and where they may not. `smaller`: the
/// step that takes most profits.
void check_same_bytes(const Graph& g, bool smaller) {
  std::vector<Storage> inputs;
  for (const Value& v : g.inputs) {
    HostTensor t{v.type(), {}};
    for (int64_t k = 0; k < num_elements(v.shape()); ++k)
      t.data.push_back(is_integer(v.dtype()) ? Number::of_int(k * 7 % 61)
                                             : Number::of_real(std::sin(0.37 * static_cast<double>(k % 4001) +
                                                                        static_cast<double>(inputs.size()))));
    inputs.push_back(compiler::testing::to_storage(t));
  }
  compiler::Policy apart = compiler::default_policy();
  apart.update_in_place = false;
  const auto with = compiler::build({g, {}, {}}, target::cpu()),
             without = compiler::build({g, {}, {}}, target::cpu(), apart);
  CHECK(with->stats().arena_bytes <= without->stats().arena_bytes);
  CHECK((with->stats().arena_bytes < without->stats().arena_bytes) == smaller);
  const auto got = with->run(inputs), expected = without->run(inputs);
  for (size_t k = 0; k < got.size(); ++k) {
    CAPTURE(k);
    const auto bytes = static_cast<size_t>(num_elements(g.outputs[k].shape())) * g.outputs[k].dtype().size();
    CHECK(std::memcmp(got[k].buffer->data(), expected[k].buffer->data(), bytes) == 0);
  }
}

}  // namespace

TEST_CASE("the gradient of logits lies where the logits were") {
  const int64_t bytes = 4096 * 1024 * 2;
  const Planning plan = planned(classifier(4096, 1024, bfloat16));
  CHECK(plan.arena >= bytes);
  CHECK(plan.arena < bytes + bytes / 4);
}

TEST_CASE("results that take over memory are those of programs where none does") {
  check_same_bytes(classifier(2048, 512, float32), true);
  const Value x = param({1024, 512}), w = param({512, 512});
  const Value h = dot(x, w, {1}, {1}), y = gelu_tanh(h), z = layer_norm(dot(y, w, {1}, {1}), {}, {}, 1e-5);
  check_same_bytes({{x, w}, {dot(z, w, {1}, {1}), sum(z * z, {0})}}, false);
  check_same_bytes(read_again(), false);
}

TEST_CASE("gradients of queries, keys and values go side by side into that of the product they came from") {
  const int64_t batch = 4, time = 64, width = 128, heads = 4;
  for (const Dtype dtype : {float32, bfloat16}) {
    const Value x = param({batch, time, width}, dtype), w = param({3 * width, width}, dtype),
                g = param({batch, heads, time, width / heads}, dtype);
    const auto attended = [&](const Value& qkv) {
      const auto part = [&](int64_t i) {
        return permute(graph::reshape(graph::slice(qkv, {0, 0, i * width}, {batch, time, width}),
                                      {batch, time, heads, width / heads}),
                       {0, 2, 1, 3});
      };
      return attention(part(0), part(1), part(2), 0.2, true, {});
    };
    const Value qkv = dot(x, w, {2}, {1});
    const Graph graph{{x, w, g}, pull_back(Values{attended(qkv)}, Values{g}, Values{x, w})};
    // Attention and its derivative, a product before and two behind.
    CHECK(compiler::build({graph, {}, {}}, target::null())->stats().count() == 5);
    if (dtype == bfloat16) CHECK(planned(graph).steps.size() == 5);
  }
}

TEST_CASE("gelu and its slope ride on 16-bit products where a library takes them") {
  for (const Dtype dtype : {bfloat16, float16, float32}) {
    const Value x = param({4, 64, 128}, dtype), w = param({512, 128}, dtype), b = param({512}, dtype),
                v = param({128, 512}, dtype), g = param({4, 64, 128}, dtype);
    const Value h = dot(x, w, {2}, {1}) + broadcast(b, {4, 64, 512}), y = dot(gelu_tanh(h), v, {2}, {1});
    const Graph graph{{x, w, b, v, g}, pull_back(Values{y}, Values{g}, Values{x, w, v})};
    const Planning plan = planned(graph);
    CHECK(plan.named("gelu_tanh +argument") == (dtype == float32 ? 0 : 1));
    CHECK(plan.named("gelu_tanh'") == (dtype == float32 ? 0 : 1));
    if (dtype != float32) CHECK(plan.steps.size() == 5);  // the product, and four on the way back
    // Another activation, or another's slope, is left alone.
    const Value other = dot(gelu(h), v, {2}, {1});
    const Planning without = planned({{x, w, b, v, g}, pull_back(Values{other}, Values{g}, Values{x, w, v})});
    CHECK(without.named("gelu_tanh") == 0);
  }
}

TEST_CASE("what an embedding that is also the head gathers is added up in float32") {
  const int64_t vocab = 256, width = 64, rows = 512;
  const Value w = param({vocab, width}, bfloat16), ids = param({rows}, int32), g = param({rows, width}, bfloat16),
              x = param({rows, width}, bfloat16), dl = param({rows, vocab}, bfloat16);
  const Value taken = gather(w, {ids}, {0}, {1, width}), logits = dot(x, w, {1}, {1});
  const Values slopes = pull_back(Values{graph::reshape(taken, {rows, width}), logits}, Values{g, dl}, Values{w});
  CHECK(slopes[0].dtype() == bfloat16);
  const Planning plan = planned({{w, ids, g, x, dl}, slopes});
  CHECK(plan.named("bf16xbf16->f32") == 1);  // the product's result is widened as it is stored
  CHECK(plan.steps.size() == 3);             // product, additions, rounding
  CHECK(planned({{w, ids, g, x, dl}, {cast(slopes[0], float32)}}).steps.size() == 3);
}
