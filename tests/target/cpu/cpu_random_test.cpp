// Random kernels: every instruction of the tile IR in combination.
#include <cstdlib>

#include "target/cpu/cpu_support.h"

using namespace weft;
using namespace weft::test;

TEST_CASE("generated code agrees with the interpreter on random kernels") {
  const char* more = std::getenv("WEFT_FUZZ_CASES");
  const uint64_t cases = more ? std::strtoull(more, nullptr, 10) : 100;
  for (uint64_t seed = 1; seed <= cases; ++seed) {
    CAPTURE(seed);
    agree(random_case(seed), seed % 5 == 0 ? 3 : 1);  // all instruction sets now and then, the processor's own always
  }
}
