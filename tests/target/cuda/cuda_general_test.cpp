// Kernels of everything that tile IR has, as they are rendered for a GPU: they give the interpreter's bits.
#include <doctest/doctest.h>

#include "target/cuda/cuda.h"
#include "target/cuda/cuda_support.h"
#include "target/cuda/general_kernel.h"
#include "target/cuda/host_kernels.h"

using namespace weft;
using namespace weft::kernel;
using namespace weft::test;
namespace cuda = weft::target::cuda;

namespace {

std::vector<RandomCase> general_cases(uint64_t first, uint64_t rounds) {
  std::vector<RandomCase> out;
  for (uint64_t seed = first; seed < first + rounds; ++seed)
    for (int kind = 0; kind < GeneralKernel::kinds; ++kind) out.push_back(GeneralKernel(seed, kind).make());
  return out;
}

/// Tiles that need more than 48 KiB of shared memory, in several warps.
std::vector<RandomCase> large_cases() {
  std::vector<RandomCase> out;
  const auto kernel_of = [&](const char* name, const std::vector<int64_t>& dims, const auto& body) {
    Builder b(name);
    const Ref x = b.param("x", float32, false), y = b.param("y", float32, true);
    int64_t size = 1;
    for (const int64_t d : dims) size *= d;
    const Value v = b.reshape(b.load(x, b.index(0), {size}, {1}), dims), result = body(b, v);
    const int64_t made = b.type(result).size();
    b.store(y, b.reshape(result, {made}), b.mul(b.program_id(), b.index(made)), {1});
    out.push_back(make_case(b.finish(), {size, made * 2}, {}, 2));
  };
  kernel_of("turned", {130, 120}, [](Builder& b, Value v) { return b.transpose(v); });
  kernel_of("axes", {8, 16, 32, 4}, [](Builder& b, Value v) { return b.permute(v, {3, 1, 0, 2}); });
  kernel_of("rows", {64, 200}, [](Builder& b, Value v) { return b.reduce(Reducer::sum, v, 1); });
  kernel_of("columns", {200, 64}, [](Builder& b, Value v) { return b.scan(Reducer::sum, v, 0); });
  kernel_of("ordered", {5, 2000}, [](Builder& b, Value v) { return b.sort({v}, 1)[0]; });
  kernel_of("between", {6, 50, 40}, [](Builder& b, Value v) {
    const auto first = [&](const std::vector<Value>& low, const std::vector<Value>& high) {
      return std::vector<Value>{b.select(b.lt(low[0], high[0]), low[0], high[0])};
    };
    return b.reduce(first, {v}, 1)[0];
  });
  return out;
}

/// Says what it sees, and stops the launch where an input is negative.
Kernel talking() {
  Builder b("talk");
  const Ref x = b.param("x", float32, false), y = b.param("y", float32, true);
  const Value v = b.load(x, b.mul(b.program_id(), b.index(40)), {5, 8}, {8, 1});
  const Value shown = b.slice(v, {0, 0}, {1, 3});
  b.print("100% \"sure\"", {b.program_id(), shown, b.cast(v, int8), v});
  b.assert_(b.lt(b.real(float32, -1, {5, 8}), v), "x is below -1");
  b.store(y, v, b.mul(b.program_id(), b.index(40)), {8, 1});
  return b.finish();
}

std::string source_of(const Kernel& kernel, const std::string& symbol) {
  return cuda::render(expand(kernel), symbol).source;
}

bool no_compiler() {
  std::string why;
  if (cuda::nvrtc_available(&why)) return false;
  MESSAGE("skipped: " << why);
  return true;
}

}  // namespace

TEST_CASE("random kernels of all instructions give the interpreter's bits, thread by thread") {
  if (!can_run_kernels()) return;
  check_on_host(general_cases(1, 3));
  check_on_host(general_cases(4, 1), {.aligned = false});
}

TEST_CASE("tiles of many threads and much shared memory give the interpreter's bits, thread by thread") {
  if (can_run_kernels()) check_on_host(large_cases());
}

TEST_CASE("random kernels of all instructions compile for GPUs of several kinds") {
  if (no_compiler()) return;
  std::string source(cuda::prelude());
  std::vector<RandomCase> cases = general_cases(1, 1), large = large_cases();
  cases.insert(cases.end(), large.begin(), large.end());
  for (size_t k = 0; k < cases.size(); ++k) source += source_of(cases[k].kernel, "k" + std::to_string(k));
  source += source_of(talking(), "talk");
  for (const char* arch : {"sm_80", "sm_90a"}) CHECK(!cuda::compile(source, arch).empty());
}

TEST_CASE("random kernels of all instructions give the interpreter's bits on the device") {
  if (!on_device()) return;
  for (const RandomCase& c : general_cases(1, 2)) agree(c);
  for (const RandomCase& c : large_cases()) agree(c);
}

TEST_CASE("a kernel prints what it sees, with its name and the program's number, and asserts") {
  const std::string source = source_of(talking(), "talk");
  CHECK(source.find(R"(printf("[kernel talk] program %lld: 100%% \042sure\042 %lld [%g, %g, %g])") !=
        std::string::npos);
  CHECK(source.find(R"(printf("[kernel talk] x is below -1 (program %lld, element %d)\n")") != std::string::npos);
  CHECK(source.find("__trap();") != std::string::npos);
  if (!can_run_kernels()) return;
  RandomCase c = make_case(talking(), {80, 80}, {}, 2);
  for (int k = 0; k < 80; ++k) write_element(c.buffers[0].data(), float32, k, Number::of_real(k));
  check_on_host({c});
}

TEST_CASE("a kernel whose tiles need more shared memory than the device has is refused by name, with advice") {
  if (no_compiler()) return;
  Builder b("wide");
  const Ref x = b.param("x", float32, false), y = b.param("y", float32, true);
  const Value v = b.load(x, b.index(0), {32, 32, 32}, {1024, 32, 1});
  b.store(y, b.permute(v, {2, 1, 0}), b.index(0), {1024, 32, 1});
  const std::vector<Kernel> kernels{b.finish()};
  cuda::CudaTarget large(target::gpu_of("sm_90a"), false), small(target::gpu_of("sm_86"), false);
  CHECK_NOTHROW(large.compile(kernels));
  CHECK_THROWS_WITH_AS(small.compile(kernels),
                       doctest::Contains("[kernel wide] its tiles need 131072 bytes of shared memory a block, and this "
                                         "device has 101376: use smaller tiles"),
                       std::invalid_argument);
}
