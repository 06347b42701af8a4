// The instruction set of the process: chosen once, before anything is computed, for generated code and for oneDNN.
#include <doctest/doctest.h>

#include <cstdlib>

#include "device.h"
#include "target/cpu/codegen/options.h"
#include "target/cpu/libraries/onednn.h"

using namespace weft;

TEST_CASE("the chosen instruction set is the one that is used, and stays") {
  const target::Isa& used = target::cpu_isa();
  const char* chosen = std::getenv("WEFT_TEST_ISA");
  CHECK(used.name == (chosen ? chosen : "native"));
  CHECK_NOTHROW(target::set_cpu_isa(used.name));
  CHECK_THROWS_WITH_AS(target::set_cpu_isa(used.name == "generic" ? "native" : "generic"),
                       doctest::Contains("in use already"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(target::set_cpu_isa("mmx"), doctest::Contains("unknown instruction set"), std::invalid_argument);
}

TEST_CASE("oneDNN has no instructions that generated code is denied") {
  if (target::onednn_version().empty()) {
    MESSAGE("built without oneDNN");
    return;
  }
  const target::Isa& used = target::cpu_isa();
  const int bits = target::onednn_isa().vector_bits;
  CHECK((bits == 128 || bits == 256 || bits == 512));
  if (used.name != "native") CHECK(bits <= used.vector_bits);
}
