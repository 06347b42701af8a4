// Reductions over axes on both sides of one that is kept: down columns of adjacent elements first, then over the few
// results of that. No kernel gathers lanes.
#include "compiler/lower/recorded.h"
#include "compiler/pipeline.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/instances.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

HostTensor drawn(const graph::Type& type, graph::testing::Random& r) {
  HostTensor values{type, {}};
  for (int64_t k = num_elements(type.shape); k > 0; --k) {
    const auto number = static_cast<int64_t>(r.below(401)) - 200;
    values.data.push_back(is_float(type.dtype)
                              ? kernel::round_to(Number::of_real(static_cast<double>(number) / 100), type.dtype)
                              : Number::of_int(number));
  }
  return values;
}

/// Returns the statistics of groups of channels [examples, height, width, groups, channels], and the image less its
/// groups' means, as group norms compute them.
Graph group_statistics(const Shape& shape, Dtype dtype) {
  const Value x = parameter({shape, dtype}), wide = cast(x, float32);
  const auto all = static_cast<double>(num_elements(shape) / (shape[0].bound() * shape[3].bound()));
  const Value mean = sum(wide, {1, 2, 4}, true) * (1 / all), squares = sum(wide * wide, {1, 2, 4}) * (1 / all);
  return {{x}, {squares, wide - broadcast(mean, shape)}};
}

int gathers(const RecordingTarget& target) {
  int all = 0;
  for (const kernel::Kernel& k : target.kernels) {
    const auto [own, inside] = count(k.body, [](const kernel::Inst& i) { return i.op == kernel::Op::gather; });
    all += own + inside;
  }
  return all;
}

struct Interrupted {
  Shape shape;
  std::vector<int64_t> axes;
  kernel::Reducer reducer;
  Dtype dtype;
  size_t kernels;
};

}  // namespace

TEST_CASE("reductions on both sides of a kept axis read adjacent elements") {
  using kernel::Reducer;
  graph::testing::Random r(8);
  for (const Interrupted& c : {Interrupted{{2, 8, 9, 8, 8}, {1, 2, 4}, Reducer::sum, float32, 2},
                               Interrupted{{3, 40, 4, 16}, {1, 3}, Reducer::max, float32, 2},
                               Interrupted{{40, 6, 20}, {0, 2}, Reducer::sum, bfloat16, 2},
                               Interrupted{{17, 1, 32, 3}, {0, 3}, Reducer::min, int32, 2},
                               Interrupted{{8, 5, 3}, {0, 2}, Reducer::sum, float32, 1}}) {  // too short
    CAPTURE(to_string(c.shape));
    const Value x = parameter({c.shape, c.dtype});
    const Graph g{{x}, {reduce(c.reducer, x, c.axes)}};
    const HostTensor values = drawn(x.type(), r);
    RecordingTarget target;
    const std::vector<HostTensor> inputs{values};
    const std::vector<graph::Storage> storages{to_storage(values)};
    const auto results = build({g, {}, {}}, target)->run(storages);
    CHECK(difference(from_storage(results[0], g.outputs[0].type()), evaluate_reference(g, inputs)[0], 2, 1e-4) == "");
    CHECK(target.kernels.size() == c.kernels);
    if (c.kernels == 2) CHECK(gathers(target) == 0);
  }
}

TEST_CASE("a GPU reduces long interrupted rows down columns, and short ones whole") {
  struct Case {
    Shape shape;
    Dtype dtype;
    bool cut;
  };
  for (const Case& c : {Case{{4, 64, 64, 32, 8}, bfloat16, true}, Case{{2, 48, 64, 8, 8}, float32, true},
                        Case{{64, 16, 16, 8, 8}, float32, false},      // a block holds a row
                        Case{{4, 64, 64, 4, 64}, bfloat16, false}}) {  // pieces of whole cache lines
    CAPTURE(to_string(c.shape));
    weft::test::SimtTarget target(8, 16);
    const Policy policy;
    const Source source{group_statistics(c.shape, c.dtype), {}, {}};
    const Compilation compilation = run_passes({source, target, policy}, false);
    const auto interrupted = [&](const IrNode& n) {
      if (n.op != Op::reduce) return false;
      const std::vector<int64_t>& axes = n.attrs->axes;
      return axes.back() - axes.front() + 1 != static_cast<int64_t>(axes.size());
    };
    CHECK(std::any_of(compilation.ir.nodes.begin(), compilation.ir.nodes.end(), interrupted) == !c.cut);
    if (!c.cut) continue;
    // Every launch that reads the image has several programs for each of a large GPU's SMs, or for as many as there is
    // work for.
    for (const Step& step : compilation.steps.steps)
      if (std::count(step.nodes[0].begin(), step.nodes[0].end(), compilation.ir.inputs[0]) > 0)
        CHECK(step.segments[0].grid >= num_elements(c.shape) / 32768);
  }
}

TEST_CASE("interrupted rows have their sums on a GPU too") {
  graph::testing::Random r(9);
  for (const Shape& shape : {Shape{2, 40, 32, 4, 8}, Shape{1, 33, 67, 5, 4}}) {
    CAPTURE(to_string(shape));
    const Graph g = group_statistics(shape, float32);
    const std::vector<HostTensor> inputs{drawn(g.inputs[0].type(), r)};
    weft::test::SimtTarget target(8, 16);
    const std::vector<graph::Storage> storages{to_storage(inputs[0])};
    const auto results = build({g, {}, {}}, target)->run(storages);
    const std::vector<HostTensor> expected = evaluate_reference(g, inputs);
    for (size_t k = 0; k < results.size(); ++k)
      CHECK(difference(from_storage(results[k], g.outputs[k].type()), expected[k], 8, 1e-5) == "");
  }
}
