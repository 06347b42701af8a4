#include <doctest/doctest.h>

#include "kernel/expand/expand.h"
#include "kernel/random_kernel.h"

using namespace weft;

TEST_CASE("random kernels compute the same bits before and after expansion") {
  for (uint64_t seed = 1000; seed < 1400; ++seed) {
    test::RandomCase a = test::random_case(seed), b = a;
    b.kernel = kernel::expand(a.kernel);
    CAPTURE(seed);
    CAPTURE(kernel::print(a.kernel));
    REQUIRE_NOTHROW(kernel::verify(b.kernel));
    kernel::interpret(a.kernel, test::host_buffers(a), a.symbols, a.grid);
    kernel::interpret(b.kernel, test::host_buffers(b), b.symbols, b.grid);
    CHECK(test::difference(a, b) == "");
  }
}
