// A kernel as the CPU target has it, as text.
#include <doctest/doctest.h>

#include <stdexcept>

#include "kernel/rules.h"
#include "kernel/text/text.h"
#include "target/cpu/inspect.h"

using namespace weft;

TEST_CASE("inspection: the stages of a kernel on a CPU") {
  kernel::Kernel k = kernel::parse(R"(kernel @scale(p0: f32, p1: out f32) any_size {
  %0 = constant 0 : i64
  %1 = load p0[%0] stride(1) other(0) : f32[1000]
  %2 = constant 2 : f32[1000]
  %3 = mul %1 %2 : f32[1000]
  store p1[%0] %3 stride(1)
})")
                         .kernel;
  const kernel::Kernel legal = kernel::parse(target::cpu_stage(k, "legalized", "generic")).kernel;
  CHECK(kernel::is_basic(legal));
  for (const kernel::Type& t : legal.types) CHECK(t.size() < 1000);
  CHECK(target::cpu_stage(k, "llvm", "native").find("fmul") != std::string::npos);
  CHECK(target::cpu_stage(k, "assembly", "native").find("\tret") != std::string::npos);
  CHECK_THROWS_WITH_AS(target::cpu_stage(k, "ptx", "native"),
                       "[kernel scale] a CPU has no stage ptx: legalized, llvm, assembly", std::invalid_argument);
  CHECK_THROWS_AS(target::cpu_stage(k, "llvm", "mmx"), std::invalid_argument);
}
