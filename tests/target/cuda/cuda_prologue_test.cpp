// Computed sides of products on tensor cores: what they are, against float64, by the interpreter and on a device; that
// their code compiles, without a device. tests/compiler/cuda/host_prologue_test.cpp runs that code on the CPU.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <span>

#include "kernel/expand/expand.h"
#include "target/cpu/cpu_support.h"
#include "target/cuda/codegen/render.h"
#include "target/cuda/codegen/text/source.h"
#include "target/cuda/computed_sides.h"
#include "target/cuda/cuda.h"

namespace cuda = weft::target::cuda;
using namespace weft;
using namespace weft::kernel;
using namespace weft::test;

namespace {

constexpr double bound = 0x1p-18;  // beside Σ|a·b|, for some hundreds of terms

}  // namespace

TEST_CASE("the interpreter's products of computed sides are right within the rounding of their sums") {
  for (const ComputedProduct& p : computed_products()) {
    CAPTURE(p.text());
    CHECK(worst(p, interpreted(case_of(p))) < bound);
  }
}

TEST_CASE("products of computed sides compile for three generations of GPUs and spill nothing") {
  std::string why;
  if (!cuda::nvrtc_available(&why)) {
    MESSAGE("skipped: " << why);
    return;
  }
  const MatmulSchedule large{64, 4, 64, 64}, eight_warps{64, 4, 64, 32};
  std::vector<ComputedProduct> products;
  for (const Made made : all_made) {
    products.push_back({256, 256, 256, Made::plain, made, bfloat16, false, true, 0, 128, 128, eight_warps});
    products.push_back({256, 256, 256, made, Made::plain, float16, false, false, 0, 128, 128, eight_warps});
  }
  const size_t each_way = products.size();
  products.push_back({256, 256, 256, Made::cast, Made::cast, bfloat16, false, true, 0, 128, 128, eight_warps});
  products.push_back({256, 256, 256, Made::plain, Made::scaled, bfloat16, false, false, 0, 128, 256, large});
  products.push_back({256, 256, 256, Made::cast, Made::plain, bfloat16, false, false, 0, 128, 256, large});
  products.push_back({131, 133, 77, Made::cast, Made::packed, bfloat16, false, true, 0, 64, 64, {64, 4, 32, 32}});
  for (const auto& [arch, has] : {std::pair<std::string, cuda::Features>{"sm_80", {}},
                                  {"sm_90a", {}},
                                  {"sm_90a", {.warpgroups = true}},
                                  {"sm_100a", {}}}) {
    if (arch == "sm_100a" && cuda::nvrtc_version() < 12080) continue;
    std::string source(cuda::prelude()), log;
    int compiled = 0;
    // Each way to compute a side for one generation, each size of a tile for all.
    const size_t first = arch == "sm_90a" && has.warpgroups ? 0 : each_way;
    for (const ComputedProduct& p : std::span(products).subspan(first))
      source += cuda::render(expand(kernel_of(p)), fmt::format("k{}", compiled++), {}, has).source;
    CHECK((source.find("wgmma.mma_async") != std::string::npos) == has.warpgroups);
    CHECK(!cuda::compile(source, arch, {}, &log).empty());
    CHECK(log.find("serializ") == std::string::npos);
    const auto usage = cuda::parse_usage(log);
    CHECK(static_cast<int>(usage.size()) == compiled);
    for (const cuda::KernelUsage& use : usage) {
      CAPTURE(arch);
      CAPTURE(use.name);
      CHECK(use.spill_store_bytes == 0);
      CHECK(use.stack_bytes == 0);
      CHECK(use.registers <= 255);
    }
  }
}

TEST_CASE("a device's products of computed sides are right within the rounding of their sums, the same at every run") {
  if (!on_device()) return;
  std::vector<Kernel> kernels;
  for (const ComputedProduct& p : computed_products()) kernels.push_back(kernel_of(p));
  target::gpu(test::gpu_ordinal()).compile(kernels);  // side by side
  for (const ComputedProduct& p : computed_products())
    for (const size_t shift : {0, 4}) {  // bytes: in the second case lines begin anywhere
      CAPTURE(p.text());
      CAPTURE(shift);
      RandomCase first = case_of(p), second = case_of(p);
      run_compiled(target::gpu(test::gpu_ordinal()), first, 0, shift);
      CHECK(worst(p, first) < bound);
      run_compiled(target::gpu(test::gpu_ordinal()), second, 0, shift);
      CHECK(first.buffers.back() == second.buffers.back());
    }
}
