// Dots over several axes become dots over one. An operand that is no view is copied row by row: the axis that runs last
// in memory stays last.
#include <algorithm>

#include "compiler/ir/verify.h"
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

/// Returns the dot that is left, and checks that the graph computes what it did.
IrNode merged(const Graph& g) {
  const Ir plain = import({g, {}, {}}), simple = eliminate_dead_code(simplify(import({g, {}, {}})));
  compiler::verify(simple);
  const std::vector<HostTensor> in = random_inputs(plain);
  CHECK(disagreement(evaluate(simple, in), evaluate(plain, in), 1e-6) == "");
  return *std::find_if(simple.nodes.begin(), simple.nodes.end(), [](const IrNode& n) { return n.op == Op::dot; });
}

/// Contracts both axes of x [4, 6, 5] with two of a permuted array.
Graph product(const Value& array, const std::vector<int64_t>& order, const std::vector<int64_t>& axes2) {
  const Value x = graph::parameter({{4, 6, 5}, float32});
  return {{x, array}, {graph::dot(x, graph::permute(array, order), {0, 1}, axes2)}};
}

}  // namespace

TEST_CASE("contracted axes of a permuted operand are merged before a kept axis that runs last in memory") {
  const IrNode leading = merged(product(graph::parameter({{6, 4, 7}, float32}), {1, 0, 2}, {0, 1}));
  CHECK(leading.attrs->axes == std::vector<int64_t>{1});
  CHECK(leading.attrs->axes2 == std::vector<int64_t>{0});
  // The last axis in memory is contracted; nothing is permuted.
  CHECK(merged(product(graph::parameter({{7, 6, 4}, float32}), {2, 1, 0}, {0, 1})).attrs->axes2 ==
        std::vector<int64_t>{1});
  CHECK(merged(product(graph::parameter({{7, 4, 6}, float32}), {0, 1, 2}, {1, 2})).attrs->axes2 ==
        std::vector<int64_t>{1});
}

TEST_CASE("a dot over several axes with batches of its own") {
  const Value a = graph::parameter({{3, 4, 5, 6}, float32}), b = graph::parameter({{4, 5, 3, 7}, float32});
  const IrNode merged_dot = merged({{a, b}, {graph::dot(a, b, {1, 2}, {0, 1}, {0}, {2})}});
  CHECK(merged_dot.attrs->batch == std::vector<int64_t>{0});
  CHECK(merged_dot.attrs->axes.size() == 1);
}
