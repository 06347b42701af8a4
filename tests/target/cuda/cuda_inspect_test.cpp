// Looking into kernels without a GPU: source, PTX, machine code, registers and occupancy.
#include <doctest/doctest.h>

#include <stdexcept>

#include "kernel/language/trace.h"
#include "target/cuda/driver/nvrtc.h"
#include "target/cuda/inspect.h"
#include "weft/kernel.h"

using namespace weft;
using target::cuda::occupancy;

namespace {

kernel::Kernel scaled_rows() {
  return k::trace("scaled rows", {{k::Use::in, float32, {64, 1000}}, {k::Use::out, float32, {64, 1000}}}, {64},
                  [](std::span<const k::AnyRef> refs) {
                    const std::vector<k::Span> row{{.start = k::program(0), .squeezed = true}, {.whole = true}};
                    const k::Any v = k::load(refs[0], row);
                    k::store(refs[1], row, k::apply("mul", std::array{v, k::reduce("max", v, 0)}));
                  })
      .data()
      .kernel;
}

}  // namespace

TEST_CASE("occupancy: what an SM lacks for one more block") {
  // By hand, from the limits of each compute capability.
  const auto& h100 = target::stated_machine("sm_90a");
  const auto is = [](const target::cuda::Occupancy& o, int64_t blocks, const std::string& limiter, double share) {
    CHECK(o.blocks == blocks);
    CHECK(o.limiter == limiter);
    CHECK(o.share == doctest::Approx(share));
  };
  is(occupancy(h100, 256, 32, 0), 8, "registers", 1.0);  // 8 · 256 threads of 32 registers are all of them
  is(occupancy(h100, 256, 30, 0), 8, "registers", 1.0);  // 30 are allocated as 32
  is(occupancy(h100, 256, 33, 0), 6, "registers", 0.75);
  is(occupancy(h100, 128, 168, 0), 3, "registers", 0.1875);
  is(occupancy(h100, 384, 24, 0), 5, "threads", 0.9375);
  is(occupancy(h100, 32, 16, 0), 32, "blocks", 0.5);
  is(occupancy(h100, 128, 32, 227 << 10), 1, "shared memory", 0.0625);
  is(occupancy(h100, 128, 32, 113 << 10), 2, "shared memory", 0.125);
  is(occupancy(h100, 128, 32, 114 << 10), 1, "shared memory", 0.0625);
  is(occupancy(target::gpu_of("sm_86"), 64, 16, 0), 16, "blocks", 1024.0 / 1536);
  is(occupancy(target::gpu_of("sm_89"), 1024, 32, 0), 1, "threads", 1024.0 / 1536);
  is(occupancy(h100, 1024, 255, 0), 0, "registers", 0);  // such a block does not start
}

TEST_CASE("inspection: the stages of a kernel on a GPU that is not there") {
  const kernel::Kernel k = scaled_rows();
  const target::Machine machine = target::gpu_of("sm_80");
  const std::string source = target::cuda::gpu_stage(k, "cuda", machine);
  CHECK(source.find("__global__") != std::string::npos);
  CHECK_THROWS_WITH_AS(target::cuda::gpu_stage(k, "llvm", machine),
                       "[kernel scaled rows] a GPU has no stage llvm: cuda, ptx, sass", std::invalid_argument);
  if (!target::cuda::nvrtc_available()) return;
  const std::string ptx = target::cuda::gpu_stage(k, "ptx", machine);
  CHECK(ptx.find(".target sm_80") != std::string::npos);
  CHECK(ptx.find(".visible .entry weft_") != std::string::npos);
  CHECK(ptx.back() == '\n');
  const target::cuda::KernelCode code = target::cuda::code_of(k, machine);
  CHECK(code.usage.arch == "sm_80");
  CHECK(code.usage.registers > 0);
  CHECK(code.usage.spill_store_bytes == 0);
  CHECK(code.threads % 32 == 0);
  CHECK(code.shared_bytes >= code.usage.shared_bytes);
  CHECK(code.occupancy.blocks > 0);
  CHECK(code.cubin.size() > 1000);
  try {
    const std::string sass = target::cuda::gpu_stage(k, "sass", machine);
    CHECK(sass.find("EXIT") != std::string::npos);
  } catch (const std::runtime_error& e) {
    CHECK(std::string(e.what()).find("neither nvdisasm nor cuobjdump was found") != std::string::npos);
  }
}
