// The rungs of examples/kernels/ladders at the sizes of a GPU: what NVRTC makes of them, without a GPU.
#include <doctest/doctest.h>

#include "examples/kernels/ladders/ladder.h"
#include "kernel/language/trace.h"
#include "target/cuda/inspect.h"
#include "target/machine.h"

using namespace weft;

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
