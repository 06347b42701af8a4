// How many warps sum the columns of an array, counted on a GPU that is none: those of the launch do not depend on what
// else it computes.
#include "compiler/pipeline.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/instances.h"
#include "thinning.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

Value param(Shape shape, Dtype dtype = float32) { return parameter({std::move(shape), dtype}); }

/// Returns by launch how many iterations read `input`: warps where blocks share columns, and programs elsewhere.
std::vector<int64_t> readers(const Source& source, int input) {
  weft::test::SimtTarget target(8, 16);
  const Policy policy;
  const Compilation c = run_passes({source, target, policy}, false);
  std::vector<int64_t> out;
  for (const Step& step : c.steps.steps) {
    const std::vector<NodeId>& nodes = step.nodes[0];
    if (std::count(nodes.begin(), nodes.end(), c.ir.inputs[static_cast<size_t>(input)]) == 0) continue;
    REQUIRE(step.kind == Step::Kind::launch);
    std::map<kernel::Value, int64_t> constants;
    int64_t iterations = 1;
    for (const kernel::Inst& inst : c.steps.kernels[step.kernel].body.insts) {
      if (inst.op == kernel::Op::constant) constants[inst.results[0]] = inst.number.i;
      if (inst.parallel) iterations = constants.at(inst.args[1]);
    }
    out.push_back(step.segments[0].grid * iterations);
  }
  return out;
}

/// The gradient of a bias over `rows` rows, alone or in the step of an optimizer with two states (AdamW).
Source gradient_of_bias(int64_t rows, int64_t columns, Dtype t, bool updates) {
  const Value g = param({rows, columns}, t), sums = cast(sum(g, {0}), float32);
  if (!updates) return {{{g}, {sums}}, {}, {}};
  const Value w = param({columns}), m = param({columns}), v = param({columns}), rate = param({});
  const Value m1 = m * 0.9 + sums * 0.1, v1 = v * 0.99 + sums * sums * 0.01;
  const Value w1 = w - broadcast(rate, {columns}) * m1 / (unary(Op::sqrt, v1) + 1e-8);
  return {{{g, w, m, v, rate}, {w1, m1, v1}}, {}, {{0, 1}, {1, 2}, {2, 3}}};
}

}  // namespace

TEST_CASE("the gradient of a bias is summed by as many warps in an optimizer's launch as alone") {
  for (const Dtype t : {bfloat16, float32})
    for (const int64_t rows : {16384, 25216})
      for (const int64_t columns : {384, 768, 1152, 1536, 3072}) {
        CAPTURE(rows);
        CAPTURE(columns);
        const auto alone = readers(gradient_of_bias(rows, columns, t, false), 0),
                   updating = readers(gradient_of_bias(rows, columns, t, true), 0);
        REQUIRE(alone.size() == 1);
        CHECK(updating == alone);
        // Each warp sums whole cache lines of several columns, and there are several warps for each of an H200's SMs.
        CHECK(alone[0] >= 5 * 132);
        CHECK(alone[0] <= rows * columns / 1024);
      }
}

TEST_CASE("what a kernel of columns computes beside their sums is stored") {
  weft::test::SimtTarget gpu(8, 16);
  int64_t turn = 0;
  for (target::Target* target : {static_cast<target::Target*>(&gpu), &target::cpu()})
    for (const auto& [rows, columns] :
         {std::pair<int64_t, int64_t>{64, 300}, {256, 96}, {3000, 130}, {20000, 40}, {1500, 512}}) {
      if (!weft::test::taken(turn++)) continue;
      CAPTURE(rows);
      CAPTURE(columns);
      const Value x = param({rows, columns}), y = param({1, columns});
      const Value sums = graph::reshape(sum(x, {0}), {1, columns}), beside = unary(Op::tanh, y);
      for (const Graph& g : {Graph{{x, y}, {sums + y, beside, unary(Op::tanh, sums)}},
                             Graph{{x, y}, {sum(x * broadcast(beside, {rows, columns}), {0}), beside}}}) {
        graph::testing::Random random(5);
        std::vector<HostTensor> in;
        std::vector<graph::Storage> storage;
        for (const Value& v : g.inputs) {
          in.push_back(graph::testing::random_tensor(random, v.type()));
          storage.push_back(to_storage(in.back()));
        }
        const auto program = build({g, {}, {}}, *target);
        const auto got = program->run(storage);
        const auto expected = evaluate_reference(g, in);
        for (size_t k = 0; k < expected.size(); ++k)
          CHECK(difference(from_storage(got[k], g.outputs[k].type()), expected[k], 64, 1e-3) == "");
      }
    }
}

TEST_CASE("the warps of a block share the columns of each of several matrices") {
  weft::test::SimtTarget gpu(8, 16);
  int64_t turn = 0;
  for (const Shape& shape : {Shape{9, 2000, 64}, {70, 300, 130}, {300, 80, 40}}) {
    if (!weft::test::taken(turn++)) continue;
    CAPTURE(to_string(shape));
    const auto axis = static_cast<int64_t>(shape.size()) - 2;
    const Value x = param(shape, bfloat16), wide = cast(x, float32);
    const Value numbers = graph::reshape(iota({num_elements(shape)}, 0, uint32), shape);
    const Graph g{{x}, {sum(wide, {axis}), reduce_state(kernel::Reducer::argmax, {wide, numbers}, {axis})[1]}};
    const auto program = build({g, {}, {}}, gpu);
    CHECK(program->print("kernels").find("loop parallel") != std::string::npos);
    graph::testing::Random random(5);
    const HostTensor in = graph::testing::random_tensor(random, x.type());
    const auto got = program->run(std::vector<graph::Storage>{to_storage(in)});
    const auto expected = evaluate_reference(g, std::vector<HostTensor>{in});
    CHECK(difference(from_storage(got[0], g.outputs[0].type()), expected[0], 64, 1e-2) == "");
    CHECK(difference(from_storage(got[1], g.outputs[1].type()), expected[1], 0) == "");
  }
}

TEST_CASE("few sums of many products down a matrix keep a GPU busy") {
  const Value g = param({16384, 1}), x = param({16384, 128}), y = param({16384, 128});
  const Value computed = x * (unary(Op::tanh, y) + 1.0);
  for (const auto& dotted : {dot(g, computed, {0}, {0}), dot(computed, g, {0}, {0})}) {
    const auto programs = readers({{{g, x, y}, {dotted}}, {}, {}}, 1);
    REQUIRE(programs.size() == 1);
    CHECK(programs[0] >= 512);  // warps, four of each SM, which read 4 KB at once
  }
}

TEST_CASE("few sums of many products down a matrix are right") {
  const int64_t depth = 5000, columns = 24;
  const Value g = param({depth}), x = param({depth, columns});
  for (const Value& dotted : {dot(g, x, {0}, {0}), dot(x, graph::reshape(g, {depth, 1}), {0}, {0})}) {
    const Graph all{{g, x}, {dotted}};
    std::vector<graph::HostTensor> inputs;
    std::vector<graph::Storage> storages;
    for (const Value& v : all.inputs) {
      graph::HostTensor t{v.type(), {}};
      for (int64_t k = 0; k < num_elements(v.shape()); ++k)
        t.data.push_back(kernel::round_to(Number::of_real(static_cast<double>(k * 37 % 101) / 50 - 1), float32));
      inputs.push_back(t), storages.push_back(compiler::testing::to_storage(t));
    }
    weft::test::SimtTarget target(8, 16);
    const auto results = build({all, {}, {}}, target)->run(storages);
    CHECK(compiler::testing::difference(compiler::testing::from_storage(results[0], dotted.type()),
                                        evaluate_reference(all, inputs)[0], 16, 2e-4) == "");
  }
}
