// The backward of a norm with the sums for its weights, on a GPU that is none: how many programs walk the rows, and
// that their sums are right where a part begins inside of an axis.
#include "compiler/pipeline.h"
#include "compiler/schedule/splits.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/derive/derive.h"
#include "graph/instances.h"
#include "graph/regions/composites.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

/// The gradients of layer_norm by x, by its weight and by its bias.
Graph backward(const Shape& shape, Dtype dtype) {
  const Value x = parameter({shape, dtype}), w = parameter({{shape.back()}, dtype}),
              b = parameter({{shape.back()}, dtype}), g = parameter({shape, dtype});
  const Value y = layer_norm(x, w, b, 1e-5);
  return {{x, w, b, g}, pull_back(std::vector<Value>{y}, std::vector<Value>{g}, std::vector<Value>{x, w, b})};
}

/// Returns by launch that reads `input` how many programs it has, or warps where blocks share columns.
std::vector<int64_t> readers(const Graph& g, int input) {
  weft::test::SimtTarget target(8, 16);
  const Policy policy;
  const Source source{g, {}, {}};
  const Compilation c = run_passes({source, target, policy}, false);
  std::vector<int64_t> out;
  for (const compiler::Step& step : c.steps.steps) {
    const std::vector<NodeId>& nodes = step.nodes[0];
    if (std::count(nodes.begin(), nodes.end(), c.ir.inputs[static_cast<size_t>(input)]) == 0) continue;
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

}  // namespace

TEST_CASE("the backward of a norm reads its rows once, by programs that fill a GPU") {
  for (const Shape& shape : {Shape{16, 1024, 768}, Shape{128, 197, 384}, Shape{64, 256, 384}, Shape{64, 56, 56, 40},
                             Shape{64, 28, 28, 80}, Shape{128, 196, 512}, Shape{32768, 1600}, Shape{9, 7, 131, 96}}) {
    CAPTURE(to_string(shape));
    const int64_t columns = shape.back().bound(), rows = num_elements(shape) / columns;
    const std::vector<int64_t> programs = readers(backward(shape, bfloat16), 0);
    REQUIRE(programs.size() == 1);
    CHECK(rows % programs[0] == 0);
    CHECK(programs[0] <= programs_of_rows(columns));
    const int64_t most = std::min(programs_of_rows(columns), rows / 8);
    CHECK(4 * programs[0] >= 2 * most);
  }
}

TEST_CASE("rows that divide into few parts alone are walked by no kernel that sums columns") {
  const std::vector<int64_t> programs = readers(backward({8209, 128}, bfloat16), 0);  // a prime
  CHECK(programs.size() >= 2);
  for (const int64_t n : programs) CHECK(n >= 64);
}

TEST_CASE("parts of rows across axes give the sums of all rows") {
  graph::testing::Random r(5);
  for (const Shape& shape : {Shape{8, 37, 40}, Shape{3, 5, 29, 24}, Shape{2, 197, 72}, Shape{1, 521, 20}}) {
    CAPTURE(to_string(shape));
    const Graph g = backward(shape, float32);
    std::vector<HostTensor> inputs;
    std::vector<graph::Storage> storages;
    for (const Value& v : g.inputs) {
      HostTensor t{v.type(), {}};
      for (int64_t k = num_elements(v.shape()); k > 0; --k)
        t.data.push_back(kernel::round_to(Number::of_real(static_cast<double>(r.below(401)) / 100 - 2), float32));
      inputs.push_back(t), storages.push_back(to_storage(t));
    }
    weft::test::SimtTarget target(8, 16);
    const auto results = build({g, {}, {}}, target)->run(storages);
    const std::vector<HostTensor> expected = evaluate_reference(g, inputs);
    for (size_t k = 0; k < results.size(); ++k)
      CHECK(difference(from_storage(results[k], g.outputs[k].type()), expected[k], 16, 2e-4) == "");
  }
}
