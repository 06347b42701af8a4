// Tests that exist in other programs, on another instruction set: --isa=avx2 or --isa=generic. Where this processor lacks it there is nothing to test.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <string>

#include "target/cpu/cpu.h"

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  std::string isa = "native";
  for (int k = 1; k < argc; ++k)
    if (const std::string word = argv[k]; word.starts_with("--isa=")) isa = word.substr(6);
  try {
    weft::target::set_cpu_isa(isa);
  } catch (const std::invalid_argument& e) {
    std::printf("%s\n", e.what());
    return isa == "avx2" || isa == "generic" ? 0 : 1;
  }
  return context.run();
}

TEST_CASE("the chosen instruction set is the one that is used, and stays") {
  const auto& used = dynamic_cast<weft::target::CpuTarget&>(weft::target::cpu()).isa();
  MESSAGE("instruction set: " << used.name);
  CHECK_NOTHROW(weft::target::set_cpu_isa(used.name));
  CHECK_THROWS_WITH_AS(weft::target::set_cpu_isa(used.name == "generic" ? "native" : "generic"), doctest::Contains("in use already"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(weft::target::set_cpu_isa("mmx"), doctest::Contains("unknown instruction set"), std::invalid_argument);
}
