// Attention by a library: how often it is called, and that its arrays lie as the descriptor says, where operands are
// computed, where heads are grouped, and where results are read by others.
#include <map>
#include <random>

#include "compiler/compiled_when_run.h"
#include "compiler/support.h"
#include "graph/derive/derive.h"
#include "graph/instances.h"
#include "graph/regions/composites.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler::testing;

namespace {

using kernel::AttentionDesc;

/// Computes what a descriptor says, in double, on float32 arrays.
class HostAttention final : public target::LibraryCall {
 public:
  explicit HostAttention(AttentionDesc desc) : d_(std::move(desc)) {}
  std::string name() const override { return "host"; }
  void run(std::span<void* const> operands) const override {
    for (int64_t batch = 0; batch < d_.batch; ++batch)
      for (int64_t head = 0; head < d_.heads; ++head) {
        const Head h{operands, batch, head, d_.heads / d_.kv_heads};
        if (d_.derivative) derivative(h);
        else forward(h);
      }
  }

 private:
  struct Head {
    std::span<void* const> operands;
    int64_t batch, head, sharing;  // heads that share keys and values
    float& at(size_t operand, const AttentionDesc::Strides& s, int64_t row, int64_t column) const {
      const int64_t own = operand == 1 || operand == 2 ? head / sharing : head;
      return static_cast<float*>(operands[operand])[batch * s[0] + own * s[1] + row * s[2] + column * s[3]];
    }
  };
  AttentionDesc::Strides lse() const { return {d_.heads * d_.queries, d_.queries, 1, 0}; }
  double score(const Head& h, int64_t row, int64_t key) const {
    if (d_.causal && key > row + d_.keys - d_.queries) return -INFINITY;
    double sum = 0;
    for (int64_t c = 0; c < d_.width; ++c) sum += double{h.at(0, d_.q, row, c)} * double{h.at(1, d_.k, key, c)};
    return sum * d_.scale;
  }
  void forward(const Head& h) const {
    for (int64_t row = 0; row < d_.queries; ++row) {
      double total = 0;
      for (int64_t key = 0; key < d_.keys; ++key) total += std::exp(score(h, row, key));
      h.at(4, lse(), row, 0) = static_cast<float>(std::log(total));
      for (int64_t c = 0; c < d_.value_width; ++c) {
        double sum = 0;
        for (int64_t key = 0; key < d_.keys; ++key)
          sum += std::exp(score(h, row, key)) / total * double{h.at(2, d_.v, key, c)};
        h.at(3, d_.o, row, c) = static_cast<float>(sum);
      }
    }
  }
  void derivative(const Head& h) const {
    const auto zero = [&](size_t operand, const AttentionDesc::Strides& s, int64_t rows, int64_t columns) {
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) h.at(operand, s, i, j) = 0;
    };
    zero(6, d_.dq, d_.queries, d_.width), zero(7, d_.dk, d_.keys, d_.width), zero(8, d_.dv, d_.keys, d_.value_width);
    for (int64_t row = 0; row < d_.queries; ++row)
      for (int64_t key = 0; key < d_.keys; ++key) {
        const double p = std::exp(score(h, row, key) - double{h.at(4, lse(), row, 0)});
        double slope = 0;
        for (int64_t c = 0; c < d_.value_width; ++c) {
          const double g = double{h.at(5, d_.g, row, c)};
          slope += g * (double{h.at(2, d_.v, key, c)} - double{h.at(3, d_.o, row, c)});
          h.at(8, d_.dv, key, c) += static_cast<float>(p * g);
        }
        for (int64_t c = 0; c < d_.width; ++c) {
          h.at(6, d_.dq, row, c) += static_cast<float>(d_.scale * p * slope * double{h.at(1, d_.k, key, c)});
          h.at(7, d_.dk, key, c) += static_cast<float>(d_.scale * p * slope * double{h.at(0, d_.q, row, c)});
        }
      }
  }

  AttentionDesc d_;
};

/// What is compiled as for a GPU, and runs on the CPU: its library takes every attention of float32.
class WithLibrary final : public target::Target {
 public:
  WithLibrary() {
    machine_ = target::cpu().machine();
    machine_.simt = true;
  }
  std::string fingerprint() const override { return "attention library " + target::cpu().fingerprint(); }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return weft::test::compile_when_run(kernels);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc&) const override { return nullptr; }
  std::shared_ptr<const target::LibraryCall> attention(const AttentionDesc& desc) const override {
    if (desc.dtype != float32) return nullptr;
    return std::make_shared<HostAttention>(desc);
  }
  target::CompileStats stats() const override { return {}; }
};

struct Sizes {
  int64_t batch, rows, heads, kv_heads, width;
};

/// A decoder's attention: projections [batch, rows, heads · width], by head, queries and keys computed once more (as
/// rotations are), key heads that several heads share; its result, or that and the gradients of the projections.
Graph decoder_attention(const Sizes& s, bool gradients) {
  const int64_t shared = s.heads / s.kv_heads;
  const auto projection = [&](int64_t heads) { return parameter({{s.batch, s.rows, heads * s.width}, float32}); };
  const Value x = projection(s.heads), y = projection(s.kv_heads), z = projection(s.kv_heads);
  const auto by_head = [&](const Value& v, int64_t heads) {
    return permute(graph::reshape(v, {s.batch, s.rows, heads, s.width}), {0, 2, 1, 3});
  };
  const auto rotated = [&](const Value& v) {
    return concat({graph::exp(graph::slice_axis(v, 3, 0, s.width / 2)) * 0.3,
                   graph::slice_axis(v, 3, s.width / 2, s.width / 2) * 2.0},
                  3);
  };
  const auto repeated = [&](const Value& v) {
    return broadcast(expand_dims(v, {2}), {s.batch, s.kv_heads, shared, s.rows, s.width});
  };
  Value q = rotated(by_head(x, s.heads)), k = rotated(by_head(y, s.kv_heads)), v = by_head(z, s.kv_heads);
  if (shared > 1) {
    q = graph::reshape(q, {s.batch, s.kv_heads, shared, s.rows, s.width});
    k = repeated(k), v = repeated(v);
  }
  const Value o = graph::reshape(attention(q, k, v, 0.4, true, {}), {s.batch, s.heads, s.rows, s.width});
  const Value merged = graph::reshape(permute(o, {0, 2, 1, 3}), {s.batch, s.rows, s.heads * s.width});
  Graph g{{x, y, z}, {merged}};
  if (!gradients) return g;
  g.inputs.push_back(projection(s.heads));
  for (const Value& slope : pull_back(Values{merged}, Values{g.inputs.back()}, Values{x, y, z}))
    g.outputs.push_back(slope);
  return g;
}

std::map<std::string, int> calls(const compiler::Program& program) {
  std::map<std::string, int> out;
  for (const compiler::StepInfo& step : program.steps())
    if (step.what.find("host") != std::string::npos) ++out[step.name.substr(0, step.name.find(' '))];
  return out;
}

/// Random values of a graph's inputs, for the reference and for a program.
std::pair<std::vector<HostTensor>, std::vector<graph::Storage>> random_inputs(const Graph& g, uint64_t seed) {
  graph::testing::Random random(seed);
  std::pair<std::vector<HostTensor>, std::vector<graph::Storage>> out;
  for (const Value& v : g.inputs) {
    out.first.push_back(graph::testing::random_tensor(random, v.type()));
    out.second.push_back(to_storage(out.first.back()));
  }
  return out;
}

}  // namespace

TEST_CASE("gradients of queries, keys and values that are parts of one array are stored as its gradient") {
  // One after the other in each row: as slices of its last axis, or of an axis of three before the heads.
  WithLibrary target;
  const Sizes s{2, 9, 4, 4, 8};
  for (const bool by_axis : {false, true}) {
    CAPTURE(by_axis);
    const Value x = parameter({{s.batch, s.rows, 3 * s.heads * s.width}, float32});
    const Value of_axis = graph::reshape(x, {s.batch, s.rows, 3, s.heads, s.width});
    const auto part = [&](int64_t k) {
      const int64_t line = s.heads * s.width;
      const Value own = by_axis ? graph::slice_axis(of_axis, 2, k, 1) : graph::slice_axis(x, 2, k * line, line);
      return permute(graph::reshape(own, {s.batch, s.rows, s.heads, s.width}), {0, 2, 1, 3});
    };
    const Value o = attention(part(0), part(1), part(2), 0.4, true, {}), slope = parameter(o.type());
    const Value gradient = pull_back(Values{o}, Values{slope}, Values{x})[0], w = parameter({{96, 5}, float32});
    const Graph g{{x, slope, w}, {dot(gradient, w, {2}, {0})}};
    const auto [inputs, storage] = random_inputs(g, 12);
    const auto program = compiler::build({g, {}, {}}, target);
    INFO(program->print("plan"));
    CHECK(calls(*program) == std::map<std::string, int>{{"attention", 1}, {"attention_vjp", 1}});
    CHECK(program->stats().launches == 1);  // the product reads the parts as one array
    const auto got = program->run(storage);
    const auto expected = evaluate_reference(g, inputs);
    CHECK(difference(from_storage(got[0], g.outputs[0].type()), expected[0], 256, 1e-5) == "");
  }
}

TEST_CASE("a library computes attention in one call and its three gradients in one, whatever its operands are") {
  WithLibrary target;
  for (const Sizes& s :
       {Sizes{2, 9, 4, 4, 8}, Sizes{2, 9, 4, 2, 8}, Sizes{3, 8, 6, 2, 16}, Sizes{2, 8, 4, 1, 8}, Sizes{1, 12, 4, 2, 8}})
    for (const bool gradients : {false, true}) {
      CAPTURE(s.batch);
      CAPTURE(s.kv_heads);
      CAPTURE(gradients);
      const Graph g = decoder_attention(s, gradients);
      const auto [inputs, storage] = random_inputs(g, 11);
      const auto program = compiler::build({g, {}, {}}, target);
      INFO(program->print("plan"));
      std::map<std::string, int> expected_calls{{"attention", 1}};
      if (gradients) expected_calls["attention_vjp"] = 1;
      CHECK(calls(*program) == expected_calls);
      // Without derivatives keys and values that heads share lie in memory once.
      const bool shared = program->print("plan").find(" key heads") != std::string::npos;
      CHECK(shared == (!gradients && s.kv_heads < s.heads));
      const auto got = program->run(storage);
      const auto expected = evaluate_reference(g, inputs);
      for (size_t k = 0; k < expected.size(); ++k)
        CHECK(difference(from_storage(got[k], g.outputs[k].type()), expected[k], 256, 1e-5) == "");
    }
}
