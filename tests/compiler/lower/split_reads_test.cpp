// Maps that read an array through axes that their own domain has merged: their axes are split where reads divide them,
// so that lanes read adjacent elements.
#include "compiler/lower/planned.h"
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

/// Returns the kind of the one kernel that an H100 computes a graph by: "row_sum", "transposed", ….
std::string kind_on_gpu(const Graph& g) {
  Planned h100("NVIDIA H100");
  build({g, {}, {}}, h100);
  REQUIRE(h100.kernels.size() == 1);
  return h100.kernels[0].name.substr(0, h100.kernels[0].name.rfind('_'));
}

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

TEST_CASE("on a GPU heads of a transposed array are turned tile by tile") {
  const auto heads = [](int64_t rows, int64_t count, int64_t width) {
    const Value x = param({count * width, rows});
    const Value split = reshape(permute(x, {1, 0}), {rows, count, width});
    return Graph{{x}, {reshape(permute(split, {1, 0, 2}), {count * rows, width}) * 2}};
  };
  CHECK(kind_on_gpu(heads(3000, 2, 768)) == "transposed");
  const Graph g = heads(300, 3, 64);
  HostTensor values{g.inputs[0].type(), {}};
  for (int64_t k = 0; k < num_elements(values.type.shape); ++k)
    values.data.push_back(Number::of_real(static_cast<double>(k % 1000)));
  const std::vector<HostTensor> inputs{values};
  const std::vector<graph::Storage> storages{to_storage(values)};
  Interpreted blocks(1);
  const auto got = build({g, {}, {}}, blocks)->run(storages);
  CHECK(difference(from_storage(got[0], g.outputs[0].type()), evaluate_reference(g, inputs)[0], 0, 0) == "");
}

TEST_CASE("on a GPU lanes run where they touch the fewest sectors, also by indices that divide") {
  const Value y = param({128, 64, 64, 3});
  Values inputs{y};
  Value total = y;
  for (int k = 0; k < 4; ++k) {  // images of half the size, whose pixels are read twice along both axes
    inputs.push_back(param({128, 32, 1, 32, 1, 3}));
    total = total + reshape(broadcast(inputs.back(), {128, 32, 2, 32, 2, 3}), {128, 64, 64, 3});
  }
  CHECK(kind_on_gpu({inputs, {sum(total, {1, 2, 3})}}) == "row_sum");  // and not along the examples, 48 KB apart
}

TEST_CASE("on a GPU a warp has a word for each lane, however short the lines are that a map reads") {
  // Lines of 128 and of 64 bytes, read where they lie, by a division, and by an index in memory.
  const Value x = param({64, 64, 64, 32}), ids = parameter({{128}, int32});
  const Value heads = param({64, 512, 8, 16});
  const auto taken = [&](const Value& v) { return take(v, ids, 2); };
  const Graph graphs[] = {
      {{heads}, {permute(heads, {0, 2, 1, 3}) * 2.0}},
      {{x}, {reshape(broadcast(reshape(x, {64, 64, 1, 64, 1, 32}), {64, 64, 2, 64, 2, 32}), {64, 128, 128, 32}) * 2.0}},
      {{x, ids}, {taken(x) * 2.0}}};
  for (const Graph& g : graphs) {
    Planned h100("NVIDIA H100");
    build({g, {}, {}}, h100);
    REQUIRE(h100.kernels.size() == 1);
    int64_t widest = 0;
    for (const kernel::Type& t : h100.kernels[0].types) widest = std::max(widest, t.size());
    CHECK(widest >= 32 * 4);
  }
}
