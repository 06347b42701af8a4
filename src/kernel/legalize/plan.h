#pragma once
// Decides which tiles of a kernel get memory. All others are computed chunk by chunk where they are read.
#include <vector>

#include "kernel/tile.h"

namespace weft::kernel {

/// Returns for each value whether it is stored where it is computed: several loops read it, or one reads it repeatedly,
/// and it costs more than reading it back.
std::vector<char> stored_values(const Kernel& kernel);

/// Returns whether an instruction's result can be computed chunk by chunk where it is read.
bool is_lazy(const Kernel& kernel, const Inst& inst);

}  // namespace weft::kernel
