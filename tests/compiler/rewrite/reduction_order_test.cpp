// Reductions of permuted arrays as reductions along the axes of the arrays as they lie: which are, and that the results
// stay what they were.
#include "compiler/layout/reduction_order.h"
#include "compiler/lower/planned.h"
#include "graph/regions/composites.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using kernel::Reducer;

namespace {

using Axes = std::vector<int64_t>;

Value param(Shape shape, Dtype t = float32) { return parameter({std::move(shape), t}); }
Value turned(const Value& x) { return permute(x, {1, 0}); }
Value spread(const Value& x, const Axes& axes) {
  return sum(square(x - broadcast(mean(x, axes, true), x.shape())), axes);
}

/// Returns the axes of the reductions of a graph once they are in order, and checks that it computes what it did.
std::vector<Axes> ordered(const Graph& g) {
  const Ir plain = eliminate_dead_code(simplify(import({g, {}, {}})));
  const Ir ir = reductions_in_memory_order(plain);
  compiler::verify(ir);
  const std::vector<HostTensor> in = random_inputs(plain);
  CHECK(disagreement(evaluate(ir, in), evaluate(plain, in), 1e-6) == "");
  std::vector<Axes> all;
  for (const IrNode& n : ir.nodes)
    if (n.op == Op::reduce) all.push_back(n.attrs->axes);
  return all;
}

}  // namespace

TEST_CASE("what permutes an array is behind its reduction") {
  const Value x = param({6, 10}), y = param({3, 4, 5}), row = param({10}), half = param({6, 10}, bfloat16);
  CHECK(ordered({{x}, {sum(turned(x), {1})}}) == std::vector<Axes>{{0}});
  CHECK(ordered({{x}, {max(exp(turned(x)) * 2, {0})}}) == std::vector<Axes>{{1}});
  CHECK(ordered({{half}, {sum(cast(turned(half), float32), {1})}}) == std::vector<Axes>{{0}});
  CHECK(ordered({{x, row}, {sum(turned(x) * broadcast(reshape(row, {10, 1}), {10, 6}), {1})}}) ==
        std::vector<Axes>{{0}});
  CHECK(ordered({{x}, {spread(turned(x), {1})}}) == std::vector<Axes>{{0}, {0}});
  CHECK(ordered({{x}, {softmax(turned(x), {1})}}) == std::vector<Axes>{{0}, {0}});
  CHECK(ordered({{y}, {sum(permute(y, {2, 0, 1}), {1})}}) == std::vector<Axes>{{0}});
  CHECK(ordered({{y}, {sum(permute(y, {2, 1, 0}), {0})}}) == std::vector<Axes>{{2}});  // its results are permuted
  CHECK(ordered({{y}, {sum(permute(y, {2, 1, 0}), {0, 2})}}) == std::vector<Axes>{{0, 2}});
  CHECK(ordered({{y}, {mean(permute(y, {0, 2, 1}), {0, 2}, true)}}) == std::vector<Axes>{{0, 1}});
}

TEST_CASE("positions that a reduction compares count along the array's own axis") {
  const Value x = param({6, 10});
  const Value best = extreme_index(Reducer::argmax, turned(x), 1);
  for (const Axes& axes : ordered({{x}, {best}})) CHECK(axes == Axes{0});
}

TEST_CASE("arrays with several orders, and orders that leave rows where they are, stay") {
  const Value x = param({6, 10}), y = param({10, 6}), z = param({3, 4, 5});
  CHECK(ordered({{x, y}, {sum(turned(x) + y, {1})}}) == std::vector<Axes>{{1}});
  CHECK(ordered({{x}, {sum(x, {0}), sum(turned(x) + turned(x * 2), {1})}}).size() == 2);
  CHECK(ordered({{z}, {sum(permute(z, {1, 0, 2}), {2})}}) == std::vector<Axes>{{2}});
  CHECK(ordered({{z}, {sum(permute(z, {0, 2, 1}), {0, 1})}}) == std::vector<Axes>{{0, 1}});  // else {0, 2}
  CHECK(ordered({{x, y}, {sum(turned(x), {1}), sum(turned(x) * y, {1})}}) == std::vector<Axes>{{1}, {1}});
  CHECK(ordered({{z}, {sum(permute(z, {1, 0, 2}) + permute(permute(z, {1, 2, 0}), {0, 2, 1}), {2})}}).size() == 1);
}

TEST_CASE("reductions of a transposed array read it along its rows, once") {
  Planned h100("NVIDIA H100");
  const auto names = [&](const Graph& g) {
    std::vector<std::string> all;
    h100.kernels.clear();
    build({g, {}, {}}, h100);
    for (const kernel::Kernel& k : h100.kernels) all.push_back(k.name.substr(0, k.name.rfind('_')));
    return all;
  };
  const Value x = param({2048, 1024});
  CHECK(names({{x}, {spread(turned(x), {1})}}) == std::vector<std::string>{"column_welford"});
  CHECK(names({{x}, {sum(turned(x), {0})}}) == std::vector<std::string>{"row_sum"});
  const std::vector<std::string> normalised = names({{x}, {softmax(turned(x), {1})}});
  CHECK(normalised.front() == "column_logsumexp");
  CHECK(normalised.back() == "transposed");  // of tiles that are turned on chip
}
