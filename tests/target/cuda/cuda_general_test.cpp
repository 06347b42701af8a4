// Kernels of everything that tile IR has, as they are rendered for a GPU: they give the interpreter's bits.
#include <doctest/doctest.h>

#include "target/cuda/cuda.h"
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

}  // namespace

TEST_CASE("random kernels of all instructions give the interpreter's bits, thread by thread") {
  if (!can_run_kernels()) return;
  check_on_host(general_cases(1, 3));
}
