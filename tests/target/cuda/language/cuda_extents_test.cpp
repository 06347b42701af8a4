// Kernels of arrays with run-time extents as they are rendered for a GPU: one source for every length, thread by thread
// on the host against the interpreter.
#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "kernel/language/kernels.h"
#include "target/cuda/cuda_support.h"
#include "target/cuda/driver/nvrtc.h"
#include "target/cuda/host_kernels.h"
#include "target/cuda/language/traced_case.h"

using namespace weft;
using namespace weft::test;
namespace cuda = weft::target::cuda;

namespace {

constexpr cuda::Features hopper{.warpgroups = true, .clusters = true};

/// relu(a · b + bias) of bfloat16, a [m <= 256, depth <= 384], b [depth, n <= 512].
k::Program product(test_kernels::Tiles tile) {
  const Symbol *m = symbol("m", 256), *n = symbol("n", 512), *depth = symbol("depth", 384);
  using BF = bfloat16_t;
  return k::trace_with(
      "product",
      {{k::Use::in, bfloat16, {256, 384}, {}, {m, depth}},
       {k::Use::in, bfloat16, {384, 512}, {}, {depth, n}},
       {k::Use::in, float32, {512}, {}, {n}},
       {k::Use::in_out, bfloat16, {256, 512}, {}, {m, n}}},
      [&](std::span<const k::AnyRef> r) {
        const k::In<BF, 2> a(r[0]), b(r[1]);
        return k::Grid{k::cdiv(a.extent(0), tile.m), k::cdiv(b.extent(1), tile.n)};
      },
      [&](std::span<const k::AnyRef> r) {
        test_kernels::matmul_bias_relu<BF>(k::In<BF, 2>(r[0]), k::In<BF, 2>(r[1]), k::In<float, 1>(r[2]),
                                           k::Out<BF, 2>(r[3]), tile);
      });
}

k::Program attention() {
  const Symbol* length = symbol("length", 200);
  using BF = bfloat16_t;
  const auto param = [&](k::Use use) { return k::Param{use, bfloat16, {200, 64}, {}, {length, nullptr}}; };
  return k::trace_with(
      "attention",
      {param(k::Use::in),
       param(k::Use::in),
       param(k::Use::in),
       param(k::Use::in_out),
       {k::Use::in_out, float32, {200}, {}, {length}}},
      [](std::span<const k::AnyRef> r) { return k::Grid{k::cdiv(k::In<BF, 2>(r[0]).extent(0), 64)}; },
      [](std::span<const k::AnyRef> r) {
        test_kernels::attention<BF>(k::In<BF, 2>(r[0]), k::In<BF, 2>(r[1]), k::In<BF, 2>(r[2]), k::Out<BF, 2>(r[3]),
                                    k::Out<float, 1>(r[4]), 64, 64, true);
      });
}

/// Checks that arrays end as the interpreter leaves them, but for the rounding of 16-bit floats.
void check_near(const std::vector<RandomCase>& cases) {
  const HostKernels host(cases, {}, hopper);
  for (size_t n = 0; n < cases.size(); ++n) {
    CAPTURE(n);
    RandomCase got = cases[n];
    host.run(n, got);
    const RandomCase wanted = interpreted(cases[n]);
    for (size_t p = 0; p < got.buffers.size(); ++p) {
      const Dtype t = got.kernel.params[p].dtype;
      const auto bytes = [&](const RandomCase& c) {
        const char* const data = reinterpret_cast<const char*>(c.buffers[p].data());
        return decode({data, data + c.buffers[p].size()}, t);
      };
      if (got.kernel.params[p].written) CHECK(beside_largest(bytes(got), bytes(wanted)) < (t == float32 ? 1e-4 : 1e-2));
    }
  }
}

std::string source_of(const k::Program& program) {
  return cuda::render(kernel::expand(program.data().kernel), "k", {}, hopper).source;
}

}  // namespace

TEST_CASE("products of run-time extents are multiplied by warpgroups and copied by TMA, thread by thread") {
  if (!can_run_kernels()) return;
  const k::Program program = product({128, 256, 64});
  const std::string source = source_of(program);
  CAPTURE(source.substr(0, 600));
  CHECK(source.find("wgmma of bfloat16") != std::string::npos);
  CHECK(source.find("copied by TMA") != std::string::npos);
  std::vector<RandomCase> cases;
  for (const auto& extents : {std::vector<int64_t>{256, 384, 512}, {200, 200, 264}, {1, 1, 1}, {129, 64, 257}})
    cases.push_back(traced_case(program, false, extents));
  cases.push_back(traced_case(product({64, 64, 32}), false, {65, 33, 70}));
  check_near(cases);
}

TEST_CASE("attention of a run-time length multiplies on tensor cores, thread by thread") {
  if (!can_run_kernels()) return;
  const k::Program program = attention();
  CHECK(source_of(program).find("wgmma of bfloat16") != std::string::npos);
  std::vector<RandomCase> cases;
  for (const int64_t length : {1, 63, 64, 130, 200}) cases.push_back(traced_case(program, false, {length}));
  check_near(cases);
}
