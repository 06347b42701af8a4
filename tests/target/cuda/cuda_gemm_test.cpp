// Products of descriptors by generated kernels (kernels/gemm/desc.h) on a GPU: their code keeps the sums in registers,
// and they compute what they should, alone and beside cuBLASLt.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "kernels/gemm/desc.h"
#include "kernels/gemm_case.h"
#include "target/cuda/driver/nvrtc.h"
#include "target/cuda/inspect.h"
#include "target/cuda/libraries/cublaslt.h"
#include "target/cuda/routine_call.h"
#include "target/own_call.h"
#include "target/target.h"

namespace cuda = weft::target::cuda;
using namespace weft;
using namespace weft::test;
using kernel::Activation;
using kernel::DotDesc;
using kernel::PreActivation;

namespace {

/// Runs a product twice on the device and compares it with float64 and with itself.
void run(const DotDesc& d, const std::function<void(std::span<void* const>)>& go) {
  CAPTURE(d.to_string());
  CAPTURE(d.a_m);
  CAPTURE(d.b_n);
  const GemmOperands operands(d);
  std::vector<std::unique_ptr<DeviceArray>> arrays;
  std::vector<void*> addresses;
  for (const GemmOperands::Array& x : operands.arrays) {
    arrays.push_back(std::make_unique<DeviceArray>(context(), x.values, x.dtype));
    addresses.push_back(arrays.back()->address());
  }
  const auto results = [&] {
    std::vector<std::vector<double>> out;
    for (const auto& x : arrays) out.push_back(x->values());
    return out;
  };
  go(addresses);
  const std::vector<std::vector<double>> got = results();
  check_product(operands, got);
  go(addresses);
  CHECK(results() == got);
}

}  // namespace

TEST_CASE("generated products of descriptors: sums stay in registers") {
  std::string why;
  if (!cuda::nvrtc_available(&why)) {
    MESSAGE("skipped: " << why);
    return;
  }
  const std::vector<DotDesc> all = products();
  for (const size_t k : {1, 2, 12}) {
    CAPTURE(all[k].to_string());
    const auto made = kernels::gemm_kernels(all[k], target::stated_machine("NVIDIA H200"), 1);
    const cuda::KernelCode code = cuda::code_of(made.at(0).kernel, target::stated_machine("NVIDIA H200"));
    CHECK(!code.serialized);
    CHECK(code.usage.spill_store_bytes == 0);
    CHECK(code.usage.stack_bytes == 0);
    CHECK(code.source.find("wgmma") != std::string::npos);
    CHECK(code.source.find("store_box") != std::string::npos);
  }
  for (const size_t k : {18, 19, 20}) {
    CAPTURE(all[k].to_string());
    const auto made = kernels::gemm_kernels(all[k], target::stated_machine("NVIDIA H200"), 1);
    const cuda::KernelCode code = cuda::code_of(made.at(0).kernel, target::stated_machine("NVIDIA H200"));
    CHECK(!code.serialized);
    CHECK(code.usage.spill_store_bytes == 0);
    CHECK(code.source.find("copied by TMA") != std::string::npos);
  }
  // TMA would store what lies behind lines that are no whole 16 bytes.
  for (const size_t k : {15, 16}) {
    const auto made = kernels::gemm_kernels(all[k], target::stated_machine("NVIDIA H200"), 1);
    const cuda::KernelCode code = cuda::code_of(made.at(0).kernel, target::stated_machine("NVIDIA H200"));
    CHECK(code.source.find("wgmma") != std::string::npos);
    CHECK(code.source.find("store_box") == std::string::npos);
  }
}

TEST_CASE("generated products of descriptors on the device: layouts, edges and epilogues, beside cuBLASLt") {
  if (!on_hopper()) return;
  target::Target& gpu = target::gpu(gpu_ordinal());
  std::vector<DotDesc> all = products();
  for (const DotDesc& d : batched_products()) all.push_back(d);
  for (const DotDesc& d : all) {
    const auto made = kernels::gemm_kernels(d, gpu.machine(), 1);
    const auto code = gpu.compile(std::span(&made.at(0).kernel, 1));
    run(d, [&](std::span<void* const> operands) {
      const target::Segment segment{operands, {}, made[0].programs};
      code[0]->run(std::span(&segment, 1), 0);
    });
  }
  const DotDesc large = with(product(8192, 1024, 1024), Activation::gelu_tanh, PreActivation::stored, true);
  CHECK(!cuda::generated_products(large, gpu).empty());
  const auto call = gpu.library(large);
  REQUIRE(call);
  run(large, [&](std::span<void* const> operands) { call->run(operands); });
  MESSAGE(large.to_string() << ": " << call->name());
}
