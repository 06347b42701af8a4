// Maps over concats: a program computes the elements of all parts at one position, and each part reads one operand.
#include "compiler/lower/recorded.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/derive/derive.h"
#include "graph/instances.h"
#include "kernel/expand/expand.h"
#include "target/cuda/codegen/render.h"
#include "thinning.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

/// A GPU whose kernels run on the CPU, and are recorded and rendered.
class RecordingGpu final : public weft::test::SimtTarget {
 public:
  std::string fingerprint() const override { return "recording gpu"; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> all) override {
    for (const kernel::Kernel& k : all) source += target::cuda::render(kernel::expand(k), k.name, {}, {}).source;
    kernels.insert(kernels.end(), all.begin(), all.end());
    return weft::test::compile_when_run(all);
  }
  std::vector<kernel::Kernel> kernels;
  std::string source;
};

HostTensor random_values(graph::testing::Random& r, const graph::Type& type) {
  HostTensor t{type, {}};
  for (int64_t k = num_elements(type.shape); k > 0; --k)
    t.data.push_back(
        is_float(type.dtype)
            ? kernel::round_to(Number::of_real(static_cast<double>(r.below(4001)) / 1000.0 - 2), type.dtype)
            : Number::of_int(r.below(type.dtype == bool_ ? 2 : 6)));
  return t;
}

/// Holds the results of a graph against the reference.
void check_results(const Graph& g, target::Target& target, graph::testing::Random& r, double ulp = 0,
                   double absolute = 1e-6) {
  std::vector<HostTensor> inputs;
  std::vector<graph::Storage> storages;
  for (const Value& v : g.inputs) {
    inputs.push_back(random_values(r, v.type()));
    storages.push_back(to_storage(inputs.back()));
  }
  const auto results = build({g, {}, {}}, target)->run(storages);
  const auto expected = evaluate_reference(g, inputs);
  for (size_t k = 0; k < expected.size(); ++k)
    CHECK(difference(from_storage(results[k], g.outputs[k].type()), expected[k], ulp, ulp > 0 ? absolute : 0) == "");
}

/// Returns how many instructions of a kernel `is` holds for.
template <class Is>
int in_all(const kernel::Kernel& k, Is is) {
  const auto [outside, inside] = count(k.body, is);
  return outside + inside;
}
bool is_load(const kernel::Inst& i) { return i.op == kernel::Op::load && i.type.rank() > 0; }
bool is_gather(const kernel::Inst& i) { return i.op == kernel::Op::gather; }
bool is_masked(const kernel::Inst& i) { return is_gather(i) && i.args[1] != kernel::no_value; }
bool is_select(const kernel::Inst& i) {
  return i.op == kernel::Op::scalar && i.scalar_op == kernel::ScalarOp::select && i.type.rank() > 0;
}

/// Rotates pairs of halves of the last axis by angles that the leading axes share.
Graph rotation(const Shape& shape, Dtype dtype) {
  Shape half = shape;
  half.back() = half.back().bound() / 2;
  const int last = static_cast<int>(half.size()) - 1;
  const Value x = parameter({shape, dtype}), c = parameter({{shape[shape.size() - 2], half.back()}, dtype}),
              s = parameter({{shape[shape.size() - 2], half.back()}, dtype}), cs = graph::broadcast(c, half),
              sn = graph::broadcast(s, half), a = slice_axis(x, last, 0, half.back()),
              b = slice_axis(x, last, half.back().bound(), half.back());
  return {{x, c, s}, {concat({a * cs - b * sn, a * sn + b * cs}, last)}};
}

/// The derivative of a product of functions of slices of one array.
Graph gates(const Shape& shape, int64_t count) {
  const Value x = parameter({shape, float32});
  const int last = static_cast<int>(shape.size()) - 1;
  const int64_t each = shape.back().bound() / count;
  Value y;
  for (int64_t k = 0; k < count; ++k) {
    const Value gate = unary(k % 2 == 0 ? Op::sigmoid : Op::tanh, slice_axis(x, last, k * each, each));
    y = k == 0 ? gate : y * gate;
  }
  const Value g = parameter({y.shape(), float32});
  return {{x, g}, pull_back(std::vector<Value>{y}, std::vector<Value>{g}, std::vector<Value>{x})};
}

}  // namespace

TEST_CASE("a rotation reads both halves once, contiguously, and without conditions") {
  graph::testing::Random r(11);
  const auto lanes = target::cpu().machine().lanes(4);
  RecordingTarget cpu;
  check_results(rotation({3, 5, 4 * lanes}, float32), cpu, r, 4);
  REQUIRE(cpu.kernels.size() == 1);
  CHECK(in_all(cpu.kernels[0], is_gather) == 0);
  CHECK(in_all(cpu.kernels[0], is_select) == 0);
  CHECK(in_all(cpu.kernels[0], is_load) == 4);

  RecordingGpu gpu;
  check_results(rotation({4, 6, 64, 64}, bfloat16), gpu, r, 1, 0.05);
  REQUIRE(gpu.kernels.size() == 1);
  CHECK(in_all(gpu.kernels[0], is_masked) == 0);
  CHECK(in_all(gpu.kernels[0], is_select) == 0);
  CHECK(in_all(gpu.kernels[0], is_gather) + in_all(gpu.kernels[0], is_load) == 4);
}

TEST_CASE("the derivative of gates reads each slice once, and no lane computes another gate's branch") {
  graph::testing::Random r(12);
  for (const int64_t count : {2, 3, 4}) {
    CAPTURE(count);
    RecordingGpu gpu;
    const Graph g = gates({32, count * 256}, count);
    check_results(g, gpu, r, 16);
    REQUIRE(gpu.kernels.size() == 1);
    CHECK(in_all(gpu.kernels[0], is_gather) == 0);
    CHECK(in_all(gpu.kernels[0], is_select) == 0);
    CHECK(in_all(gpu.kernels[0], is_load) == count + 1);
    RecordingTarget cpu;
    check_results(g, cpu, r, 16);
    REQUIRE(cpu.kernels.size() == 1);
    CHECK(in_all(cpu.kernels[0], is_gather) == 0);
    CHECK(in_all(cpu.kernels[0], is_load) == count + 1);
  }
}

TEST_CASE("concats behind a reshape and along leading axes are cut") {
  graph::testing::Random r(13);
  const Value x = parameter({{8, 32, 12, 32}, bfloat16}), y = parameter({{8, 32, 12, 32}, bfloat16});
  const Value a = parameter({{1, 40, 64}, float32}), b = parameter({{3, 40, 64}, float32});
  for (const Graph& g : {Graph{{x, y}, {graph::reshape(concat({x * y, x + y}, 3), {8, 32, 12 * 64})}},
                         Graph{{a, b}, {concat({a, b * 2.0}, 0)}}}) {
    RecordingGpu gpu;
    check_results(g, gpu, r);
    REQUIRE(gpu.kernels.size() == 1);
    CHECK(in_all(gpu.kernels[0], is_masked) == 0);
    CHECK(in_all(gpu.kernels[0], is_select) == 0);
  }
}

TEST_CASE("chunks of a part travel in words of 16 bytes") {
  RecordingGpu gpu;
  build({rotation({16, 12, 1024, 64}, bfloat16), {}, {}}, gpu);
  CHECK(gpu.source.find("W16") != std::string::npos);
  CHECK(gpu.source.find("] = p1[") == std::string::npos);
}

TEST_CASE("concats of any shapes, axes and dtypes have the reference's values") {
  graph::testing::Random r(15);
  RecordingGpu gpu;
  const Dtype dtypes[] = {float32, bfloat16, float16, int32, bool_, float64, int8};
  for (int64_t repeat = weft::test::some_of(60); repeat > 0; --repeat) {
    const Dtype dtype = dtypes[r.below(std::size(dtypes))];
    Shape shape;
    for (int64_t k = 1 + r.below(4); k > 0; --k) shape.push_back(1 + r.below(r.below(4) == 0 ? 40 : 6));
    const auto axis = static_cast<int>(r.below(static_cast<int64_t>(shape.size())));
    const int64_t steps[] = {1, 4, 8, 32, 5, 0};
    const int64_t step = steps[r.below(std::size(steps))];
    Graph g;
    Values parts;
    for (int64_t k = 2 + r.below(3); k > 0; --k) {
      Shape own = shape;
      own[static_cast<size_t>(axis)] = step * (r.below(3) == 0 ? 2 : 1);
      const Value x = parameter({own, dtype});
      g.inputs.push_back(x);
      parts.push_back(dtype == bool_ || r.below(3) == 0 ? x : x + x);
    }
    const Value whole = concat(parts, axis);
    g.outputs.push_back(whole);
    if (dtype != bool_ && r.below(2) == 0) g.outputs.push_back(whole * whole);
    if (r.below(2) == 0) g.outputs[0] = graph::reshape(whole, {Dim(num_elements(whole.shape()))});
    CAPTURE(graph::print(g));
    check_results(g, gpu, r);
    check_results(g, target::cpu(), r);
  }
}

TEST_CASE("arrays that are read backwards, whole and in parts, have the reference's values") {
  graph::testing::Random r(21);
  for (const Dtype dtype : {float32, float64, bfloat16, int8, uint16})
    for (const int64_t columns : {1, 7, 16, 64, 100, 257}) {
      CAPTURE(columns);
      const Value x = parameter({{9, columns}, dtype});
      const Value back = slice(x, {0, columns - 1}, {9, columns}, {1, -1}),
                  up = slice(back, {8, 0}, {9, columns}, {-1, 1});
      const Value moved = concat({slice_axis(back, 0, 5, 4), slice_axis(back, 0, 0, 5)}, 0);
      const Value both = concat({back, x, slice_axis(back, 1, 0, columns / 2 + 1)}, 1);
      check_results({{x}, {back, up, moved, both}}, target::cpu(), r);
    }
}

TEST_CASE("a cut map may store over what it reads") {
  graph::testing::Random r(16);
  for (const Shape& shape : {Shape{64, 512}, Shape{64, 33}}) {
    const Value x = parameter({shape, float32}), y = parameter({shape, float32});
    const int64_t half = shape[1].bound() / 2, rest = shape[1].bound() - half;
    const Value z = unary(Op::exp, x + y);  // materialized, read for the last time by the concat
    const Value w = sum(z, {1});
    const Value out = concat({slice_axis(z, 1, 0, half) * 2.0, slice_axis(z, 1, half, rest) + 1.0}, 1);
    RecordingGpu gpu;
    check_results({{x, y}, {w, out}}, gpu, r, 64);
    check_results({{x, y}, {w, out}}, target::cpu(), r, 64);
  }
}
