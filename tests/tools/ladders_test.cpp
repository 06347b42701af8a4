// The rungs of examples/kernels/ladders at the sizes of a GPU: what NVRTC makes of them, without a GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "examples/kernels/ladders/ladder.h"
#include "kernel/language/trace.h"
#include "target/cuda/codegen/render.h"
#include "target/cuda/cuda_support.h"
#include "target/cuda/host_kernels.h"
#include "target/cuda/inspect.h"
#include "target/machine.h"

using namespace weft;
using namespace weft::test;

namespace {

/// A rung's kernel on random floats; integers are 0, as counters and locks begin.
RandomCase case_of(const k::Program& program) {
  RandomCase out{program.data().kernel, {}, {}, {}, program.programs()};
  for (const k::Param& p : program.params()) {
    const int64_t elements = static_cast<int64_t>(size_of(p.dims));
    out.elements.push_back(elements);
    const bool real = is_float(p.dtype);
    out.buffers.emplace_back(static_cast<size_t>(elements) * p.dtype.size());
    const std::vector<double> drawn = numbers(static_cast<size_t>(elements), out.elements.size());
    for (int64_t i = 0; i < elements; ++i)
      kernel::write_element(
          out.buffers.back().data(), p.dtype, i,
          real ? kernel::round_to(Number::of_real(drawn[static_cast<size_t>(i)]), p.dtype) : Number::of_int(0));
  }
  return out;
}

}  // namespace

TEST_CASE("kernels of ladders as a GPU has them leave the interpreter's bits, thread by thread") {
  if (!can_run_kernels()) return;
  const std::vector<std::string> names{"reduction", "transpose", "softmax", "histogram"};
  std::vector<RandomCase> cases;
  for (const ladders::Entry& entry : ladders::all()) {
    if (std::find(names.begin(), names.end(), entry.name) == names.end()) continue;
    const ladders::Ladder ladder = entry.make(ladders::Scale::check);
    for (const ladders::Rung& rung : ladder.rungs) {
      const ladders::AnyOrder scope(rung.any_order);
      if (rung.program && !rung.any_order) cases.push_back(case_of(rung.program(ladder.inputs)));
    }
  }
  check_on_host(cases, {}, {.warpgroups = true, .clusters = true});
}

TEST_CASE("attention whose exponentials overlap products is copied by TMA alone, thread by thread") {
  if (!can_run_kernels()) return;
  constexpr target::cuda::Features hopper{.warpgroups = true, .clusters = true};
  const ladders::Ladder ladder = ladders::attention_tensor(ladders::Scale::check);
  const RandomCase c = case_of(ladder.rungs.back().program(ladder.inputs));
  REQUIRE(c.kernel.name == "attention_overlapped");
  const kernel::Kernel expanded = kernel::expand(c.kernel, target::cuda::operators);
  const std::string source = target::cuda::render(expanded, "k", {}, hopper).source;
  CHECK(source.find("copied by TMA, by a warpgroup of its own") != std::string::npos);
  // The first block of keys and the last one of values take stages of the loop's ring.
  CHECK(source.find(" copy_async(") == std::string::npos);
  // Exponentials wait for the scores alone; the product with values is waited for after them.
  const size_t scores = source.find("wgmma_wait<1>();");
  REQUIRE(scores != std::string::npos);
  const size_t exponential = source.find("exp2(", scores), sums = source.find("wgmma_wait<0>();", scores);
  CHECK(exponential < sums);
  CHECK(sums != std::string::npos);
  check_on_host({c}, {}, hopper);
}

TEST_CASE("the kernels of all ladders compile for sm_90a, and none spills registers") {
  std::string why;
  if (!target::cuda::nvrtc_available(&why)) {
    MESSAGE("skipped: " << why);
    return;
  }
  const target::Machine gpu = target::gpu_of("sm_90a");
  for (const ladders::Entry& entry : ladders::all()) {
    const ladders::Ladder ladder = entry.make(ladders::Scale::gpu);
    for (const ladders::Rung& rung : ladder.rungs) {
      if (!rung.program) continue;
      CAPTURE(entry.name);
      CAPTURE(rung.name);
      const ladders::AnyOrder scope(rung.any_order);
      const target::cuda::KernelCode code = target::cuda::code_of(rung.program(ladder.inputs).data().kernel, gpu);
      CHECK(code.usage.spill_store_bytes == 0);
      CHECK(!code.serialized);
    }
  }
}
