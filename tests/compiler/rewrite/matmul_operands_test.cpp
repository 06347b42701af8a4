// Operands that tensor cores read along the contracted axis only: copies of them where these are worth it.
#include "compiler/lower/interpreted.h"
#include "compiler/lower/planned.h"
#include "compiler/pipeline.h"
#include "compiler/support.h"
#include "graph/instances.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using graph::testing::Random;
using graph::testing::random_tensor;

namespace {

Policy in_tf32(bool tf32 = true) {
  Policy policy;
  policy.libraries = false;
  policy.numerics.tf32 = tf32;
  return policy;
}

/// A product of m × k and k × n; `a_across`, `b_across`: the contracted axis is not the innermost one.
struct Product {
  int64_t m, n, k;
  bool a_across, b_across;
  Graph graph() const {
    const Value a = parameter({a_across ? Shape{k, m} : Shape{m, k}, float32}),
                b = parameter({b_across ? Shape{k, n} : Shape{n, k}, float32});
    return {{a, b}, {dot(a, b, {a_across ? 0 : 1}, {b_across ? 0 : 1}, {}, {})}};
  }
};

size_t kernels_of(const char* machine, const Product& product, const Policy& policy) {
  Planned target(machine);
  return build({product.graph(), {}, {}}, target, policy)->stats().launches;
}

}  // namespace

TEST_CASE("float32 in TF32 is copied to where warpgroups read it, if the product gains more than the copies take") {
  constexpr int64_t n = 4096;
  CHECK(kernels_of("NVIDIA H200", {n, n, n, false, false}, in_tf32()) == 1);
  CHECK(kernels_of("NVIDIA H200", {n, n, n, false, true}, in_tf32()) == 2);
  CHECK(kernels_of("NVIDIA H200", {n, n, n, true, false}, in_tf32()) == 2);
  CHECK(kernels_of("NVIDIA H200", {n, n, n, true, true}, in_tf32()) == 3);
  CHECK(kernels_of("NVIDIA H200", {n, n, n, true, true}, in_tf32(false)) == 1);  // exact
  CHECK(kernels_of("NVIDIA H200", {128, 128, 128, true, true}, in_tf32()) == 1);
  CHECK(kernels_of("NVIDIA H200", {n, 1, n, true, true}, in_tf32()) == 1);
  CHECK(kernels_of("NVIDIA A100", {n, n, n, true, true}, in_tf32()) == 1);  // warps take every order
}

TEST_CASE("8-bit floats of two kinds are multiplied on tensor cores as float16, which holds both") {
  for (const Dtype result : {float32, bfloat16}) {
    CAPTURE(std::string(dtype_name(result)));
    const Value a = parameter({{80, 96}, float8_e4m3}), b = parameter({{64, 96}, float8_e5m2});
    Attrs attrs;
    attrs.axes = {1}, attrs.axes2 = {1}, attrs.dtype = float32;
    const Graph g{{a, b}, {cast(make(Op::dot, {a, b}, attrs), result)}};
    Random random(7);
    std::vector<HostTensor> inputs;
    std::vector<graph::Storage> storages;
    for (const Value& v : g.inputs) inputs.push_back(random_tensor(random, v.type()));
    for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
    InterpretedMachine machine(target::stated_machine("NVIDIA H200"));
    const auto program = build({g, {}, {}}, machine, in_tf32());
    const HostTensor got = from_storage(program->run(storages)[0], g.outputs[0].type());
    CHECK(difference(got, evaluate_reference(g, inputs)[0], 2, 0.15) == "");
    Planned planned("NVIDIA H200");
    build({g, {}, {}}, planned, in_tf32());
    std::string text;
    for (const kernel::Kernel& k : planned.kernels) text += kernel::print(k);
    CHECK(text.find(" = dot ") != std::string::npos);
    CHECK(text.find(": f16[") != std::string::npos);
  }
}

TEST_CASE("products of transposed copies have the products' values") {
  target::Machine free_copies = target::stated_machine("NVIDIA H200");
  free_copies.launch_seconds = 0;
  free_copies.bandwidth = 1e18;
  for (const bool a_across : {false, true})
    for (const bool b_across : {false, true}) {
      CAPTURE(a_across);
      CAPTURE(b_across);
      const Graph g = Product{80, 64, 96, a_across, b_across}.graph();
      Random random(7);
      std::vector<HostTensor> inputs;
      std::vector<graph::Storage> storages;
      for (const Value& v : g.inputs) inputs.push_back(random_tensor(random, v.type()));
      for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
      InterpretedMachine machine(free_copies);
      const auto program = build({g, {}, {}}, machine, in_tf32());
      CHECK(program->stats().launches == size_t{1} + a_across + b_across);
      const HostTensor got = from_storage(program->run(storages)[0], g.outputs[0].type());
      CHECK(difference(got, evaluate_reference(g, inputs)[0], 2, 0.15) == "");
    }
}
