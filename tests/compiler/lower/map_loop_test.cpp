// Maps whose work repeats along axes of the domain: a program computes it once, before its loop over these axes.
#include "compiler/lower/recorded.h"
#include "compiler/support.h"
#include "graph/instances.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

bool is_trigonometric(const kernel::Inst& inst) {
  return inst.op == kernel::Op::scalar &&
         (inst.scalar_op == kernel::ScalarOp::sin || inst.scalar_op == kernel::ScalarOp::cos);
}
bool is_gather(const kernel::Inst& inst) { return inst.op == kernel::Op::gather; }

HostTensor random_values(graph::testing::Random& r, const graph::Type& type) {
  HostTensor t{type, {}};
  for (int64_t k = num_elements(type.shape); k > 0; --k)
    t.data.push_back(kernel::round_to(Number::of_real(static_cast<double>(r.below(4001)) / 1000.0 - 2), type.dtype));
  return t;
}

/// Rotates pairs of halves of the last axis of x by angles that all leading axes share.
Value rotated(const Value& x, const Value& angles) {
  Shape half = x.shape();
  half.back() = half.back().bound() / 2;
  const int last = static_cast<int>(half.size()) - 1;
  const Value c = graph::broadcast(unary(Op::cos, angles), half), s = graph::broadcast(unary(Op::sin, angles), half),
              a = slice_axis(x, last, 0, half.back()), b = slice_axis(x, last, half.back().bound(), half.back());
  return concat({a * c - b * s, a * s + b * c}, last);
}

/// Returns the one kernel of a graph, whose results are held against the reference.
kernel::Kernel kernel_of(const Graph& g, const std::vector<HostTensor>& inputs, double ulp, double absolute) {
  RecordingTarget target;
  const auto program = build({g, {}, {}}, target);
  REQUIRE(target.kernels.size() == 1);
  std::vector<graph::Storage> storages;
  for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
  const auto results = program->run(storages);
  const auto expected = evaluate_reference(g, inputs);
  for (size_t k = 0; k < expected.size(); ++k)
    CHECK(difference(from_storage(results[k], g.outputs[k].type()), expected[k], ulp, absolute) == "");
  return target.kernels[0];
}

}  // namespace

TEST_CASE("what all heads share is computed once, and a concat reads the operand that a tile lies in") {
  const auto lanes = target::cpu().machine().lanes(4);
  graph::testing::Random r(3);
  for (const int64_t halves : {2 * lanes, 4 * lanes}) {
    CAPTURE(halves);
    const Shape shape{3, 5, 7, halves};
    const Value x = parameter({shape, float32}), angles = parameter({{7, halves / 2}, float32});
    const Graph g{{x, angles}, {rotated(x, angles)}};
    const kernel::Kernel k = kernel_of(g, {random_values(r, x.type()), random_values(r, angles.type())}, 4, 1e-6);
    const auto [before, inside] = count(k.body, is_trigonometric);
    CHECK(before >= 2);
    CHECK(inside == 0);
    const auto [gathers, gathers_inside] = count(k.body, is_gather);
    CHECK(gathers + gathers_inside == 0);
  }
}

TEST_CASE("loads that gather lanes are hoisted out of the loop over what shares them") {
  const auto lanes = target::cpu().machine().lanes(4);
  graph::testing::Random r(4);
  // Groups of channels with a statistic each, over so many pixels that a program takes only some of them.
  const int64_t groups = lanes, each = 4;
  for (const int64_t pixels : {6, 512, 521}) {
    CAPTURE(pixels);
    const Shape split{2, pixels, groups, each};
    const Value x = parameter({{2, pixels, groups * each}, float32}), means = parameter({{2, 1, groups, 1}, float32}),
                w = parameter({{groups * each}, float32});
    const Value centred = graph::reshape(graph::reshape(x, split) - graph::broadcast(means, split), x.shape());
    const Graph g{{x, means, w}, {centred * graph::broadcast(w, x.shape())}};
    std::vector<HostTensor> inputs;
    for (const Value& v : g.inputs) inputs.push_back(random_values(r, v.type()));
    const kernel::Kernel k = kernel_of(g, inputs, 0, 0);
    const auto [before, inside] = count(k.body, is_gather);
    CHECK(before >= 1);
    CHECK(inside == 0);
  }
}

TEST_CASE("a map without repeated work has no loop over rows") {
  const auto lanes = target::cpu().machine().lanes(4);  // rows of one tile: no loop over lanes
  graph::testing::Random r(5);
  const Value x = parameter({{40, 3, lanes}, float32}), w = parameter({{lanes}, float32});
  const Graph g{{x, w}, {x * graph::broadcast(w, x.shape())}};
  const kernel::Kernel k = kernel_of(g, {random_values(r, x.type()), random_values(r, w.type())}, 0, 0);
  const auto [before, inside] = count(k.body, [](const kernel::Inst& inst) { return inst.op == kernel::Op::store; });
  CHECK(before + inside >= 1);
  CHECK(inside == 0);
}
