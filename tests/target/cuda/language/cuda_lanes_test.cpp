// Functions of lanes as they are rendered for a GPU: they give the interpreter's bits.
#include <doctest/doctest.h>

#include "kernel/language/lane_programs.h"
#include "target/cuda/cuda.h"
#include "target/cuda/cuda_support.h"
#include "target/cuda/host_kernels.h"
#include "target/cuda/language/traced_case.h"

using namespace weft;
using namespace weft::test;
namespace cuda = weft::target::cuda;

namespace {

std::vector<RandomCase> lane_cases(std::initializer_list<Dtype> dtypes) {
  std::vector<RandomCase> out;
  for (const Dtype t : dtypes) out.push_back(traced_case(test_kernels::LaneProgram(t).make()));
  return out;
}

}  // namespace

TEST_CASE("functions of lanes give the interpreter's bits, thread by thread") {
  if (!can_run_kernels()) return;
  check_on_host(lane_cases({bool_, uint8, uint32, int32, int64, bfloat16, float32, float64}));
}

TEST_CASE("functions of lanes compile for GPUs of several kinds") {
  std::string why;
  if (!cuda::nvrtc_available(&why)) {
    MESSAGE("skipped: " << why);
    return;
  }
  // NVRTC takes seconds for each dtype, and machine code three times as long as PTX. What is rendered depends on the
  // dtype alone: one of them meets both kinds.
  const auto source_of = [](std::initializer_list<Dtype> dtypes) {
    std::string source(cuda::prelude());
    size_t n = 0;
    for (const RandomCase& c : lane_cases(dtypes))
      source += cuda::render(kernel::expand(c.kernel), "k" + std::to_string(n++)).source;
    return source;
  };
  CHECK(!cuda::compile(source_of({uint32}), "sm_80").empty());
  if (sanitized) return;  // NVRTC is not
  CHECK(!cuda::compile_ptx(source_of({bool_, float64}), "sm_80").empty());
  CHECK(!cuda::compile_ptx(source_of({uint32, int32, float16}), "sm_90a").empty());
}

TEST_CASE("functions of lanes give the interpreter's bits on the device") {
  if (!on_device()) return;
  for (const RandomCase& c : lane_cases({bool_, uint8, uint32, int32, int64, float16, float32, float64})) agree(c);
}
