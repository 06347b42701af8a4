#pragma once
// What the CPU target makes of a kernel, as text.
#include <string>
#include <string_view>

#include "kernel/tile.h"

namespace weft::target {

/// Returns a kernel at a stage: "legalized" (the tile IR that code is made of), "llvm" (optimised LLVM IR) or
/// "assembly". `isa`: "native", "avx512", "avx2" or "generic". Throws std::invalid_argument for other stages, and for
/// instructions that this processor lacks.
std::string cpu_stage(const kernel::Kernel& kernel, std::string_view stage, const std::string& isa);

}  // namespace weft::target
