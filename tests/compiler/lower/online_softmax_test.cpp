// Maxima and sums of exponentials below them as one reduction: which are joined, and when; how often a row is then
// read; what the results are wherever the reduction is placed.
#include <algorithm>
#include <cmath>

#include "compiler/lower/planned.h"
#include "compiler/schedule/rows.h"
#include "graph/instances.h"
#include "graph/regions/composites.h"
#include "target/cuda/cuda.h"
#include "thinning.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using kernel::Reducer;

namespace {

Value param(Shape shape, Dtype t = float32) { return parameter({std::move(shape), t}); }

Value exp_sum(const Value& x, const std::vector<int64_t>& axes) {
  return sum(exp(x - broadcast(max(x, axes, true), x.shape())), axes);
}

bool joined(target::Target& target, const Graph& g) { return reduces_by(Reducer::logsumexp, target, g); }

/// Rows of all kinds, in turns: of usual numbers, of large ones, with -inf, of -inf alone, with +inf, with a NaN.
HostTensor special_rows(const Type& type) {
  graph::testing::Random r(7);
  HostTensor t{type, {}};
  const int64_t row = type.shape.back().bound();
  for (int64_t k = 0; k < num_elements(type.shape); ++k) {
    const int64_t kind = k / row % 6, at = k % row;
    double v = r.real(-4, 4);
    if (kind == 1) v *= 50;
    if (kind == 2 && r.chance(2)) v = -INFINITY;
    if (kind == 3) v = -INFINITY;
    if (kind == 4 && at == row / 3) v = INFINITY;
    if (kind == 5 && at == row / 2) v = NAN;
    t.data.push_back(kernel::round_to(Number::of_real(v), type.dtype));
  }
  return t;
}

/// The logsumexp and the softmax of rows, rounded once.
std::vector<HostTensor> exact(const HostTensor& x) {
  const auto rows = static_cast<size_t>(x.type.shape[0].bound()), row = static_cast<size_t>(x.type.shape[1].bound());
  HostTensor log{{{x.type.shape[0]}, x.type.dtype}, {}}, soft{x.type, {}};
  const auto put = [&](HostTensor& t, double v) {
    t.data.push_back(kernel::round_to(Number::of_real(v), x.type.dtype));
  };
  for (size_t r = 0; r < rows; ++r) {
    double m = -INFINITY, sum = 0;
    const auto at = [&](size_t k) { return x.data[r * row + k].real(); };
    for (size_t k = 0; k < row; ++k) m = std::isnan(at(k)) || std::isnan(m) ? NAN : std::max(m, at(k));
    for (size_t k = 0; k < row; ++k) sum += std::exp(at(k) - m);
    put(log, std::isinf(m) ? m : m + std::log(sum));
    for (size_t k = 0; k < row; ++k) put(soft, std::exp(at(k) - m) / sum);
  }
  return {log, soft};
}

}  // namespace

TEST_CASE("a maximum and the sum of exponentials below it are joined, in whatever form simplify leaves them") {
  const Value x = param({6, 4, 10}), y = param({4, 10}), n = param({6, 4}, int32), half = param({6, 40}, bfloat16);
  const Value mask = binary(Op::lt, x, full_like(x, 0.5));
  CHECK(joined_reductions({{x}, {softmax(x, {2})}}) == 1);
  CHECK(joined_reductions({{x}, {logsumexp(x, {2}, true), logsumexp(x, {2}, false)}}) == 1);
  CHECK(joined_reductions({{x}, {logsumexp(x, {1, 2}, false)}}) == 1);
  CHECK(joined_reductions({{x}, {logsumexp(x, {0, 1, 2}, false)}}) == 1);
  CHECK(joined_reductions({{x}, {logsumexp(x, {0}, false), softmax(x, {1})}}) == 2);  // down columns, each by itself
  CHECK(joined_reductions({{x}, {exp_sum(x, {2}), max(x, {2})}}) == 1);
  CHECK(joined_reductions({{x, y}, {exp_sum(x * 0.3 + broadcast(y, x.shape()), {2})}}) == 1);
  CHECK(joined_reductions({{x}, {softmax(select(mask, x, full_like(x, -INFINITY)), {2})}}) == 1);
  CHECK(joined_reductions({{half}, {logsumexp(half, {1}, false), softmax(half, {1})}}) == 1);
  CHECK(joined_reductions({{x, n}, {cross_entropy(x, n)}}) == 2);  // the other picks the target's logit
}

TEST_CASE("sums of other exponentials stay") {
  const Value x = param({6, 4, 10}), y = param({6, 4, 10});
  const auto below = [&](const Value& v, const Value& m) { return exp(v - broadcast(m, v.shape())); };
  CHECK(joined_reductions({{x}, {sum(exp(x), {2}), max(x, {2})}}) == 2);
  CHECK(joined_reductions({{x, y}, {sum(below(y, max(x, {2}, true)), {2})}}) == 2);
  CHECK(joined_reductions({{x}, {sum(below(x, expand_dims(reduce(Reducer::min, x, {2}), {2})), {2})}}) == 2);
  CHECK(joined_reductions({{x}, {sum(below(x, max(x, {1, 2}, true)), {2})}}) == 2);
  CHECK(joined_reductions({{x}, {max(below(x, max(x, {2}, true)), {2})}}) == 2);
}

TEST_CASE("rows are joined where they would be read again from beyond what is on chip") {
  Planned h200("NVIDIA H200"), a100("NVIDIA A100"), cpu("CPU with AVX-512");
  const auto lse = [](Shape shape, Dtype t = float32) {
    const Value x = param(std::move(shape), t);
    return Graph{{x}, {logsumexp(x, {1}, false)}};
  };
  const auto soft = [](Shape shape) {
    const Value x = param(std::move(shape));
    return Graph{{x}, {softmax(x, {1})}};
  };
  for (Planned* gpu : {&h200, &a100}) {
    CHECK(joined(*gpu, lse({4096, 50304})));
    CHECK(joined(*gpu, lse({4096, 131072}, bfloat16)));
    CHECK(joined(*gpu, lse({1, 1 << 22})));
    CHECK(!joined(*gpu, lse({4096, 12345})));  // in the shared memory of a block
    CHECK(!joined(*gpu, lse({4096, 50304}, bfloat16)));
  }
  CHECK(!joined(h200, soft({4096, 50304})));  // in that of a cluster, for the results
  CHECK(joined(a100, soft({4096, 50304})));
  CHECK(joined(h200, soft({1024, 1 << 20})));
  for (const auto& few : {lse({8, 1 << 20}), soft({64, 1 << 20})}) {
    CHECK(!joined(h200, few));  // clusters share the rows: one launch
    CHECK(joined(a100, few));
  }
  CHECK(!joined(cpu, lse({8, 1 << 20})));  // the exponentials take as long as reading
}

TEST_CASE("long rows are read once for their logsumexp, and once more for a softmax that is too long for the chip") {
  Planned h200("NVIDIA H200"), a100("NVIDIA A100");
  const auto reads = [](Planned& target, int64_t rows, int64_t row, Dtype t, bool soft) {
    const Value x = param({rows, row}, t);
    return reads_of_row(target, {{x}, {soft ? softmax(x, {1}) : logsumexp(x, {1}, false)}}, row);
  };
  for (const Dtype t : {float32, bfloat16}) {
    CHECK(reads(h200, 4096, 50304, t, false) == 1);
    CHECK(reads(a100, 4096, 50304, t, false) == 1);
    CHECK(reads(a100, 600, 12345, t, false) == 1);
    CHECK(reads(a100, 4096, 131072, t, true) == 2);
  }
  const Value x = param({4096, 50304}), few = param({8, 1 << 20});
  const auto program = build({{{x}, {logsumexp(x, {1}, false)}}, {}, {}}, h200);
  REQUIRE(program->steps().size() == 1);
  CHECK(program->steps()[0].bytes == 4.0 * (4096.0 * 50304 + 4096));
  CHECK(program->print("kernels").find("alloc") == std::string::npos);  // nothing of a row is kept
  // Few rows are split over the grid: a launch for the states of the parts, one that combines them.
  CHECK(build({{{few}, {logsumexp(few, {1}, false)}}, {}, {}}, a100)->stats().count() == 2);
  CHECK(build({{{few}, {logsumexp(few, {1}, false)}}, {}, {}}, h200)->stats().count() == 1);
}

TEST_CASE("a step of a long row takes several tiles with one exponential for their state") {
  Planned h200("NVIDIA H200");
  const Value x = param({4096, 50304});
  build({{{x}, {logsumexp(x, {1}, false)}}, {}, {}}, h200);
  REQUIRE(h200.kernels.size() == 1);
  int loads = 0, exponentials = 0;
  for (const kernel::Inst& inst : h200.kernels[0].body.insts)
    if (inst.op == kernel::Op::loop && loads == 0)
      for (const kernel::Inst& inner : inst.blocks[0].insts) {
        loads += inner.op == kernel::Op::load;
        exponentials += inner.op == kernel::Op::scalar && inner.scalar_op == kernel::ScalarOp::exp;
      }
  CHECK(loads == tiles_of_step(Reducer::logsumexp));
  CHECK(exponentials == loads + 1);
}

TEST_CASE("joined reductions have the values of float64 wherever they are placed, of all rows") {
  Interpreted blocks(1), cluster(4, 8);
  const auto check = [](const Shape& shape, Dtype t, target::Target& target) {
    const Value x = param(shape, t);
    const Graph g{{x}, {logsumexp(x, {1}, false), softmax(x, {1})}};
    const HostTensor input = special_rows(x.type());
    const std::vector<HostTensor> expected = exact(input);
    const auto got = build({g, {}, {}}, target)->run(std::vector<graph::Storage>{roomy(input)});
    CAPTURE(to_string(x.type()));
    CAPTURE(target.machine().simt);
    CAPTURE(target.machine().cluster);
    const bool single = t == float32;  // x - m is rounded, and its exponential is off by as much
    CHECK(difference(from_storage(got[0], g.outputs[0].type()), expected[0], single ? 16 : 1, 1e-6) == "");
    CHECK(difference(from_storage(got[1], g.outputs[1].type()), expected[1], single ? 400 : 2, 1e-30) == "");
  };
  for (target::Target* gpu : {static_cast<target::Target*>(&blocks), static_cast<target::Target*>(&cluster)}) {
    check({7, 30001}, float32, *gpu);
    if (weft::test::sanitized) continue;
    for (const Dtype t : {float32, bfloat16, float16}) check({6, 60001}, t, *gpu);
    check({6, 70000}, float32, *gpu), check({1, 40000}, float32, *gpu);
  }
  check({7, 9001}, float32, weft::test::target_under_test());
  check({9, 340000}, float32, weft::test::target_under_test());  // beyond a core's cache
  check({6, 340001}, float32, weft::test::target_under_test());  // few rows: each in parts
}

TEST_CASE("states of a maximum and a sum: every axis, every split, and nothing to reduce") {
  Interpreted blocks(1), cluster(4, 8);
  struct Placed {
    Shape shape;
    std::vector<int64_t> axes;
  };
  for (const auto& [shape, axes] : {Placed{{5, 300}, {1}},
                                    {{3, 9001}, {1}},
                                    {{1, 40000}, {1}},
                                    {{30000}, {0}},
                                    {{700, 40}, {0}},
                                    {{2051, 136}, {0}},
                                    {{20000, 3}, {0}},
                                    {{3, 70, 40}, {1}},
                                    {{9, 4, 8}, {0, 2}},
                                    {{4, 0}, {1}},
                                    {{0, 4}, {1}}}) {
    const Value x = param(shape), v = param(shape);
    const Graph g{{x, v}, reduce_state(Reducer::logsumexp, {x, v}, axes)};
    const HostTensor inputs[] = {special_rows(x.type()), [&, v = v] {
                                   graph::testing::Random r(9);
                                   HostTensor t{v.type(), {}};
                                   for (int64_t k = num_elements(v.shape()); k > 0; --k)
                                     t.data.push_back(Number::of_real(r.real(0.5, 2)));
                                   return t;
                                 }()};
    const auto expected = evaluate_reference(g, inputs);
    for (target::Target* target : {&weft::test::target_under_test(), static_cast<target::Target*>(&blocks),
                                   static_cast<target::Target*>(&cluster)}) {
      const auto got =
          build({g, {}, {}}, *target)->run(std::vector<graph::Storage>{roomy(inputs[0]), roomy(inputs[1])});
      CAPTURE(to_string(x.type()));
      CAPTURE(target->fingerprint());
      for (size_t k = 0; k < got.size(); ++k)
        CHECK(difference(from_storage(got[k], g.outputs[k].type()), expected[k], 400, 1e-6) == "");
    }
  }
}

TEST_CASE("kernels of joined reductions compile for a Hopper GPU and spill nothing") {
  target::cuda::CudaTarget gpu(target::stated_machine("NVIDIA H200"), false);
  const auto lse = [&](Shape shape, Dtype t) {
    const Value x = param(std::move(shape), t);
    build({{{x}, {logsumexp(x, {1}, false)}}, {}, {}}, gpu);
  };
  try {
    for (const Dtype t : {float32, bfloat16}) lse({4096, 131072}, t), lse({600, 123456}, t), lse({1, 1 << 22}, t);
  } catch (const std::exception& error) {
    MESSAGE("skipped: " << error.what());
    return;
  }
  CHECK(!gpu.usage().empty());
  for (const target::cuda::KernelUsage& use : gpu.usage()) {
    CAPTURE(use.name);
    CHECK(use.spill_store_bytes == 0);
    CHECK(use.stack_bytes == 0);
    CHECK(use.registers <= 128);
  }
}
