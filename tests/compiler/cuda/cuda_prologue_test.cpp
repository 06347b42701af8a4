// Matmuls whose operands are computed as they are loaded: a program's code for a GPU.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compiler/pipeline.h"
#include "graph/build.h"
#include "target/cuda/cuda.h"
#include "target/cuda/driver/nvrtc.h"
#include "weft/ops.h"

using namespace weft;

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
  constexpr int64_t n = 16384, k = 4096;
  const auto given = [](Shape shape, Dtype t) { return array(graph::parameter({std::move(shape), t})); };
  for (const auto& [mode, bits, m] : {std::tuple{"affine", 4, 16},
                                      {"affine", 4, 2048},
                                      {"affine", 8, 128},
                                      {"affine", 3, 64},
                                      {"affine", 3, 2048},
                                      {"mxfp4", 4, 512},
                                      {"mxfp8", 8, 2048}}) {
    CAPTURE(mode);
    CAPTURE(bits);
    CAPTURE(m);
    target::cuda::CudaTarget target(target::stated_machine("NVIDIA H100"), false);
    compiler::Policy policy;
    policy.libraries = false;
    const bool affine = std::string(mode) == "affine";
    const array x = given({m, k}, bfloat16), w = given({n, k * bits / 32}, uint32),
                scales = given({n, k / (affine ? 64 : 32)}, affine ? bfloat16 : uint8),
                biases = given({n, k / 64}, bfloat16);
    const array y =
        quantized_matmul(x, w, scales, affine ? std::optional(biases) : std::nullopt, true, std::nullopt, bits, mode);
    compiler::Source source;
    source.graph = {{x.value(), w.value(), scales.value(), biases.value()}, {y.value()}};
    for (const auto& node : graph::topological(source.graph.outputs))
      if (node->storage(0)) source.graph.inputs.push_back({node, 0});  // shifts
    const auto program = compiler::build(source, target, policy);
    // The weight is the left operand, C [n, m] in memory as [m, n].
    const std::string text = program->print("kernels");
    CHECK(text.find(fmt::format(" stride(1, {})", n)) != std::string::npos);
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
  const auto given = [](Shape shape, Dtype t) { return array(graph::parameter({std::move(shape), t})); };
  for (const Dtype t : {float32, bfloat16})
    for (const auto& [mode, bits] :
         {std::pair{"affine", 2}, {"affine", 3}, {"affine", 4}, {"mxfp4", 4}, {"nvfp4", 4}}) {
      CAPTURE(mode);
      CAPTURE(bits);
      CAPTURE(std::string(dtype_name(t)));
      const bool affine = std::string(mode) == "affine";
      const int64_t groups = k / (affine ? 64 : std::string(mode) == "nvfp4" ? 16 : 32);
      const array x = given({m, k}, t), w = given({n, k * bits / 32}, uint32),
                  scales = given({n, groups}, affine ? t : uint8), biases = given({n, groups}, t);
      const array y =
          quantized_matmul(x, w, scales, affine ? std::optional(biases) : std::nullopt, true, std::nullopt, bits, mode);
      compiler::Source source;
      source.graph = {{x.value(), w.value(), scales.value(), biases.value()}, {y.value()}};
      for (const auto& node : graph::topological(source.graph.outputs))
        if (node->storage(0)) source.graph.inputs.push_back({node, 0});  // shifts
      const auto program = compiler::build(source, target, policy);
      CHECK(program->stats().launches == (affine ? 1 : 2));  // scales in a few bits are made in float32 first
    }
}
