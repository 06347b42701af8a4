#include "target/cpu/inspect.h"

#include "base/error.h"
#include "target/cpu/codegen/compile.h"
#include "target/cpu/codegen/jit.h"
#include "target/cpu/cpu.h"

namespace weft::target {

std::string cpu_stage(const kernel::Kernel& kernel, std::string_view stage, const std::string& isa) {
  initialise_llvm();
  const Isa used = resolve({isa, false});
  const kernel::Kernel legal = prepared(kernel, used);
  if (stage == "legalized") return kernel::print(legal);
  const std::string symbol = "weft_" + kernel::digest(legal).hex();
  if (stage == "llvm") return CodeGenerator(used).ir(legal, symbol);
  if (stage == "assembly") return CodeGenerator(used).assembly(legal, symbol);
  throw_invalid("kernel " + kernel.name, "a CPU has no stage " + std::string(stage) + ": legalized, llvm, assembly");
}

}  // namespace weft::target
