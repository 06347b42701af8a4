// A sum over a one-hot selection reads the element that is selected: along any axis, with the roundings of the casts on
// the way, and only where one position at most equals the target.
#include <algorithm>
#include <array>

#include "compiler/ir/verify.h"
#include "compiler/rewrite/reduction_algebra.h"
#include "compiler/rewrite/simplify.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "compiler/verify/semantic.h"
#include "graph/instances.h"
#include "graph/regions/composites.h"

using namespace weft;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using graph::Graph;
using graph::Op;
using graph::Value;

namespace {

Value param(Shape shape, Dtype dtype = float32) { return graph::parameter({std::move(shape), dtype}); }

/// Where the position along the axis equals the target, which has the shape without that axis.
Value equal_positions(const Value& target, const Shape& shape, int axis) {
  return graph::binary(Op::eq, graph::iota(shape, axis, target.dtype()),
                       graph::broadcast(graph::expand_dims(target, {axis}), shape));
}

Value selected_sum(const Value& x, const Value& target, int axis) {
  return graph::sum(graph::select(equal_positions(target, x.shape(), axis), x, graph::zeros_like(x)), {axis});
}

Ir rewritten(const Graph& g) {
  Ir ir = eliminate_dead_code(reduction_algebra(eliminate_dead_code(simplify(import({g, {}, {}})))));
  compiler::verify(ir);
  return ir;
}

int64_t count(const Ir& ir, Op op) {
  return std::count_if(ir.nodes.begin(), ir.nodes.end(), [&](const IrNode& n) { return n.op == op; });
}

/// Random elements, and targets at both ends, outside both, and between.
std::vector<HostTensor> inputs_of(const Graph& g, int64_t length) {
  graph::testing::Random r(6);
  std::vector<HostTensor> in;
  for (const Value& v : g.inputs) {
    in.push_back(graph::testing::random_tensor(r, v.type()));
    const std::array<int64_t, 6> targets{0, length - 1, 700, -1, length, 3};
    for (size_t k = 0; is_integer(v.dtype()) && k < in.back().data.size(); ++k)
      in.back().data[k] = kernel::round_to(Number::of_int(targets[k % targets.size()]), v.dtype());
  }
  return in;
}

/// Checks that the graph's first output, rewritten and interpreted, and compiled for a GPU, has the values of the
/// unfused graph. Returns the launches.
int launches_of_same(const Graph& g, int64_t length) {
  const std::vector<HostTensor> in = inputs_of(g, length), expected = evaluate_reference(g, in);
  CHECK(difference(evaluate(rewritten(g), in)[0], expected[0], 0) == "");
  weft::test::SimtTarget target;
  const auto program = build({g, {}, {}}, target);
  std::vector<graph::Storage> storages;
  for (const HostTensor& t : in) storages.push_back(to_storage(t));
  CHECK(difference(from_storage(program->run(storages)[0], g.outputs[0].type()), expected[0], 0) == "");
  return program->stats().count();
}

}  // namespace

TEST_CASE("one-hot sums: one gather along any axis, of any integer type of target that holds its positions") {
  struct Case {
    Shape shape;
    int axis;
  };
  for (const Case& c : {Case{{1500, 6}, 0}, Case{{1500}, 0}, Case{{1500, 2, 3}, 0}, Case{{2, 1200, 3}, 1},
                        Case{{6, 1500}, 1}, Case{{2, 3, 1024}, 2}})
    for (const Dtype dtype : {int32, int64, uint16, uint64}) {
      CAPTURE(to_string(c.shape));
      CAPTURE(static_cast<int>(dtype.val()));
      Shape without = c.shape;
      without.erase(without.begin() + c.axis);
      const Value x = param(c.shape), t = param(without, dtype);
      const Graph g{{x, t}, {selected_sum(x, t, c.axis)}};
      const Ir ir = rewritten(g);
      CHECK(count(ir, Op::gather) == 1);
      CHECK(count(ir, Op::reduce) == 0);
      CHECK(launches_of_same(g, c.shape[static_cast<size_t>(c.axis)].bound()) == 1);
    }
}

TEST_CASE("one-hot sums: the element is rounded by each cast that it would have been rounded by") {
  const Value x = param({6, 1500}), t = param({6}, int32);
  const auto through = [&](std::initializer_list<Dtype> casts) {
    Value v = x;
    for (const Dtype dtype : casts) v = graph::cast(v, dtype);
    return Graph{{x, t}, {graph::cast(selected_sum(v, t, 1), float32)}};
  };
  for (const auto& casts : {std::initializer_list<Dtype>{bfloat16, float32},
                            {float16, bfloat16},
                            {bfloat16, float32, bfloat16},
                            {float16, float32, float16, bfloat16}}) {
    const Graph g = through(casts);
    CHECK(count(rewritten(g), Op::gather) == 1);
    launches_of_same(g, 1500);
  }
  const auto value = [&](std::initializer_list<Dtype> casts) {
    std::vector<HostTensor> in = inputs_of(through(casts), 1500);
    in[0].data[0] = Number::of_real(1 + 0x1p-8 + 0x1p-20);  // float16 makes of it half a step of bfloat16
    return evaluate(rewritten(through(casts)), in)[0].data[0].real();
  };
  CHECK(value({}) == 1 + 0x1p-8 + 0x1p-20);
  CHECK(value({bfloat16, float32}) == 1 + 0x1p-7);
  CHECK(value({float16, bfloat16}) == 1);
}

TEST_CASE("one-hot sums: no gather where positions repeat, the row is short or computed, or the sum is another") {
  const Value x = param({6, 1500}), t = param({6}, int32), narrow = param({6}, int8), real = param({6});
  const Value shorter = param({6, 1000});
  const Value hot = equal_positions(t, x.shape(), 1), zero = graph::zeros_like(x);
  for (const Graph& g :
       {Graph{{x, narrow}, {selected_sum(x, narrow, 1)}}, Graph{{x, real}, {selected_sum(x, real, 1)}},
        Graph{{shorter, t}, {selected_sum(shorter, t, 1)}}, Graph{{x, t}, {selected_sum(x * 2.0, t, 1)}},
        Graph{{x, t}, {graph::max(graph::select(hot, x, zero), {1})}},
        Graph{{x, t}, {graph::sum(graph::select(hot, x, zero), {0})}},
        Graph{{x, t}, {graph::sum(graph::select(hot, x, zero), {0, 1})}},
        Graph{{x, t}, {graph::sum(graph::select(hot, x, zero + 1.0), {1})}},
        Graph{{x, t}, {graph::sum(graph::select(hot, zero, x), {1})}}})
    CHECK(count(rewritten(g), Op::gather) == 0);
}

TEST_CASE("one-hot sums: a loss reads its logits' elements where rows lie in memory and are long") {
  const auto gathers = [](const Value& logits, const Value& targets, const Value& result) {
    return count(rewritten({{logits, targets}, {result}}), Op::gather);
  };
  const Value t = param({2, 3}, int32), x = param({2, 3, 1500}, bfloat16), narrow = param({2, 3, 100});
  CHECK(gathers(x, t, graph::cross_entropy(x, t)) == 1);
  CHECK(gathers(narrow, t, graph::cross_entropy(narrow, t)) == 0);
  CHECK(gathers(x, t, graph::cross_entropy(x * 2.0, t)) == 0);
  const Graph g{{x, t}, {graph::cast(graph::cross_entropy(x, t), float32)}};
  const std::vector<HostTensor> in = inputs_of(g, 1500);
  CHECK(difference(compile_and_run(g, in).outputs[0], evaluate_reference(g, in)[0], 4, 1e-5) == "");
}
