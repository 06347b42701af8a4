// Random kernels, as they are written and rewritten for vector registers, in the interpreter.
#include <doctest/doctest.h>

#include "kernel/language/random_program.h"
#include "kernel/language/run.h"

namespace {

TEST_CASE("random kernels keep their bits when they are rewritten for vector registers") {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    const weft::k::Program program = test_kernels::RandomProgram(seed).make();
    test_kernels::compare_rewritten(program, test_kernels::random_arrays(program, seed));
  }
}

}  // namespace
