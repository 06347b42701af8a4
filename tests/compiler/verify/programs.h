#pragma once
// Small real programs, compiled pass by pass, into which faults are planted, and what a verifier says of them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "compiler/pipeline.h"
#include "compiler/simt_target.h"
#include "graph/calls/call.h"
#include "graph/control/control.h"
#include "graph/derive/derive.h"
#include "graph/regions/composites.h"
#include "target/cpu/cpu.h"

namespace weft::compiler::testing {

using graph::Graph;
using graph::Value;
using graph::Values;

inline Value param(Shape shape, Dtype dtype = float32) { return graph::parameter({std::move(shape), dtype}); }

/// The CPU with as many vector registers as attention of the compiler's own takes, which not every CPU has.
class WideCpu final : public target::Target {
 public:
  WideCpu() {
    machine_ = target::cpu().machine();
    machine_.vector_registers = 32;
  }
  std::string fingerprint() const override { return "wide " + target::cpu().fingerprint(); }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return weft::test::compile_when_run(kernels);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc& desc) const override {
    return target::cpu().library(desc);
  }
  std::shared_ptr<const target::LibraryCall> call(const kernel::CallDesc& desc) const override {
    return target::cpu().call(desc);
  }
  target::CompileStats stats() const override { return {}; }
};

inline target::Target& wide_cpu() {
  static WideCpu target;
  return target;
}

inline target::Target& simt() {
  static test::SimtTarget target;
  return target;
}

struct Sample {
  Source source;
  target::Target* target = nullptr;
  Policy policy = {};
};

/// A norm of a sum that is a result as well: one group of rows.
inline Source norm() {
  const Value x = param({8, 32}), r = param({8, 32}), w = param({32}), b = param({32}), sum = x + r;
  return {{{x, r, w, b}, {sum, graph::layer_norm(sum, w, b, 1e-5)}}, {}, {}};
}

/// A softmax over a square array.
inline Source softmax() {
  const Value x = param({16, 16});
  return {{{x}, {graph::softmax(graph::exp(x) * 0.1, {1})}}, {}, {}};
}

/// The loss of a product, and its derivatives.
inline Source loss() {
  const Value x = param({16, 8}), w = param({24, 8}), t = param({16}, int32);
  const Value loss = graph::mean(graph::cross_entropy(graph::dot(x, w, {1}, {1}), t), {0});
  Values out{loss};
  for (const Value& v :
       graph::pull_back(Values{loss}, Values{graph::full({}, float32, Number::of_real(1))}, Values{x, w}))
    out.push_back(v);
  return {{{x, w, t}, out}, {}, {}};
}

/// Two products with biases, gelu between them, and a residual.
inline Source mlp() {
  const Value x = param({8, 16}), w1 = param({32, 16}), b1 = param({32}), w2 = param({16, 32}), b2 = param({16});
  const Value hidden = graph::gelu_tanh(graph::dot(x, w1, {1}, {1}) + graph::broadcast(b1, {8, 32}));
  return {{{x, w1, b1, w2, b2}, {graph::dot(hidden, w2, {1}, {1}) + graph::broadcast(b2, {8, 16}) + x}}, {}, {}};
}

/// A chain of products: three arrays in the arena, two of them at a time.
inline Source chain() {
  const Value x = param({16, 16}), w = param({16, 16});
  Value y = x;
  for (int k = 0; k < 4; ++k) y = graph::tanh(graph::matmul(graph::exp(y), w));
  return {{{x, w}, {y}}, {}, {}};
}

/// The same, but that the last product reads what the first step makes.
inline Source skip() {
  const Value x = param({16, 16}), w = param({16, 16}), first = graph::exp(x);
  Value y = first;
  for (int k = 0; k < 3; ++k) y = graph::matmul(graph::tanh(graph::matmul(y, w)), w);
  return {{{x, w}, {graph::matmul(y, first)}}, {}, {}};
}

/// A state whose old value is a result as well.
inline Source copies() {
  const Value p = param({8, 16});
  return {{{p}, {graph::exp(p), p}}, {}, {{0, 0}}};
}

inline Source attention() {
  const Value q = param({2, 16, 8}), k = param({2, 16, 8}), v = param({2, 16, 8});
  return {{{q, k, v}, {graph::attention(q, k, v, 0.25, true, {}) * 2.0}}, {}, {}};
}

/// One query over many keys: split into pieces on a GPU.
inline Source decode() {
  const Value q = param({2, 1, 8}), k = param({2, 256, 8}), v = param({2, 256, 8});
  return {{{q, k, v}, {graph::attention(q, k, v, 0.25, false, {})}}, {}, {}};
}

/// Rows of a table that are changed, and read by their numbers.
inline Source scatter() {
  const Value table = param({10, 4}), ids = param({3}, int32), u = param({3, 1, 4}), more = graph::exp(table);
  const Value changed = graph::scatter(graph::ScatterMode::add, more, {ids}, u, {0});
  return {{{table, ids, u}, {changed, graph::take(changed * 2.0, ids, 0)}}, {}, {}};
}

/// Rows added to a product that lies transposed, as the gradient of a table that both ends of a model share.
inline Source transposed_scatter() {
  const Value a = param({8, 10}), b = param({8, 4}), ids = param({3}, int32), u = param({3, 1, 4});
  const Value table = graph::permute(graph::dot(b, a, {0}, {0}), {1, 0});
  return {{{a, b, ids, u}, {graph::scatter(graph::ScatterMode::add, table, {ids}, u, {0}) * 2.0}}, {}, {}};
}

/// Keys of random numbers, each of which the next one takes the place of.
inline Source keys() {
  const Value k = param({4, 2}, uint32);
  return {{{k}, {graph::random_bits(k, {2})}}, {}, {{0, 0}}};
}

/// New keys, each with a word made of every old one.
inline Source crossed_keys() {
  const Value k = param({2, 2}, uint32);
  return {{{k}, {graph::permute(graph::random_bits(k, {2}), {1, 0})}}, {}, {{0, 0}}};
}

inline Source cumulative() {
  const Value x = param({4, 16});
  return {{{x}, {graph::cumulative(kernel::Reducer::sum, graph::exp(x), 1) * 2.0}}, {}, {}};
}

inline Source sorted() {
  const Value x = param({4, 16});
  return {{{x}, {graph::sort(graph::exp(x), 1).values * 2.0}}, {}, {}};
}

/// Five steps of a loop over a carry that begins with a computed value.
inline Source loop() {
  const Value x = param({4, 8}), w = param({4, 8});
  Graph step =
      graph::graph_over({w.type(), x.type()}, [](std::span<const Value> in) { return Values{in[1] * in[0] + 1.0}; });
  const Values out = graph::scan({w}, {graph::exp(x)}, {}, std::move(step), 5, false);
  return {{{x, w}, {out[0] * 2.0}}, {}, {}};
}

/// Momentum over three parameters, two of equal shape; every state is updated in its own memory. The last result reads
/// the first parameter as it was.
inline Source updates() {
  Source s;
  for (const Shape& shape : {Shape{8, 16}, Shape{8, 16}, Shape{32}}) {
    const Value p = param(shape), grad = param(shape), m = param(shape), m1 = m * 0.9 + grad * 0.1;
    const int first = static_cast<int>(s.graph.inputs.size());
    s.graph.inputs.insert(s.graph.inputs.end(), {p, grad, m});
    s.updates.push_back({static_cast<int>(s.graph.outputs.size()), first});
    s.graph.outputs.push_back(p - m1 * 1e-3);
    s.updates.push_back({static_cast<int>(s.graph.outputs.size()), first + 2});
    s.graph.outputs.push_back(m1);
  }
  s.graph.outputs.push_back(graph::sum(s.graph.inputs[0] * s.graph.inputs[0], {0, 1}));
  return s;
}

/// A norm's derivatives on a GPU: rows and, beside them, sums down the columns.
inline Source columns() {
  const Value x = param({2048, 64}), w = param({64}), b = param({64}), g = param({2048, 64});
  const Value y = graph::layer_norm(x, w, b, 1e-5);
  return {{{x, w, b, g}, graph::pull_back(Values{y}, Values{g}, Values{x, w, b})}, {}, {}};
}

/// A GEMV on a GPU.
inline Source row() {
  const Value x = param({1, 64}), w = param({128, 64});
  return {{{x, w}, {graph::tanh(graph::dot(x, w, {1}, {1}))}}, {}, {}};
}

/// Two sums after each other, each the work of one program on a GPU.
inline Source singles() {
  const Value x = param({64}), y = param({32});
  const Value s = graph::sum(x, {0}, true);
  return {{{x, y}, {s, graph::sum(y * graph::broadcast(graph::exp(s), {32}), {0})}}, {}, {}};
}

inline Sample sample_program(const std::string& name) {
  using Make = Source (*)();
  static const std::map<std::string, std::pair<Make, bool>> all{
      {"norm", {norm, false}},          {"softmax", {softmax, false}},
      {"loss", {loss, false}},          {"mlp", {mlp, false}},
      {"chain", {chain, false}},        {"attention", {attention, false}},
      {"scatter", {scatter, false}},    {"transposed scatter", {transposed_scatter, false}},
      {"keys", {keys, false}},          {"crossed keys", {crossed_keys, false}},
      {"sort", {sorted, false}},        {"loop", {loop, false}},
      {"updates", {updates, false}},    {"cumulative", {cumulative, false}},
      {"skip", {skip, false}},          {"copies", {copies, false}},
      {"gpu norm", {norm, true}},       {"gpu loss", {loss, true}},
      {"gpu updates", {updates, true}}, {"gpu columns", {columns, true}},
      {"gpu row", {row, true}},         {"gpu decode", {decode, true}},
      {"gpu singles", {singles, true}},
  };
  const auto& [make, gpu] = all.at(name);
  return {make(), gpu ? &simt() : &wide_cpu()};
}

/// Runs the passes on a program, up to and with the one that is named.
inline Compilation compiled(const Sample& p, const std::string& last = passes().back().name) {
  Compilation c;
  const PassContext cx{p.source, *p.target, p.policy};
  for (const Pass& pass : passes()) {
    if (pass.applies(p.target->machine(), p.policy)) run_pass(pass, c, cx);
    if (pass.name == last) return c;
  }
  throw_internal("test", "no pass is called " + last);
}

/// What a verifier says; nothing where it finds no fault.
inline std::string refusal(const std::function<void()>& verifier) {
  try {
    verifier();
  } catch (const internal_error& e) {
    return e.what();
  }
  return "";
}

/// A fault planted in what the passes make of a program, and the rule by which it is refused.
struct Fault {
  const char* what;
  const char* program;
  const char* rule;
  std::function<void(Compilation&)> plant;
};

/// The verifier has nothing to say of the program after the pass `last`, and refuses it with the fault by the fault's
/// rule.
template <class Verifier>
void check_refused(const Fault& fault, const Verifier& verifier, const std::string& last = passes().back().name) {
  INFO(std::string(fault.what), " after ", last);
  const Sample p = sample_program(fault.program);
  Compilation c = compiled(p, last);
  REQUIRE(refusal([&] { verifier(p, c); }) == "");
  fault.plant(c);
  const std::string message = refusal([&] { verifier(p, c); });
  INFO(message);
  CHECK(message.find(fault.rule) != std::string::npos);
}

// ---------------------------------------------------------------- where faults go

/// The first node of an operator.
inline int find(const Ir& ir, graph::Op op, int skipped = 0) {
  for (NodeId id = 0; id < ir.size(); ++id)
    if (ir[id].op == op && skipped-- == 0) return id;
  throw_internal("test", "the program has no such operator");
}
inline IrNode& node(Compilation& c, graph::Op op, int skipped = 0) { return c.ir.nodes[find(c.ir, op, skipped)]; }

inline Group& group(Compilation& c, Group::Kind kind, int skipped = 0) {
  for (Group& g : c.grouping.groups)
    if (g.kind == kind && skipped-- == 0) return g;
  throw_internal("test", "the program has no such group");
}
inline int number_of(const Compilation& c, const Group& group) {
  return static_cast<int>(&group - c.grouping.groups.data());
}

/// The first rows group with a root of that kind, and that root.
inline std::pair<Group&, Root&> root(Compilation& c, RootKind kind) {
  for (Group& g : c.grouping.groups)
    for (Root& r : g.roots)
      if (g.kind == Group::Kind::rows && r.kind == kind) return {g, r};
  throw_internal("test", "the program has no such root");
}

}  // namespace weft::compiler::testing
