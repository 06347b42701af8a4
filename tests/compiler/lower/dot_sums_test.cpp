// The gradient of a bias beside the product that it comes from: sums over each 128 rows of a result ride on it where a
// library makes them.
#include "base/half.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/derive/derive.h"
#include "graph/regions/composites.h"
#include "kernel/describe/dot_form.h"
#include "kernels/gemm/desc.h"

using namespace weft;
using namespace weft::graph;
using kernel::PreActivation;

namespace {

/// Many threads, and a library that takes what our own kernel for products takes, computed as the descriptor says.
class Summing final : public target::Target {
 public:
  explicit Summing(bool sums) : sums_(sums) {
    machine_ = weft::test::as_gpu({});
    machine_.min_lanes = machine_.max_lanes = 32;
    machine_.vector_registers = 64;
  }
  std::string fingerprint() const override {
    return (sums_ ? "summing " : "not summing ") + target::cpu().fingerprint();
  }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return weft::test::compile_when_run(kernels);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc& desc) const override {
    if (desc.sum != kernel::OperandSum::none && !sums_) return nullptr;
    const kernel::DotDesc merged = kernel::with_merged_batch(desc);
    const bool taken =
        merged.batch.empty() && !kernels::gemm_kernels(desc, target::stated_machine("NVIDIA H200"), 1).empty();
    return taken ? std::make_shared<Product>(merged) : nullptr;
  }
  target::CompileStats stats() const override { return {}; }

 private:
  struct Product final : target::LibraryCall {
    explicit Product(kernel::DotDesc desc) : d(std::move(desc)) {}
    std::string name() const override { return d.to_string(); }
    void run(std::span<void* const> operands) const override {
      const auto real = [](const void* p, int64_t at) { return bf16_to_float(static_cast<const uint16_t*>(p)[at]); };
      const auto put = [](void* p, int64_t at, float v) { static_cast<uint16_t*>(p)[at] = float_to_bf16(v); };
      const bool has_pre_activation = d.pre_activation != PreActivation::none;
      auto* sums = d.sum == kernel::OperandSum::c
                       ? static_cast<float*>(operands[operands.size() - (has_pre_activation ? 3 : 2)])
                       : nullptr;
      for (int64_t i = 0; sums && i < d.m / kernel::rows_of_a_sum * d.n; ++i) sums[i] = 0;
      for (int64_t i = 0; i < d.m; ++i)
        for (int64_t j = 0; j < d.n; ++j) {
          float sum = d.bias ? real(operands[2], j) : 0;
          for (int64_t l = 0; l < d.k; ++l)
            sum += real(operands[0], i * d.a_m + l * d.a_k) * real(operands[1], l * d.b_k + j * d.b_n);
          const int64_t at = i * d.c_m + j;
          if (d.residual) sum += real(operands[d.bias ? 3 : 2], at);
          if (d.pre_activation == PreActivation::stored) put(operands[operands.size() - 2], at, sum);
          const float x = d.pre_activation == PreActivation::derivative ? real(operands[operands.size() - 2], at) : sum,
                      root = 0.7978845608f;
          const float t = std::tanh(root * (x + 0.044715f * x * x * x)),
                      slope = 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * root * (1 + 3 * 0.044715f * x * x);
          if (d.pre_activation == PreActivation::derivative) sum *= slope;
          else if (d.activation == kernel::Activation::gelu_tanh) sum = 0.5f * x * (1 + t);
          put(operands.back(), at, sum);
          if (sums) sums[i / kernel::rows_of_a_sum * d.n + j] += real(operands.back(), at);
        }
    }
    kernel::DotDesc d;
  };
  bool sums_;
};

Value param(Shape shape) { return parameter({std::move(shape), bfloat16}); }

compiler::testing::HostTensor numbers(const Shape& shape, double scale) {
  compiler::testing::HostTensor t{{shape, bfloat16}, {}};
  uint64_t state = static_cast<uint64_t>(num_elements(shape));
  for (int64_t k = 0; k < num_elements(shape); ++k) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    t.data.push_back(Number::of_real(
        bf16_to_float(float_to_bf16(static_cast<float>(scale * (static_cast<double>(state >> 40) / (1 << 23) - 1))))));
  }
  return t;
}

}  // namespace

TEST_CASE("sums of a result's rows are made with the product, and are the sums of what it stores") {
  const Shape rows = {2, 128, 1280}, wide = {2, 128, 64};  // as deep as it takes
  const Value x = param(rows), w = param({64, 1280}), b = param({64}), v = param({1280, 64}), g = param(rows);
  const Value h = dot(x, w, {2}, {1}) + broadcast(b, wide), y = dot(gelu_tanh(h), v, {2}, {1});
  const Graph graph{{x, w, b, v, g}, pull_back(Values{y}, Values{g}, Values{x, w, b, v})};
  std::vector<graph::Storage> inputs;
  for (const auto& t :
       {numbers(rows, 1), numbers({64, 1280}, 0.05), numbers({64}, 1), numbers({1280, 64}, 0.05), numbers(rows, 1)})
    inputs.push_back(compiler::testing::to_storage(t));
  std::vector<std::vector<compiler::testing::HostTensor>> results;
  for (const bool sums : {true, false}) {
    static auto *const with = new Summing(true), *const without =
                                                     new Summing(false);  // programs in the table outlive tests
    Summing& target = sums ? *with : *without;
    const auto program = compiler::build({graph, {}, {}}, target);
    INFO(program->print("plan"));
    int with_sums = 0, reductions = 0;
    for (const compiler::StepInfo& s : program->steps()) {
      with_sums += s.name.find("sum(c)") != std::string::npos;
      reductions += s.name.starts_with("column_sum") || s.name.starts_with("row_sum");
    }
    CHECK(with_sums == (sums ? 1 : 0));
    CHECK(reductions == (sums ? 1 : 2));  // of the parts; or of parts of the gradient, and of those
    const auto out = program->run(inputs);
    results.emplace_back();
    for (size_t k = 0; k < out.size(); ++k)
      results.back().push_back(compiler::testing::from_storage(out[k], graph.outputs[k].type()));
  }
  for (size_t k = 0; k < results[0].size(); ++k)
    CHECK(compiler::testing::difference(results[0][k], results[1][k], 1) == "");
}
