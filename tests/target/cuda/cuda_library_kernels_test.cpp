// The library of the kernel language as it is rendered for a GPU: thread by thread on the host with the interpreter's
// bits, and compiled.
#include <doctest/doctest.h>

#include "kernel/language/library_kernels.h"
#include "kernel/language/trace.h"
#include "target/cuda/cuda_support.h"
#include "target/cuda/driver/nvrtc.h"
#include "target/cuda/host_kernels.h"

using namespace weft;
using namespace weft::kernel;
using namespace weft::test;
namespace cuda = weft::target::cuda;

namespace {

std::vector<RandomCase> library_cases() {
  std::vector<RandomCase> out;
  for (const k::Program& program : test_kernels::library_programs()) {
    std::vector<int64_t> elements;
    bool exact = true;
    for (const k::Param& p : program.params()) {
      elements.push_back(static_cast<int64_t>(size_of(p.dims)));
      exact &= p.dtype != bfloat16;  // tensor cores add in an order of their own
    }
    Kernel kernel = program.data().kernel;
    kernel.any_size = true;
    if (exact) out.push_back(make_case(std::move(kernel), elements, {}, program.programs()));
  }
  return out;
}

}  // namespace

TEST_CASE("kernels of the language's library give the interpreter's bits, thread by thread") {
  if (can_run_kernels()) check_on_host(library_cases());
}

TEST_CASE("kernels of the language's library compile for GPUs of several kinds") {
  std::string why;
  if (!cuda::nvrtc_available(&why)) {
    MESSAGE("skipped: " << why);
    return;
  }
  std::string source(cuda::prelude());
  const std::vector<k::Program> programs = test_kernels::library_programs();
  for (size_t n = 0; n < programs.size(); ++n)
    source += cuda::render(expand(programs[n].data().kernel, cuda::operators), "k" + std::to_string(n)).source;
  for (const char* arch : {"sm_80", "sm_90a"}) CHECK(!cuda::compile(source, arch).empty());
}
