// Kernels of the explicit level from which one arrival, wait, group or guard is taken away: the checks of tracing or
// the interpreter find it.
#include "kernel/language/mutation.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "kernel/language/asynchronous_kernels.h"

TEST_CASE("of arrivals, waits and guards that are taken away 95 in 100 are found, and others are known") {
  test_kernels::Mutations found;
  for (const test_kernels::AsyncKernel& c : test_kernels::asynchronous_kernels())
    found.add(c.program, test_kernels::random_arrays(c.program, 3));
  CHECK(found.all > 50);
  CHECK(found.faults * 100 >= found.all * 95);
  // A program alone releases a slot before it acquires it again: it never waits there.
  const std::vector<std::string> harmless(2, "sums_alone: await");
  CHECK(found.missed == harmless);
}
