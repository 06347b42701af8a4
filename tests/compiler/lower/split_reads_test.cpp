// Maps that read an array through axes that their own domain has merged: their axes are split where reads divide them,
// so that lanes read adjacent elements.
#include "compiler/lower/recorded.h"
#include "compiler/pipeline.h"
#include "compiler/support.h"
#include "graph/instances.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

/// Returns how many loads gather lanes, and checks the results.
int gathers_of(const Value& x, const Value& result) {
  const Graph g{{x}, {result}};
  HostTensor values{x.type(), {}};
  for (int64_t k = 0; k < num_elements(x.shape()); ++k) values.data.push_back(Number::of_real(static_cast<double>(k)));
  const std::vector<HostTensor> inputs{values};
  const std::vector<graph::Storage> storages{to_storage(values)};
  RecordingTarget target;
  const auto results = build({g, {}, {}}, target)->run(storages);
  CHECK(difference(from_storage(results[0], g.outputs[0].type()), evaluate_reference(g, inputs)[0], 0, 0) == "");
  int all = 0;
  for (const kernel::Kernel& k : target.kernels) {
    const auto [own, inside] = count(k.body, [](const kernel::Inst& i) { return i.op == kernel::Op::gather; });
    all += own + inside;
  }
  return all;
}

Value param(Shape shape) { return parameter({std::move(shape), float32}); }

}  // namespace

TEST_CASE("lanes read adjacent elements of heads that are merged, of patches, and of merged axes that are transposed") {
  const int64_t lanes = target::cpu().machine().lanes(4);
  const Value heads = param({2, 3, 5, 2 * lanes});
  CHECK(gathers_of(heads, reshape(permute(heads, {0, 2, 1, 3}), {2, 5, 6 * lanes}) * 2) == 0);
  const Value image = param({2, 6, 8, lanes});
  const Value patches = permute(reshape(image, {2, 3, 2, 4, 2, lanes}), {0, 1, 3, 2, 4, 5});
  CHECK(gathers_of(image, reshape(patches, {2, 12, 4 * lanes}) * 2) == 0);
  const Value steps = param({32, 4, 64});
  CHECK(gathers_of(steps, reshape(permute(steps, {2, 1, 0}), {64, 128}) * 2) == 0);
}

TEST_CASE("axes stay whole where the parts do not fill a vector") {
  const Value pairs = param({64, 2, 32});
  CHECK(gathers_of(pairs, reshape(permute(pairs, {0, 2, 1}), {64, 64}) * 2) > 0);
}
