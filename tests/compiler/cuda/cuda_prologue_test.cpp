// Matmuls whose operands are computed as they are loaded: a program's code for a GPU.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compiler/pipeline.h"
#include "graph/build.h"
#include "target/cuda/cuda.h"
#include "target/cuda/driver/nvrtc.h"

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
