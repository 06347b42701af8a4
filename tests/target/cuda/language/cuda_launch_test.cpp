// How a kernel asks to be launched: warps, stages and registers in the code that is rendered, which computes the same.
#include <doctest/doctest.h>

#include "kernel/language/kernels.h"
#include "kernel/language/trace.h"
#include "target/cuda/cuda.h"
#include "target/cuda/cuda_support.h"
#include "target/cuda/driver/nvrtc.h"
#include "target/cuda/host_kernels.h"
#include "target/cuda/inspect.h"
#include "target/cuda/language/traced_case.h"
#include "weft/kernel.h"

using namespace weft;
using namespace weft::test;
namespace cuda = weft::target::cuda;

namespace {

constexpr cuda::Features h100_features{.warpgroups = true, .clusters = true};

k::Program product_program(test_kernels::Tiles tile) {
  const int64_t m = 128, n = 128, depth = 256;
  return k::trace("matmul",
                  {{k::Use::in, bfloat16, {m, depth}},
                   {k::Use::in, bfloat16, {depth, n}},
                   {k::Use::in, float32, {n}},
                   {k::Use::out, bfloat16, {m, n}}},
                  {k::cdiv(m, tile.m), k::cdiv(n, tile.n)}, [&](std::span<const k::AnyRef> r) {
                    test_kernels::matmul_bias_relu<bfloat16_t>(k::In<bfloat16_t, 2>(r[0]), k::In<bfloat16_t, 2>(r[1]),
                                                               k::In<float, 1>(r[2]), k::Out<bfloat16_t, 2>(r[3]),
                                                               tile);
                  });
}

kernel::Kernel product_kernel(const kernel::LaunchOptions& launch) {
  kernel::Kernel out = product_program({64, 64, 32}).data().kernel;
  out.launch = launch;
  return out;
}

cuda::Rendered rendered(const kernel::LaunchOptions& launch, const cuda::Features& features = {}) {
  return cuda::render(product_kernel(launch), "k", {}, features);
}

std::string refusal(const kernel::LaunchOptions& launch) {
  try {
    rendered(launch);
    return "";
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("threads by rule: fewer where rows are reduced, 8 elements each where none are or where elements move") {
  const auto threads = [](const char* name, int64_t columns, auto body) {
    const k::Program program =
        k::trace(name,
                 {{k::Use::in, float32, {64, columns}},
                  {k::Use::in, float32, {64, columns}},
                  {k::Use::out, float32, {64, columns}}},
                 {64}, [&](std::span<const k::AnyRef> r) {
                   const k::In<float, 2> x(r[0]), y(r[1]);
                   const k::Out<float, 2> z(r[2]);
                   const auto row = k::program_id(0);
                   body(x(row, k::all).load(), y(row, k::all), [&](const auto& v) { z(row, k::all) = v; });
                 });
    return cuda::render(program.data().kernel, "k", {}, {}).threads;
  };
  const auto reduced = [](const auto& v, const auto&, const auto& put) { put(v - k::max(v, 0)); };
  const auto alone = [](const auto& v, const auto& w, const auto& put) { put(v * w.load()); };
  const auto scanned = [](const auto& v, const auto&, const auto& put) { put(v - k::max(k::cumsum(v, 0), 0)); };
  const auto of_many = [](const auto& v, const auto& w, const auto& put) {
    put(v * w.load() - k::max(v, 0) + w.load() + w.load());
  };
  CHECK(threads("reduced", 8192, reduced) == 256);
  CHECK(threads("of_many", 8192, of_many) == 512);
  CHECK(threads("alone", 2048, alone) == 256);
  CHECK(threads("scanned", 2048, scanned) == 256);
}

TEST_CASE("launch options: warps, stages and registers are those that are asked for") {
  for (const int warps : {1, 2, 4, 8, 16}) CHECK(rendered({.warps = warps}).threads == 32 * warps);
  CHECK(rendered({.warps = 4}, h100_features).threads >= 128);
  CHECK(rendered({.warps = 2}, h100_features).threads == 64);  // no warpgroup: by mma.sync
  const int64_t two = rendered({.stages = 2}).shared_bytes, four = rendered({.stages = 4}).shared_bytes;
  CHECK(two < four);
  CHECK(rendered({.warps = 4, .registers = 64}).source.find("__launch_bounds__(128, 8)") != std::string::npos);
  CHECK(refusal({.warps = 32, .registers = 128}).find("more than the 65536 of an SM") != std::string::npos);
  CHECK(refusal({.cluster = 2}).find("clusters of 2 blocks") != std::string::npos);
}

TEST_CASE("launch options change no result") {
  if (!can_run_kernels()) return;
  std::vector<RandomCase> cases;
  for (const kernel::LaunchOptions& launch :
       std::vector<kernel::LaunchOptions>{{}, {.warps = 1}, {.warps = 8, .stages = 2}, {.warps = 16, .stages = 6}}) {
    const k::Program program = product_program({64, 64, 32});
    std::vector<int64_t> elements;
    for (const k::Param& p : program.params()) elements.push_back(static_cast<int64_t>(size_of(p.dims)));
    RandomCase c = make_case(product_kernel(launch), elements, {}, program.programs());
    for (size_t p = 0; p < c.buffers.size(); ++p) {
      const std::vector<double> drawn = numbers(static_cast<size_t>(c.elements[p]), p + 1);
      for (size_t i = 0; i < drawn.size(); ++i)
        kernel::write_element(c.buffers[p].data(), c.kernel.params[p].dtype, static_cast<int64_t>(i),
                              kernel::round_to(Number::of_real(drawn[i]), c.kernel.params[p].dtype));
    }
    cases.push_back(std::move(c));
  }
  const HostKernels host(cases, {}, {});
  RandomCase wanted = cases[0];
  host.run(0, wanted);
  for (size_t n = 1; n < cases.size(); ++n) {
    CAPTURE(n);
    RandomCase got = cases[n];
    host.run(n, got);
    CHECK(got.buffers.back() == wanted.buffers.back());
  }
}

TEST_CASE("parallel iterations of a user's kernel give the interpreter's bits, thread by thread") {
  if (!can_run_kernels()) return;
  std::vector<RandomCase> cases;
  for (const int64_t parts : {1, 4, 32})
    cases.push_back(traced_case(k::trace("by_parts", {{k::Use::in, float32, {3, 300}}, {k::Use::out, float32, {3}}},
                                         {3}, [&](std::span<const k::AnyRef> r) {
                                           test_kernels::logsumexp_by_parts(k::In<float, 2>(r[0]),
                                                                            k::Out<float, 1>(r[1]), parts, 8);
                                         })));
  check_on_host(cases);
  check_on_host(cases, {}, h100_features);
}

TEST_CASE("launch options: ptxas keeps to the registers, and what spills where they are too few is objected to") {
  if (!cuda::nvrtc_available()) return;
  const target::Machine h100 = target::gpu_of("sm_90a");
  const cuda::KernelCode code = cuda::code_of(product_kernel({.warps = 4, .registers = 128}), h100);
  CHECK(code.usage.registers <= 128);
  CHECK(!code.serialized);
  cuda::CudaTarget offline(h100);
  CHECK(offline.objection(product_kernel({.warps = 4, .registers = 128})) == "");
  CHECK(offline.objection(product_kernel({.warps = 1, .registers = 64})).starts_with("spills "));
}
