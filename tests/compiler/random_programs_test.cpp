// Random programs: what fusion makes of them computes what their operators compute one by one, within the errors that
// the table allows, and in no more launches.
#include <array>
#include <map>

#include "compiler/lower/interpreted.h"
#include "compiler/null_machine.h"
#include "compiler/random_program.h"
#include "compiler/simt_target.h"
#include "thinning.h"

using namespace weft;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using graph::Graph;
using graph::Op;
using graph::Value;
using graph::Values;

namespace {

const int programs = weft::test::sanitized ? 100 : 2000;

/// One program of so many is compiled to machine code, and one of those that are by all of LLVM's passes, which take
/// minutes for some; the others' kernels are interpreted, which gives the same bits in a tenth of the time.
constexpr int compiled_of = 4, optimised_of = 64;

target::Target& compiling_target(int seed) {
  if (weft::test::on_gpu() || weft::test::on_simt() || seed % optimised_of == 0) return weft::test::target_under_test();
  return weft::test::fast_code_generator();
}

std::vector<HostTensor> run(const RandomProgram& p, target::Target& target, const Policy& policy) {
  std::vector<graph::Storage> storages;
  for (size_t k = 0; k < p.inputs.size(); ++k)
    storages.push_back(to_storage(p.inputs[k], p.source.layouts.empty() ? Strides{} : p.source.layouts[k].strides));
  const std::vector<graph::Storage> results = build(p.source, target, policy)->run(storages);
  std::vector<HostTensor> out;
  for (size_t k = 0; k < results.size(); ++k) out.push_back(from_storage(results[k], p.source.graph.outputs[k].type()));
  return out;
}

/// Returns whether a value is a view of its operand, for which nothing runs.
bool is_view(const Value& v) {
  switch (v.node->op()) {
    case Op::reshape:
    case Op::permute:
    case Op::broadcast:
    case Op::slice:
    case Op::window:
    case Op::stop_gradient:
    case Op::depends:
    case Op::scheduled: return true;
    default: return v.node->inputs().empty();
  }
}

/// Counts the launches, library calls and copies of each operator of a graph as a program of its own, added up.
class OneByOne {
 public:
  explicit OneByOne(target::Target& target) : target_(target) {}

  int count(const Source& source) {
    const Graph inlined = graph::inline_composites(source.graph);
    int sum = static_cast<int>(source.updates.size());  // new states that are copied into the places of the old
    for (const auto& node : graph::topological(inlined.outputs))
      if (!is_view({node, 0})) sum += alone(*node);
    for (const Value& v : inlined.outputs) sum += is_view(v);
    return sum;
  }

 private:
  /// Returns the operand in a program of its operator alone: constants stay what they are.
  static Value operand(const Value& v, Values& inputs) {
    if (v.node->op() == Op::constant) return v;
    if (v.node->op() == Op::broadcast && v.node->inputs()[0].node->op() == Op::constant) return v;
    return inputs.emplace_back(graph::parameter(v.type(), static_cast<int64_t>(inputs.size())));
  }
  int alone(const graph::Node& node) {
    Source source;
    Values operands;
    for (const Value& v : node.inputs()) operands.push_back(operand(v, source.graph.inputs));
    source.graph.outputs = graph::make_all(node.op(), operands, node.attrs());
    const auto [known, added] = known_.try_emplace(graph::digest(source.graph), 0);
    if (added) known->second = std::max(1, build(source, target_)->stats().count());
    return known->second;
  }

  target::Target& target_;
  std::map<Digest, int> known_;
};

}  // namespace

TEST_CASE("random programs compute what their operators compute one by one, by schedules of CPUs and of GPUs") {
  constexpr int64_t bytes = 1 << 18;  // more than any array here has
  InterpretedMachine avx2(target::stated_machine("avx2"), bytes), gpu(weft::test::SimtTarget().machine(), bytes),
      clusters(weft::test::SimtTarget(8, 16).machine(), bytes);
  const std::array<target::Target*, 3> interpreted{&avx2, &gpu, &clusters};
  size_t compared = 0, all = 0;
  for (int seed = 0; seed < programs; ++seed) {
    RandomProgram p = random_program(static_cast<uint64_t>(seed));
    CAPTURE(seed);
    INFO(graph::print(p.source.graph));
    target::Target& target = seed % compiled_of == 0 ? compiling_target(seed) : *interpreted[seed % 3];
    Policy policy;
    policy.libraries = seed % 3 != 0;
    std::vector<HostTensor> got;
    try {
      got = run(p, target, policy);
    } catch (const std::exception& e) {
      FAIL_CHECK(std::string(e.what()));
      continue;
    }
    for (size_t k = 0; k < got.size(); ++k) {
      const Bounded& expected = p.expected(p.source.graph.outputs[k]);
      CHECK_MESSAGE(outside(got[k], expected) == "", "output ", k);
      for (const double r : expected.radius) compared += std::isfinite(r);
      all += expected.radius.size();
    }
  }
  CHECK(static_cast<double>(compared) > 0.95 * static_cast<double>(all));
}

TEST_CASE("random programs have no more launches than their operators one by one") {
  weft::test::NullMachine avx2("avx2"), h200("NVIDIA H200");
  for (weft::test::NullMachine* target : {&avx2, &h200}) {
    OneByOne unfused(*target);
    int fused = 0, bound = 0;
    for (int seed = 0; seed < programs; ++seed) {
      const RandomProgram p = random_program(static_cast<uint64_t>(seed));
      CAPTURE(seed);
      CAPTURE(target->machine().name);
      INFO(graph::print(p.source.graph));
      try {
        const std::shared_ptr<const Program> program = build(p.source, *target);
        const int most = unfused.count(p.source), count = program->stats().count();
        CHECK_MESSAGE(count <= most, program->print("plan"));
        fused += count, bound += most;
      } catch (const std::exception& e) {
        FAIL_CHECK(std::string(e.what()));
      }
    }
    CHECK(fused < 0.6 * bound);
  }
}

TEST_CASE("what all lanes of a padded tile read lies inside of its array, wherever no lane wants it") {
  // Of the result's 4 × 4 elements the first row and the last column are padding; a row of x shares an element of r.
  const Value x = graph::parameter({{3, 3}, float32}), r = graph::parameter({{3, 1}, float32});
  for (const bool above : {true, false}) {
    const Value y = graph::pad(graph::exp(x - graph::broadcast(r, {3, 3})), {above, 0}, {!above, 1});
    RandomProgram p{{{{x, r}, {y}}, {}, {}}, {}, {}};
    graph::testing::Random random(5);
    for (const Value& v : {x, r}) {
      p.inputs.push_back(graph::testing::random_tensor(random, v.type()));
      p.expected.give(v, p.inputs.back());
    }
    InterpretedMachine avx2(target::stated_machine("avx2")), gpu(weft::test::SimtTarget().machine());
    for (InterpretedMachine* target : {&avx2, &gpu}) CHECK(outside(run(p, *target, {})[0], p.expected(y)) == "");
  }
}
