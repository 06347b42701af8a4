// What kernels ask for of the memory that a block's threads share, on devices that have more and less of it.
#include <algorithm>
#include <random>

#include "compiler/lower/interpreted.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/regions/composites.h"
#include "kernel/expand/expand.h"
#include "target/cuda/cuda.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

/// A GPU of so much shared memory: sources are rendered for what they ask for, and the interpreter runs the kernels.
class Gpu final : public weft::test::SimtTarget {
 public:
  Gpu(int64_t bytes, int64_t cluster) : SimtTarget(cluster) {
    machine_.vector_bytes = 1024;
    machine_.min_lanes = 64;
    machine_.max_lanes = INT64_MAX;
    machine_.shared_bytes = bytes;
  }
  std::string fingerprint() const override {
    return fmt::format("gpu with {} bytes, clusters of {}", machine_.shared_bytes, machine_.cluster);
  }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    std::vector<std::shared_ptr<const target::Executable>> out;
    for (const kernel::Kernel& k : kernels) {
      const kernel::Kernel expanded = kernel::expand(k, target::cuda::operators);
      asked = std::max(asked,
                       target::cuda::render(expanded, k.name, {}, {.clusters = machine_.has_clusters()}).shared_bytes);
      out.push_back(std::make_shared<InterpretedKernel>(kernel::expand(k)));
    }
    return out;
  }
  int64_t asked = 0;  // by a block, at most
};

Value parameter_of(Shape shape, Dtype t) { return parameter({std::move(shape), t}); }

Graph softmax_of(int64_t rows, int64_t columns, Dtype t) {
  const Value x = parameter_of({rows, columns}, t);
  return {{x}, {softmax(x, {1})}};
}
Graph norm_of_sum(int64_t rows, int64_t columns, Dtype t) {
  const Value x = parameter_of({rows, columns}, t), y = parameter_of({rows, columns}, t),
              w = parameter_of({columns}, t), b = parameter_of({columns}, t);
  return {{x, y, w, b}, {layer_norm(x + y, w, b, 1e-5)}};
}

int64_t asked_by(const Graph& g, int64_t bytes, int64_t cluster_size = 1) {
  Gpu gpu(bytes, cluster_size);
  build({g, {}, {}}, gpu);
  return gpu.asked;
}

}  // namespace

TEST_CASE("no row asks for more shared memory than a block may have") {
  for (const int64_t bytes : {99 << 10, 163 << 10, 227 << 10})
    for (const int64_t cluster_size : {1, 8})
      for (const Dtype t : {bfloat16, float32, float64})
        for (const int64_t columns : {3000, 11000, 14000, 24000, 26000, 28000, 50000})
          for (const auto make : {softmax_of, norm_of_sum}) {
            CAPTURE(bytes);
            CAPTURE(cluster_size);
            CAPTURE(t);
            CAPTURE(columns);
            CHECK(asked_by(make(600, columns, t), bytes, cluster_size) <= bytes);
          }
}

TEST_CASE("rows are kept where they fit, by the device that is asked") {
  const auto keeps = [](int64_t columns, int64_t bytes) {
    return asked_by(softmax_of(600, columns, float32), bytes) >= columns * 4;
  };
  CHECK(keeps(20000, 99 << 10));
  CHECK(!keeps(26000, 99 << 10));
  CHECK(keeps(26000, 163 << 10));
  CHECK(keeps(26000, 227 << 10));
  CHECK(!keeps(30000, 227 << 10));  // two blocks are to fit
}

TEST_CASE("a row that is not kept gives what a kept one gives") {
  const Graph g = softmax_of(2, 25000, float32);
  std::mt19937_64 engine(3);
  std::normal_distribution<double> normal;
  HostTensor x{g.inputs[0].type(), {}};
  for (int64_t k = 0; k < 50000; ++k) x.data.push_back(kernel::round_to(Number::of_real(normal(engine)), float32));
  std::vector<HostTensor> got;
  for (const int64_t bytes : {99 << 10, 227 << 10}) {
    Gpu gpu(bytes, 1);
    const auto program = build({g, {}, {}}, gpu);
    const graph::Storage plain = to_storage(x), roomy{runtime::allocate(size_t{1} << 23), 0,
                                                      plain.strides};  // the interpreter's bound lies inside of it
    std::memcpy(roomy.buffer->data(), plain.buffer->data(), 50000 * sizeof(float));
    got.push_back(from_storage(program->run(std::vector{roomy})[0], g.outputs[0].type()));
  }
  for (size_t k = 0; k < got[0].data.size(); ++k)
    if (got[0].data[k].real() != got[1].data[k].real())
      FAIL("element ", k, " is ", got[0].data[k].real(), " and ", got[1].data[k].real());
}

TEST_CASE("tiles that are transposed in shared memory have room there") {
  const auto sum_of = [](int count) {  // beside something padded, so that no program is one tile as a whole
    std::vector<Value> inputs{parameter_of({399, 500}, float64)};
    Value total = pad(inputs[0], {1, 0}, {0, 0});
    for (int k = 0; k < count; ++k) {
      inputs.push_back(parameter_of({500, 400}, float64));
      total = total + permute(inputs.back(), {1, 0});
    }
    return Graph{inputs, {total}};
  };
  CHECK(asked_by(sum_of(4), 99 << 10) >= 4 * 32 * 32 * 8);
  for (const int count : {8, 11, 14}) CHECK(asked_by(sum_of(count), 99 << 10) <= 99 << 10);
}

TEST_CASE("without a device, an architecture's shared memory is known") {
  const auto of = [](const char* arch) { return target::gpu_of(arch).shared_bytes; };
  CHECK(of("sm_80") == 163 << 10);
  CHECK(of("sm_86") == 99 << 10);
  CHECK(of("sm_89") == 99 << 10);
  CHECK(of("sm_90a") == 227 << 10);
  CHECK(of("sm_120a") == 99 << 10);
}
