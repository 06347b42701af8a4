// Products on tensor cores: the tiles that they get, and the parts of their contracted axis, of which each is a
// product.
#include "compiler/lower/interpreted.h"
#include "compiler/pipeline.h"
#include "compiler/region/dot_plan.h"
#include "compiler/region/matmul_work.h"
#include "compiler/support.h"
#include "graph/instances.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using graph::testing::Random;
using graph::testing::random_tensor;

namespace {

const target::Machine& h200() { return target::stated_machine("NVIDIA H200"); }

/// Computes a product of `a` and `b`, contracted along their axes, on an H200; checks the result and returns how many
/// kernels there are.
size_t kernels_of(const Type& a, const Type& b, const std::vector<int64_t>& axes, const std::vector<int64_t>& axes2,
                  const std::vector<int64_t>& batch, const Policy& policy) {
  const Value x = parameter(a), y = parameter(b);
  const Graph g{{x, y}, {dot(x, y, axes, axes2, batch, batch) * 0.5}};
  Random random(7);
  const std::vector<HostTensor> inputs{random_tensor(random, a), random_tensor(random, b)};
  std::vector<graph::Storage> storages;
  for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
  InterpretedMachine machine(h200());
  const auto program = build({g, {}, {}}, machine, policy);
  const HostTensor got = from_storage(program->run(storages)[0], g.outputs[0].type());
  CHECK(difference(got, evaluate_reference(g, inputs)[0], 2, 0.15) == "");
  return program->stats().launches;
}

}  // namespace

TEST_CASE("long contractions with few results are divided, whatever their layout; short ones are not") {
  Policy policy;
  policy.libraries = false;
  CHECK(kernels_of({{64, 4096}, bfloat16}, {{4096, 64}, bfloat16}, {1}, {0}, {}, policy) == 2);
  CHECK(kernels_of({{4096, 64}, float16}, {{4096, 64}, float16}, {0}, {0}, {}, policy) == 2);
  CHECK(kernels_of({{2, 64, 4096}, bfloat16}, {{2, 64, 4096}, bfloat16}, {2}, {2}, {0}, policy) == 2);
  CHECK(kernels_of({{64, 128}, bfloat16}, {{128, 64}, bfloat16}, {1}, {0}, {}, policy) == 1);
  CHECK(kernels_of({{64, 4099}, bfloat16}, {{4099, 64}, bfloat16}, {1}, {0}, {}, policy) == 1);  // no whole parts
  CHECK(kernels_of({{64, 4096}, float32}, {{4096, 64}, float32}, {1}, {0}, {}, policy) == 1);    // exact
  policy.numerics.tf32 = true;
  CHECK(kernels_of({{64, 4096}, float32}, {{4096, 64}, float32}, {1}, {0}, {}, policy) == 2);
}

TEST_CASE("tiles fill the SMs, and programs that have one to themselves get its shared memory") {
  const auto tile = [](int64_t rows, int64_t columns, int64_t depth) {
    return kernels::gemm_tiling(h200(), {.operands = bfloat16, .rows = rows, .columns = columns, .depth = depth}).tile;
  };
  const auto is = [](const kernels::GemmTile& t, int64_t rows, int64_t columns) {
    return t.rows == rows && t.columns == columns;
  };
  CHECK(is(tile(8192, 8192, 8192), 128, 256));
  CHECK(is(tile(3072, 768, 8192), 128, 160));  // 120 tiles: one wave of 132
  CHECK(is(tile(8192, 768, 768), 128, 128));   // three waves of 132, whose epilogues run beside multiplications
  CHECK(tile(8192, 768, 768).ping_pong);
  CHECK(!tile(8192, 8192, 8192).ping_pong);
  CHECK(!tile(1024, 1024, 1024).ping_pong);  // one wave
  CHECK(is(tile(1024, 1024, 1024), 128, 64));
  CHECK(tile(1024, 1024, 1024).stages >= 6);
  CHECK(tile(8192, 8192, 8192).stages == 0);
  for (const target::Machine& machine : target::stated_machines()) {
    if (!machine.tensor_cores) continue;
    CAPTURE(machine.name);
    for (const Dtype dtype : {bfloat16, float32}) {
      const kernels::GemmTiling t =
          kernels::gemm_tiling(machine, {.operands = dtype, .rows = 4096, .columns = 4096, .depth = 4096});
      CHECK(t.tile.rows > 0);
      CHECK(t.share > 0.5);
      CHECK(t.share <= 1);
      CHECK(3 * (t.tile.rows + t.tile.columns) * t.tile.depth * dtype.size() <= machine.tensor_core_bytes(dtype));
    }
  }
}

TEST_CASE("lines of the right operand run along its columns or along the contracted axis, through views") {
  const Value a = parameter({{8, 16}, bfloat16}), b = parameter({{16, 32}, bfloat16}),
              heads = parameter({{16, 4, 8}, bfloat16});
  const auto across = [&](const Value& right, std::vector<int64_t> axes2) {
    const Ir ir = import({{{a, b, heads}, {dot(a, right, {1}, std::move(axes2), {}, {})}}, {}, {}});
    const auto found = std::ranges::find(ir.nodes, graph::Op::dot, &IrNode::op);
    const NodeId node(static_cast<int>(found - ir.nodes.begin()));
    return b_lies_across(ir, NodeStrides(ir.nodes.size()), NodeFlags(ir.nodes.size()), node);
  };
  CHECK(across(b, {0}));
  CHECK(across(permute(b, {1, 0}), {1}));
  CHECK(!across(graph::reshape(b, {32, 16}), {1}));
  CHECK(!across(permute(graph::reshape(b, {32, 16}), {1, 0}), {0}));
  CHECK(across(heads, {0}));
}
