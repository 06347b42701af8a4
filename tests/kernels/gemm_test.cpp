// The kernels of products that descriptors ask for (kernels/gemm/desc.h): which they take, what they compute, on a CPU
// and thread by thread as they are rendered for a GPU, against float64.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "kernel/expand/expand.h"
#include "kernel/language/trace.h"
#include "kernels/gemm/desc.h"
#include "kernels/gemm_case.h"
#include "target/cuda/codegen/render.h"
#include "target/cuda/host_kernels.h"
#include "target/target.h"
#include "weft/kernel_async.h"
#include "weft/kernel_library.h"

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

TEST_CASE("products of descriptors, thread by thread: what epilogues read is copied ahead, rows are added up") {
  if (!can_run_kernels()) return;
  const auto gelu = Activation::gelu_tanh;
  const std::vector<DotDesc> all = {
      with_residual(product(264, 136, 128), true),                              // programs in turns, with edges
      with(product(384, 128, 128, float16), gelu, PreActivation::derivative),   // no edges
      with_sums(with(product(256, 96, 128), gelu, PreActivation::derivative)),  // and sums of each 128 rows
      with_residual(product(128, 96, 128, bfloat16, true, true), false),        // one wave
      product(96, 250, 64, bfloat16, true, true, 6),                            // lines that are no whole 16 bytes
      into(product(264, 136, 272, int8), int32),
      with_residual(into(product(136, 144, 256, float8_e4m3), bfloat16), true),
  };
  target::Machine few = machine;
  few.processors = 1;
  const target::cuda::Features hopper = target::cuda::features_of(machine);
  std::vector<RandomCase> cases;
  std::vector<GemmOperands> operands;
  std::string sources;
  for (const DotDesc& d : all) {
    // Large tiles, which leave an SM to one block: those of one warpgroup a program in turns, or not.
    std::vector<kernels::GemmKernel> all_tiles = kernels::gemm_kernels(d, few, 100);
    std::erase_if(all_tiles, [&](const kernels::GemmKernel& k) {
      return k.tiling.tile.ping_pong != cases.empty() || k.tiling.tile.rows * k.tiling.tile.columns < 128 * 128;
    });
    const kernels::GemmKernel& made = all_tiles.at(0);
    const GemmOperands& x = operands.emplace_back(d);
    RandomCase& c = cases.emplace_back(RandomCase{made.kernel, {}, {}, {}, made.programs});
    for (const GemmOperands::Array& a : x.arrays) {
      const std::vector<char> bytes = encode(a.values, a.dtype);
      const auto* const first = reinterpret_cast<const std::byte*>(bytes.data());
      c.buffers.emplace_back(first, first + bytes.size());
      c.elements.push_back(static_cast<int64_t>(a.values.size()));
    }
    sources += target::cuda::render(kernel::expand(c.kernel), "k", {}, hopper).source;
  }
  CHECK(sources.find("two programs in turns") != std::string::npos);
  CHECK(sources.find("load_space") != std::string::npos);
  const HostKernels host(cases, {}, hopper);
  for (size_t n = 0; n < all.size(); ++n) {
    CAPTURE(all[n].to_string());
    host.run(n, cases[n]);
    std::vector<std::vector<double>> got;
    for (size_t k = 0; k < cases[n].buffers.size(); ++k) {
      const char* const data = reinterpret_cast<const char*>(cases[n].buffers[k].data());
      got.push_back(decode({data, data + cases[n].buffers[k].size()}, operands[n].arrays[k].dtype));
    }
    check_product(operands[n], got);
  }
}

TEST_CASE("what an epilogue reads is not copied ahead of a wait for the program that writes it") {
  // c += a b, in place, behind a flag that an earlier program raises, or not.
  const auto loads_ahead = [](bool waits) {
    const k::Param in{k::Use::in, bfloat16, {256, 256}}, out{k::Use::in_out, bfloat16, {256, 256}},
        flags{k::Use::in_out, int32, {2}};
    const k::Program program = k::trace(
        "in_place", {in, in, out, flags}, {{2, waits ? k::Order::ordered : k::Order::parallel}},
        [&](std::span<const k::AnyRef> r) {
          const k::In<k::bf16, 2> a(r[0]), b(r[1]);
          const k::InOut<k::bf16, 2> c(r[2]);
          const auto number = k::program_id(0);
          k::gemm(
              a, b, number, k::Index(0), {128, 256, 64}, [&](const k::Ds& rows, const k::Ds& columns, const auto& sum) {
                const k::InOut<k::i32, 1> flag(r[3]);
                if (waits)
                  k::when(number > 0, [&] { k::wait_until(flag, {number - 1}, [](const auto& v) { return v == 1; }); });
                c(rows, columns) = k::cast<k::bf16>(k::cast<float>(c(rows, columns).load()) + sum);
              });
        });
    return target::cuda::render(kernel::expand(program.data().kernel), "k", {}, target::cuda::features_of(machine))
               .source.find("load_space") != std::string::npos;
  };
  CHECK(loads_ahead(false));
  CHECK(!loads_ahead(true));
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
  const auto bytes = [](DotDesc& d) { d.a = d.b = int8, d.c = int32; };
  CHECK(taken(base, bytes));
  CHECK(!taken(base, [&](DotDesc& d) { bytes(d), d.bias = true; }));
  CHECK(!taken(base, [&](DotDesc& d) { bytes(d), d.b_k = d.n, d.b_n = 1; }));
  CHECK(taken(base, [](DotDesc& d) { d.a = d.b = float8_e4m3; }));
  CHECK(!taken(base, [](DotDesc& d) { d.a = d.b = float8_e4m3, d.c = float32; }));  // sums have fewer bits
  CHECK(!taken(base, [](DotDesc& d) { d.a = float8_e4m3, d.b = float8_e5m2; }));
  CHECK(!taken(base, [](DotDesc& d) { d.a = d.b = float8_e4m3, d.scales = 1; }));
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
