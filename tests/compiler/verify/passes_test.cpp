// Every pass on graphs that it changes: the values of their outputs stay what they were, and a fault planted in what
// the pass returns is refused with the pass's name.
#include <set>

#include "compiler/lower/planned.h"
#include "compiler/verify/programs.h"
#include "compiler/verify/semantic.h"
#include "graph/calls/kernel_call.h"
#include "graph/instances.h"
#include "graph/regions/convolution.h"

using namespace weft;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using graph::Op;

namespace {

/// A GPU that is none, with every library, none of which can be run.
class Libraries final : public test::SimtTarget {
 public:
  Libraries() { machine_.vector_registers = 16; }  // no attention of the compiler's own
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc& desc) const override {
    return is_float8(desc.a) && desc.a_k == 1 && desc.b_k == 1 ? std::make_shared<Call>() : nullptr;
  }
  std::shared_ptr<const target::LibraryCall> attention(const kernel::AttentionDesc&) const override {
    return std::make_shared<Call>();
  }
  std::shared_ptr<const target::LibraryCall> call(const kernel::CallDesc&) const override {
    return std::make_shared<Call>();
  }

 private:
  struct Call final : target::LibraryCall {
    std::string name() const override { return "any"; }
    void run(std::span<void* const>) const override { throw_internal("test", "this library is only asked"); }
  };
};

target::Target& libraries() {
  static Libraries target;
  return target;
}

Source gather_of_a_row() {
  const Value x = param({2, 3, 1100}), t = param({2, 3}, int32);
  return {{{x, t}, {graph::cross_entropy(x, t)}}, {}, {}};
}

Source small_convolution() {
  const graph::ConvolutionForm form{{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1};
  const Value x = param({2, 5, 7, 1}), g = param({2, 5, 7, 32}), w = param({32, 3, 3, 1});
  return {{{x, g, w}, {graph::convolution(x, w, form), graph::convolution_weights(x, g, form, {3, 3})}}, {}, {}};
}

/// A norm's gradient summed down columns, as that of a bias, and again times what a tap sees.
Source sums_of_a_gradient() {
  const Shape positions{4, 32, 32, 8};
  const Value g = param(positions), x = param(positions), seen = param({4, 32, 32, 1}), w = param({8});
  const auto columns = [](const Value& v) { return graph::sum(v, {0, 1, 2}); };
  const auto everywhere = [&](const Value& v) { return graph::broadcast(v, positions); };
  const Value s = columns(g), q = columns(g * x);
  const Value e = everywhere(w) * (g - (everywhere(s) + x * everywhere(q)) * (1.0 / 4096));
  return {{{g, x, seen, w}, {s, q, columns(e), columns(e * everywhere(seen))}}, {}, {}};
}

Source long_cumulative() {
  const Value x = param({1, 32768});
  return {{{x}, {graph::cumulative(kernel::Reducer::sum, x, 1)}}, {}, {}};
}

Source long_sum() {
  const Value x = param({16384, 4});
  return {{{x}, {graph::sum(x, {0}), graph::max(x, {0, 1})}}, {}, {}};
}

Source sum_of_sums() {
  const Value x = param({64, 48, 8});
  return {{{x}, {graph::sum(graph::sum(x, {1}), {0})}}, {}, {}};
}

Source float8() {
  const Value a = param({32, 64}), b = param({64, 16});
  const auto narrow = [](const Value& v) { return graph::cast(v, float8_e4m3); };
  return {{{a, b}, {graph::dot(narrow(a), narrow(b), {1}, {0})}}, {}, {}};
}

/// Keys that lie with their columns one after the other, which libraries do not take.
Source keys_by_columns() {
  const Value q = param({2, 16, 8}), k = param({2, 8, 16}), v = param({2, 16, 8});
  return {{{q, k, v}, {graph::attention(q, graph::permute(k, {0, 2, 1}), v, 0.25, true, {})}}, {}, {}};
}

/// Products whose operands are read again by the derivatives.
Source deep() {
  const Value x = param({16, 16}), g = param({16, 16});
  Values inputs{x, g}, weights;
  Value y = x;
  for (int k = 0; k < 3; ++k) {
    weights.push_back(param({16, 16}));
    y = graph::tanh(graph::matmul(graph::exp(y), weights.back()));
  }
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  return {{inputs, graph::pull_back(Values{y}, Values{g}, weights)}, {}, {}};
}

/// Few results of a long contraction.
Source long_contraction() {
  const Value a = param({16, 4096}), b = param({4096, 16});
  return {{{a, b}, {graph::matmul(a, b)}}, {}, {}};
}

/// Rows that a block does not hold.
Source long_row() {
  const Value x = param({2, 30000});
  return {{{x}, {graph::logsumexp(x, {1}, false)}}, {}, {}};
}

/// Columns whose variance and mean are read.
Source spread_of_columns() {
  const Value x = param({40, 6}), mean = graph::mean(x, {0}, true);
  return {{{x}, {mean, graph::sum(graph::square(x - graph::broadcast(mean, x.shape())), {0})}}, {}, {}};
}

/// Sums along the columns of an array, as rows of the transposed one.
Source sum_of_transposed() {
  const Value x = param({40, 6});
  return {{{x}, {graph::sum(graph::permute(x, {1, 0}), {1})}}, {}, {}};
}

/// A sort of an input that lies by columns.
Source by_columns() {
  const Value x = param({4, 16});
  return {{{x}, {graph::sort(x, 1).values}}, {{{1, 4}}}, {}};
}

/// The two largest elements of each row.
Source best_of_rows() {
  const Value x = param({4, 16});
  return {{{x}, {graph::slice_axis(graph::sort(x, 1).values, 1, 14, 2)}}, {}, {}};
}

/// Rows enough to be added by sorted ids.
Source scatter_of_rows() {
  const Value ids = param({2048}, int32), rows = param({2048, 1, 32}), table = param({7, 32});
  return {{{ids, rows, table}, {graph::scatter(graph::ScatterMode::add, table, {ids}, rows, {0})}}, {}, {}};
}

/// A value that steps store.
Source stored_by_steps() {
  const Value x = param({21}), y = graph::scheduled(x * x, schedule::Steps().compute_root());
  return {{{x}, {graph::tanh(y)}}, {}, {}};
}

/// A kernel of a user between two maps.
Source kernel_of_a_user() {
  const Value x = param({21}), b = param({});
  const auto program = graph::testing::affine_program(x.shape(), float32, 3);
  return {{{x, b}, {graph::kernel_call(program, {x * x, b})[0] * x}}, {}, {}};
}

std::vector<Sample> samples_of_passes() {
  std::vector<Sample> out;
  for (const auto& make : {norm, softmax, loss, mlp, attention, scatter, cumulative, sorted, loop, by_columns,
                           best_of_rows, kernel_of_a_user, stored_by_steps})
    out.push_back({make(), &target::cpu()});
  for (const auto& make : {loss, columns, row, decode, gather_of_a_row, sums_of_a_gradient, long_cumulative, long_sum,
                           sum_of_sums, long_row, spread_of_columns, scatter_of_rows, sum_of_transposed})
    out.push_back({make(), &simt()});
  for (const auto& make : {small_convolution, float8, keys_by_columns}) out.push_back({make(), &libraries()});
  out.push_back({deep(), &target::cpu(), Policy{.memory_budget = 1}});
  static Planned h100("NVIDIA H100");
  Policy generated;
  generated.libraries = false, generated.numerics.tf32 = true;
  out.push_back({long_contraction(), &h100, generated});
  return out;
}

/// Breaks a stage of a compilation in a way that any verifier of that stage sees.
void plant(const Pass& pass, Compilation& c) {
  if (std::holds_alternative<GroupingPass>(pass.run)) c.grouping.groups.back().reads.push_back(0);
  else if (std::holds_alternative<OrderingPass>(pass.run)) c.ordering.order.pop_back();
  else if (std::holds_alternative<TuningPass>(pass.run)) c.tuned.variants.pop_back();
  else if (std::holds_alternative<LoweringPass>(pass.run)) c.steps.steps.pop_back();
  else if (std::holds_alternative<PlanPass>(pass.run)) c.steps.steps.back().groups.push_back(0);
  else c.ir.outputs.pop_back();
}

}  // namespace

TEST_CASE("no pass over graphs changes what they compute, and each changes one of these") {
  std::set<std::string> changes;
  for (const Sample& sample : samples_of_passes()) {
    const PassContext cx{sample.source, *sample.target, sample.policy};
    Compilation c;
    std::vector<HostTensor> inputs, expected;
    for (const Pass& pass : passes()) {
      if (std::holds_alternative<GroupingPass>(pass.run)) break;
      if (!pass.applies(sample.target->machine(), sample.policy)) continue;
      INFO(std::string(pass.name));
      const std::string before = print(c.ir);
      run_pass(pass, c, cx);
      if (expected.empty()) {
        inputs = random_inputs(c.ir);
        expected = evaluate(c.ir, inputs);
        changes.insert(pass.name);
      } else if (print(c.ir) != before) {
        changes.insert(pass.name);
        CHECK(disagreement(evaluate(c.ir, inputs), expected, 1e-4) == "");
      }
    }
  }
  for (const Pass& pass : passes())
    if (std::holds_alternative<ImportPass>(pass.run) || std::holds_alternative<RewritePass>(pass.run)) {
      INFO(std::string(pass.name));
      CHECK(changes.contains(pass.name));
    }
}

TEST_CASE("what types do not show is seen in the values: swapped operands, another axis of a square, a dropped node") {
  const Compilation c = compiled(sample_program("softmax"));
  const std::vector<HostTensor> inputs = random_inputs(c.ir), expected = evaluate(c.ir, inputs);
  const auto planted = [&](const std::function<void(Ir&)>& plant) {
    Ir ir = c.ir;
    plant(ir);
    CHECK(refusal([&] { verify(ir); }) == "");
    return disagreement(evaluate(ir, inputs), expected, 1e-4);
  };
  const auto at = [&](Op op, int skipped = 0) { return static_cast<size_t>(find(c.ir, op, skipped)); };
  CHECK(planted([](Ir&) {}) == "");
  CHECK(planted([&](Ir& ir) { ir.nodes[at(Op::reduce, 1)].attrs.edit().axes = {0}; }) != "");
  CHECK(planted([&](Ir& ir) { std::swap(ir.nodes[at(Op::sub)].inputs[0], ir.nodes[at(Op::sub)].inputs[1]); }) != "");
  CHECK(planted([&](Ir& ir) {
          for (IrNode& n : ir.nodes)
            for (NodeId& input : n.inputs)
              if (input == static_cast<int>(at(Op::exp))) input = ir[input].inputs[0];
        }) != "");
}

TEST_CASE("a fault in what a pass returns is refused with the pass's name") {
  std::set<std::string> refused;
  for (const Sample& sample : samples_of_passes()) {
    if (sample.target == &libraries()) continue;  // whose libraries cannot be run
    const PassContext cx{sample.source, *sample.target, sample.policy};
    Compilation c;
    for (const Pass& pass : passes()) {
      if (!pass.applies(sample.target->machine(), sample.policy)) continue;
      INFO(std::string(pass.name));
      run_pass(pass, c, cx);
      if (refused.contains(pass.name)) continue;
      Compilation broken;
      for (const Pass& again : passes()) {
        if (again.applies(sample.target->machine(), sample.policy)) run_pass(again, broken, cx);
        if (&again == &pass) break;
      }
      plant(pass, broken);
      const std::string message = refusal([&] { verify_pass(pass, broken, cx); });
      CHECK(message.find(std::string("after:") + pass.name) != std::string::npos);
      CHECK(message.find("bug in Weft") == message.rfind("bug in Weft"));
      refused.insert(pass.name);
    }
  }
  for (const Pass& pass : passes()) {
    INFO(std::string(pass.name));
    CHECK((refused.contains(pass.name) || !pass.applies(simt().machine(), {})));
  }
}
