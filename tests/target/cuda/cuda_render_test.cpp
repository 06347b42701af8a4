// Kernels as CUDA C++, without a GPU: what is rendered compiles, and keeps its tiles in registers.
#include <doctest/doctest.h>

#include "kernel/expand/expand.h"
#include "target/cpu/cpu_support.h"
#include "target/cuda/codegen/render.h"
#include "target/cuda/codegen/text/source.h"
#include "target/cuda/cuda.h"

using namespace weft;
using namespace weft::kernel;
using namespace weft::test;
namespace cuda = weft::target::cuda;

namespace {

bool no_compiler() {
  std::string why;
  if (cuda::nvrtc_available(&why)) return false;
  MESSAGE("skipped: " << why);
  return true;
}

std::string source_of(const Kernel& kernel, const cuda::Variant& variant = {}) {
  return cuda::render(expand(kernel), "k", variant).source;
}

/// y = x * 2 on 1024 lanes a program, up to n.
Kernel doubled(bool whole) {
  Builder b("doubled");
  const Ref x = b.param("x", float32, false), y = b.param("y", float32, true);
  const Value start = b.mul(b.program_id(), b.index(1024)), left = whole ? no_value : b.sub(b.symbol("n"), start);
  b.store(y, b.mul(b.load(x, start, {1024}, {1}, {left}), b.real(float32, 2, {1024})), start, {1}, {left});
  return b.finish();
}

/// The sum of each row of `length` elements.
cuda::Rendered sums_of_rows(int64_t length, int64_t tile, Dtype dtype) {
  Builder b("sums");
  const Ref x = b.param("x", dtype, false), y = b.param("y", float32, true);
  const Value row = b.program_id(), limit = length < tile ? b.index(length) : no_value;
  const Value in = b.load(x, b.mul(row, b.index(length)), {tile}, {1}, {limit});
  b.store(y, b.reduce(Reducer::sum, b.cast(in, float32), 0), row, {});
  return cuda::render(expand(b.finish()), "k");
}

}  // namespace

TEST_CASE("rows that do not fill the lanes of a warp share it") {
  struct Case {
    int64_t length, tile;
    Dtype dtype;
    int rows;  // of a warp
  };
  for (const Case& c :
       {Case{40, 64, bfloat16, 4}, Case{80, 128, bfloat16, 2}, Case{384, 512, bfloat16, 2}, Case{512, 512, bfloat16, 1},
        Case{768, 1024, bfloat16, 1}, Case{384, 512, float32, 1}, Case{20, 32, float32, 4}, Case{2, 2, float32, 4}}) {
    CAPTURE(c.length);
    CAPTURE(c.dtype.size());
    const cuda::Rendered rendered = sums_of_rows(c.length, c.tile, c.dtype);
    CHECK(rendered.programs * 32 == rendered.threads * c.rows);
  }
}

TEST_CASE("random kernels compile for a Hopper GPU") {
  if (no_compiler()) return;
  cuda::CudaTarget target(target::gpu_of("sm_90a"), false);
  std::vector<Kernel> kernels;
  for (uint64_t seed = 1; seed <= 64; ++seed) kernels.push_back(random_case(seed).kernel);
  const auto code = target.compile(kernels);
  CHECK(code.size() == kernels.size());
  CHECK(target.usage().size() >= 60);  // a few may be alike
  const RandomCase c = random_case(1);
  CHECK_THROWS_WITH_AS(code[0]->run(std::vector<target::Segment>{{{}, {}, 1}}, 0), doctest::Contains("no device"),
                       std::runtime_error);
}

TEST_CASE("chunks travel in words of 16 bytes where they begin on one") {
  const std::string whole = source_of(doubled(true)), guarded = source_of(doubled(false)),
                    anywhere = source_of(doubled(true), {false, 1});
  CHECK(whole.find("W16") != std::string::npos);
  // The kernel's entry has branches of its own; what it does for a program lies before it.
  const auto body = [](const std::string& source) { return source.substr(0, source.find("__global__")); };
  CHECK(body(whole).find("if (") == std::string::npos);
  CHECK(guarded.find("W16") != std::string::npos);
  CHECK(anywhere.find("W16") == std::string::npos);
}

TEST_CASE("a map takes few registers and spills none") {
  if (no_compiler()) return;
  cuda::CudaTarget target(target::gpu_of("sm_90a"), false);
  const std::vector<Kernel> kernels{doubled(true), doubled(false)};
  target.compile(kernels);
  for (const cuda::KernelUsage& use : target.usage()) {
    CAPTURE(use.name);
    CHECK(use.registers <= 32);
    CHECK(use.spill_store_bytes == 0);
    CHECK(use.stack_bytes == 0);
  }
}

TEST_CASE("sines of all arguments take few registers and spill none") {
  if (no_compiler()) return;
  cuda::CudaTarget target(target::gpu_of("sm_90a"), false);
  std::vector<Kernel> kernels;
  for (ScalarOp op : {ScalarOp::sin, ScalarOp::cos, ScalarOp::tan}) {
    Builder b(std::string(info(op).name));
    const Ref x = b.param("x", float32, false), y = b.param("y", float32, true);
    const Value start = b.mul(b.program_id(), b.index(1024));
    b.store(y, b.scalar(op, {b.load(x, start, {1024}, {1})}), start, {1});
    kernels.push_back(b.finish());
  }
  target.compile(kernels);
  CHECK(target.usage().size() == 3);
  for (const cuda::KernelUsage& use : target.usage()) {
    CAPTURE(use.name);
    CHECK(use.registers <= 48);
    CHECK(use.spill_store_bytes == 0);
    CHECK(use.stack_bytes == 0);
  }
  for (const char* arch : {"sm_80", "sm_100a"})
    CHECK(!cuda::compile(std::string(cuda::prelude()) + source_of(kernels[0]), arch).empty());
}

TEST_CASE("several segments of one launch take their arguments from a table") {
  const std::string text = source_of(doubled(false), {true, 8});
  CHECK(text.find("__grid_constant__") != std::string::npos);
  if (no_compiler()) return;
  CHECK(!cuda::compile(std::string(cuda::prelude()) + text, "sm_90a").empty());
  CHECK(!cuda::compile(std::string(cuda::prelude()) + text, "sm_80").empty());
  CHECK(!cuda::compile(std::string(cuda::prelude()) + text, "sm_100a").empty());
}

TEST_CASE("blocks of a cluster compute what rests on constants alone before they wait for the kernel before them") {
  Builder b("angles");
  const Ref position = b.param("place", float32, false), x = b.param("x", float32, false),
            y = b.param("y", float32, true), parts = b.local(float32, 4 * 64);
  b.parallel(4, [&](Value round) {
    const Value start = b.mul(round, b.index(64)), values = b.load(x, start, {64}, {1});
    const Value angles = b.mul(b.broadcast(b.load(position, b.index(0), {}, {}), {64}), b.cast(b.arange(64), float32));
    b.store(parts, b.mul(values, b.scalar(ScalarOp::sin, {angles})), start, {1});
  });
  b.store(y, b.load(parts, b.index(0), {256}, {1}), b.index(0), {1});
  Kernel kernel = b.finish();
  kernel.params[static_cast<size_t>(position)].constant = true;
  const std::string text = cuda::render(expand(kernel), "k", {}, {.clusters = true}).source;
  const size_t wait = text.find("wait_for_previous");
  CHECK(text.rfind("__builtin_expect") < wait);  // of the sine
  CHECK(wait < text.find("q1 +"));               // x
}

TEST_CASE("a kernel that asks for more shared memory than a block of the device has is refused by name") {
  if (no_compiler()) return;
  Builder b("greedy");
  const Ref x = b.param("x", float32, false), y = b.param("y", float32, true), kept = b.local(float32, 30 << 10);
  const Value start = b.mul(b.program_id(), b.index(1024));
  b.store(kept, b.load(x, start, {1024}, {1}), b.index(0), {1});
  b.store(y, b.load(kept, b.index(0), {1024}, {1}), start, {1});
  const std::vector<Kernel> kernels{b.finish()};
  cuda::CudaTarget large(target::gpu_of("sm_90a"), false), small(target::gpu_of("sm_86"), false);
  CHECK_NOTHROW(large.compile(kernels));
  CHECK_THROWS_WITH_AS(
      small.compile(kernels),
      doctest::Contains("[kernel greedy] asks for 122880 bytes of shared memory a block, and this device has 101376"),
      std::runtime_error);
}
