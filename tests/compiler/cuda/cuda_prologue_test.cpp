// Matmuls whose operands are computed as they are loaded: a program's code for a GPU.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compiler/pipeline.h"
#include "graph/build.h"
#include "target/cuda/cuda.h"
#include "target/cuda/driver/nvrtc.h"
#include "weft/ops.h"

using namespace weft;

namespace {

struct Extents {
  int64_t m, n, k;
};

/// x [m, k] times a quantised matrix [n, k] transposed.
compiler::Source product_of_codes(const Extents& of, Dtype t, const std::string& mode, int bits) {
  const auto given = [](Shape shape, Dtype dtype) { return array(graph::parameter({std::move(shape), dtype})); };
  const bool affine = mode == "affine";
  const int64_t groups = of.k / (affine ? 64 : mode == "nvfp4" ? 16 : 32);
  const array x = given({of.m, of.k}, t), w = given({of.n, of.k * bits / 32}, uint32),
              scales = given({of.n, groups}, affine ? t : uint8), biases = given({of.n, groups}, t);
  const array y =
      quantized_matmul(x, w, scales, affine ? std::optional(biases) : std::nullopt, true, std::nullopt, bits, mode);
  compiler::Source source;
  source.graph = {{x.value(), w.value(), scales.value(), biases.value()}, {y.value()}};
  for (const auto& node : graph::topological(source.graph.outputs))
    if (node->storage(0)) source.graph.inputs.push_back({node, 0});  // shifts
  return source;
}

}  // namespace

TEST_CASE("matmuls of casts and of dequantised weights compile for a GPU") {
  using namespace weft::graph;
  if (!target::cuda::nvrtc_available()) {
    MESSAGE("skipped: there is no NVRTC here");
    return;
  }
  target::cuda::CudaTarget target(target::stated_machine("NVIDIA H100"), false);
  compiler::Policy policy;
  policy.libraries = false;
  constexpr int64_t m = 256, n = 384, k = 512;
  for (const Dtype t : {bfloat16, float16})
    for (const Dtype from : {float32, bfloat16, float16, int8, uint8, float8_e4m3}) {
      CAPTURE(std::string(dtype_name(t)));
      CAPTURE(std::string(dtype_name(from)));
      const Value x = parameter({{m, k}, t}), other = parameter({{m, k}, from}), w = parameter({{k, n}, t}),
                  packed = parameter({{k, n}, from}), scale = parameter({{n}, t});
      const Value scaled = cast(packed, t) * broadcast(scale, {k, n});
      const auto program = compiler::build(
          {{{x, other, w, packed, scale}, {dot(cast(other, t), w, {1}, {0}), dot(x, scaled, {1}, {0})}}, {}, {}},
          target, policy);
      CHECK(program->stats().launches == (t == from ? 3 : 2));  // a product of two arrays of that dtype is stored
    }
}

TEST_CASE("products of matrices in a few bits are multiplied from registers, without spills") {
  if (!target::cuda::nvrtc_available()) {
    MESSAGE("skipped: there is no NVRTC here");
    return;
  }
  constexpr int64_t n = 16384;
  for (const auto& [mode, bits, m, k] : {std::tuple{"affine", 4, 16, 4096},
                                         {"affine", 4, 2048, 4096},
                                         {"affine", 8, 128, 4096},
                                         {"affine", 3, 64, 4096},
                                         {"affine", 3, 2048, 4096},
                                         {"mxfp4", 4, 512, 4096},
                                         {"mxfp8", 8, 2048, 4096},
                                         {"mxfp4", 4, 2048, 4128}}) {
    CAPTURE(mode);
    CAPTURE(bits);
    CAPTURE(m);
    CAPTURE(k);
    target::cuda::CudaTarget target(target::stated_machine("NVIDIA H100"), false);
    compiler::Policy policy;
    policy.libraries = false;
    const auto program = compiler::build(product_of_codes({m, n, k}, bfloat16, mode, bits), target, policy);
    // The weight is the left operand, C [n, m] in memory as [m, n].
    const std::string text = program->print("kernels");
    CHECK(text.find(fmt::format(" stride(1, {})", n)) != std::string::npos);
    CHECK(!target.usage().empty());
    for (const target::cuda::KernelUsage& use : target.usage()) {
      CHECK(use.spill_store_bytes == 0);
      CHECK(use.spill_load_bytes == 0);
    }
  }
}

TEST_CASE("products of matrices in a few bits compile for a GPU as one kernel beside what makes their scales") {
  if (!target::cuda::nvrtc_available()) {
    MESSAGE("skipped: there is no NVRTC here");
    return;
  }
  target::cuda::CudaTarget target(target::stated_machine("NVIDIA H100"), false);
  compiler::Policy policy;
  policy.libraries = false;
  constexpr int64_t m = 64, n = 16384, k = 512;  // tiles for every SM: the contracted axis stays whole
  for (const Dtype t : {float32, bfloat16})
    for (const auto& [mode, bits] :
         {std::pair{"affine", 2}, {"affine", 3}, {"affine", 4}, {"mxfp4", 4}, {"nvfp4", 4}}) {
      CAPTURE(mode);
      CAPTURE(bits);
      CAPTURE(std::string(dtype_name(t)));
      const auto program = compiler::build(product_of_codes({m, n, k}, t, mode, bits), target, policy);
      const bool affine = std::string(mode) == "affine";
      CHECK(program->stats().launches == (affine ? 1 : 2));  // scales in a few bits are made in float32 first
    }
}
