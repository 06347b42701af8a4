// A reduction of a reduction that nothing else reads is one reduction over the axes of both.
#include <algorithm>

#include "compiler/ir/verify.h"
#include "compiler/rewrite/reduction_algebra.h"
#include "compiler/rewrite/simplify.h"
#include "compiler/support.h"
#include "compiler/verify/semantic.h"
#include "graph/instances.h"

using namespace weft;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using graph::Graph;
using graph::Op;
using graph::Value;

namespace {

/// Returns the reductions that are left, and checks that the graph computes what it did.
int64_t reductions(const Graph& g) {
  const Ir plain = eliminate_dead_code(simplify(import({g, {}, {}})));
  const Ir joined = eliminate_dead_code(join_reductions(plain));
  compiler::verify(joined);
  const std::vector<HostTensor> in = random_inputs(plain);
  CHECK(disagreement(evaluate(joined, in), evaluate(plain, in), 1e-6) == "");
  return std::count_if(joined.nodes.begin(), joined.nodes.end(), [](const IrNode& n) { return n.op == Op::reduce; });
}

}  // namespace

TEST_CASE("nested reductions are joined: of any reducer, in any order, through reshapes, and by chains") {
  const Value x = graph::parameter({{6, 5, 4, 3}, float32});
  CHECK(reductions({{x}, {graph::sum(graph::sum(x, {1}), {0})}}) == 1);
  CHECK(reductions({{x}, {graph::sum(graph::sum(x, {0}), {0})}}) == 1);
  CHECK(reductions({{x}, {graph::max(graph::max(x, {2}), {1})}}) == 1);
  CHECK(reductions({{x}, {graph::sum(graph::reshape(graph::sum(x, {1}), {6, 1, 4, 1, 3}), {2})}}) == 1);
  CHECK(reductions({{x}, {graph::sum(graph::reshape(graph::sum(x, {1}), {6, 1, 4, 1, 3}), {0, 2})}}) == 1);
  CHECK(reductions({{x}, {graph::sum(graph::sum(graph::sum(x, {2}), {1}), {0})}}) == 1);
}

TEST_CASE("nested reductions stay: of two reducers, rounded, read by others, over axes apart or along rows") {
  const Value x = graph::parameter({{6, 5, 4, 3}, float32}), half = graph::parameter({{6, 5, 3}, bfloat16});
  const Value inner = graph::sum(x, {1});
  CHECK(reductions({{x}, {graph::max(inner, {0})}}) == 2);
  CHECK(reductions({{half}, {graph::sum(graph::sum(half, {1}), {0})}}) == 2);
  CHECK(reductions({{x}, {graph::sum(inner, {0}), inner}}) == 2);
  CHECK(reductions({{x}, {graph::sum(inner, {0}), graph::exp(inner)}}) == 2);
  CHECK(reductions({{x}, {graph::sum(graph::sum(x, {0}), {1})}}) == 2);
  CHECK(reductions({{x}, {graph::sum(graph::sum(x, {3}), {2})}}) == 2);
  CHECK(reductions({{x}, {graph::sum(graph::reshape(inner, {6, 12}), {0})}}) == 2);
}
