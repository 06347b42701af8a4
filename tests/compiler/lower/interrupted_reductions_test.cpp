// Reductions over axes on both sides of one that is kept, on a CPU: down columns of adjacent elements first, then over
// the few results of that. No kernel gathers lanes.
#include "compiler/lower/recorded.h"
#include "compiler/support.h"
#include "graph/instances.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

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
    HostTensor values{x.type(), {}};
    for (int64_t k = num_elements(c.shape); k > 0; --k) {
      const auto drawn = static_cast<int64_t>(r.below(401)) - 200;
      values.data.push_back(is_float(c.dtype)
                                ? kernel::round_to(Number::of_real(static_cast<double>(drawn) / 100), c.dtype)
                                : Number::of_int(drawn));
    }
    RecordingTarget target;
    const std::vector<HostTensor> inputs{values};
    const std::vector<graph::Storage> storages{to_storage(values)};
    const auto results = build({g, {}, {}}, target)->run(storages);
    CHECK(difference(from_storage(results[0], g.outputs[0].type()), evaluate_reference(g, inputs)[0], 2, 1e-4) == "");
    CHECK(target.kernels.size() == c.kernels);
    if (c.kernels == 2) CHECK(gathers(target) == 0);
  }
}
