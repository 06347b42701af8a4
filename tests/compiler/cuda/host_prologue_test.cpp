// Matmuls on tensor cores with computed sides, as they are rendered for a GPU and run on the CPU thread by thread: they
// give the interpreter's bits.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "compiler/host_cuda/host_cuda.h"
#include "compiler/host_cuda/host_source.h"
#include "compiler/pipeline.h"
#include "graph/build.h"
#include "kernel/expand/expand.h"
#include "target/cpu/cpu_support.h"
#include "target/cuda/computed_sides.h"
#include "target/cuda/cuda.h"
#include "target/cuda/driver/nvrtc.h"
#include "thinning.h"

using namespace weft;
using namespace weft::test;

TEST_CASE("products of computed sides, rendered for tensor cores, give the interpreter's bits thread by thread") {
  if (host_compiler().empty() || sanitized ||
      !std::filesystem::exists(WEFT_SOURCE_DIR "/tests/compiler/host_cuda/shim.h")) {
    MESSAGE("skipped: there is no C++ compiler here, or no source folder, or the program is sanitized");
    return;
  }
  static auto& host = *new HostCuda(1, 32, true);
  std::vector<RandomCase> cases;
  std::vector<std::string> names;
  for (const ComputedProduct& p : computed_products()) cases.push_back(case_of(p)), names.push_back(p.text());
  std::vector<kernel::Kernel> kernels;
  for (const RandomCase& c : cases) kernels.push_back(c.kernel);
  const auto code = host.compile(kernels);  // one run of the compiler takes them all
  for (size_t k = 0; k < cases.size(); ++k) {
    CAPTURE(names[k]);
    RandomCase& c = cases[k];
    const RandomCase expected = interpreted(c);
    std::vector<void*> buffers;
    for (auto& b : c.buffers) buffers.push_back(b.data());
    const target::Segment segment{buffers, c.symbols, c.grid};
    code[k]->run(std::span(&segment, 1), 0);
    const std::string wrong = difference(expected, c);
    CHECK_MESSAGE(wrong.empty(), wrong);
  }
}

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
