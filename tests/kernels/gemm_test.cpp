// The kernels of products that descriptors ask for (kernels/gemm_desc.h): which they take, what they compute, on a CPU
// against float64.
#include <doctest/doctest.h>

#include "kernels/gemm_case.h"
#include "kernels/gemm_desc.h"
#include "target/target.h"

using namespace weft;
using namespace weft::test;
using kernel::Activation;
using kernel::DotDesc;
using kernel::PreActivation;

namespace {

const target::Machine& machine = target::stated_machine("NVIDIA H200");

/// Runs kernels for an H200 as a CPU does, and checks their results.
void check_on_cpu(const DotDesc& d, size_t most) {
  CAPTURE(d.to_string());
  const std::vector<kernels::GemmKernel> made = kernels::gemm_kernels(d, machine, most);
  REQUIRE(!made.empty());
  const GemmOperands operands(d);
  for (const kernels::GemmKernel& kernel : made) {
    CAPTURE(kernel.tiling.tile.rows);
    CAPTURE(kernel.tiling.tile.columns);
    std::vector<std::vector<char>> bytes;
    for (const GemmOperands::Array& x : operands.arrays) bytes.push_back(encode(x.values, x.dtype));
    std::vector<void*> buffers;
    for (std::vector<char>& b : bytes) buffers.push_back(b.data());
    const auto code = target::cpu().compile(std::span(&kernel.kernel, 1));
    const target::Segment segment{buffers, {}, kernel.programs};
    code[0]->run(std::span(&segment, 1), 1e9);
    std::vector<std::vector<double>> got;
    for (size_t k = 0; k < bytes.size(); ++k) got.push_back(decode(bytes[k], operands.arrays[k].dtype));
    check_product(operands, got);
  }
}

}  // namespace

TEST_CASE("products of descriptors: layouts, edges, epilogues, sums of rows, by a CPU") {
  for (const DotDesc& d : products())
    if (d.m < 1000) check_on_cpu(d, 1);
  for (const DotDesc& d : batched_products()) check_on_cpu(d, 1);
  check_on_cpu(with_sums(with(product(384, 448, 128), Activation::gelu_tanh, PreActivation::derivative)), 8);
}

TEST_CASE("products of descriptors: what has a kernel") {
  const auto taken = [](DotDesc d, auto edit) {
    edit(d);
    return !kernels::gemm_kernels(d, machine, 1).empty();
  };
  const DotDesc base = product(128, 256, 64);
  CHECK(taken(base, [](DotDesc&) {}));
  CHECK(taken(base, [](DotDesc& d) { d.a_m = 68, d.c_m = 260; }));  // lines that begin at 8 bytes
  CHECK(taken(base, [](DotDesc& d) { d.a = d.b = d.c = float32, d.numerics.tf32 = true; }));
  CHECK(!taken(base, [](DotDesc& d) { d.a = d.b = d.c = float32; }));
  CHECK(!taken(base, [](DotDesc& d) { d.c = float32; }));
  CHECK(!taken(base, [](DotDesc& d) { d.b = float16; }));
  CHECK(!taken(base, [](DotDesc& d) { d.sum = kernel::OperandSum::a; }));
  CHECK(!taken(base, [](DotDesc& d) { d.m = 136, d.sum = kernel::OperandSum::c; }));  // not in parts of 128 rows
  CHECK(!taken(base, [](DotDesc& d) { d.activation = Activation::gelu; }));
  CHECK(!taken(base, [](DotDesc& d) { d.c_m = 1, d.c_n = 128; }));
  for (const kernels::GemmKernel& k : kernels::gemm_kernels(with_sums(product(1280, 1024, 64)), machine, 8))
    CHECK(k.tiling.tile.rows % kernel::rows_of_a_sum == 0);

  const auto may_win = [](const DotDesc& d, int64_t sms) {
    target::Machine other = machine;
    other.processors = sms;
    return kernels::gemm_may_win(d, kernels::gemm_kernels(d, other, 1).at(0).tiling);
  };
  CHECK(may_win(with(product(65536, 3072, 768), Activation::gelu_tanh, PreActivation::stored, true), 132));
  CHECK(!may_win(base, 132));                                               // little work
  CHECK(!may_win(product(768, 768, 65536), 132));                           // few tiles
  CHECK(may_win(product(768, 768, 65536), 18));                             // of a device with fewer SMs
  CHECK(may_win(product(768, 730, 65522, bfloat16, false, true, 6), 132));  // slow for a library
}

TEST_CASE("tiles of products come by their predicted times") {
  const kernels::GemmWork work{bfloat16, 1, 4096, 4096, 4096};
  const std::vector<kernels::GemmTiling> all = kernels::gemm_tilings(machine, work, 100);
  REQUIRE(all.size() > 3);
  for (size_t k = 1; k < all.size(); ++k) CHECK(all[k - 1].seconds <= all[k].seconds);
  CHECK(kernels::gemm_tiling(machine, work).seconds == all[0].seconds);
  CHECK(kernels::gemm_tilings(machine, work, 2).size() == 2);
}
