#pragma once
// Steps of a user's kernel: they concern its loops, l0, l1, … in the order in which they are written, and its launch.
#include <string>

#include "kernel/tile.h"
#include "weft/schedule/steps.h"

namespace weft::k::detail {

/// Orders the programs of the kernel that is being traced in bands of tiles, where steps say so (raster). Throws
/// std::invalid_argument "[kernel NAME] STEP: …" where the grid has not two parallel axes at its end.
void raster_programs(const std::string& name, const schedule::Steps& steps);

/// Sets the stages of loops and the launch of a traced kernel. Throws std::invalid_argument "[kernel NAME] STEP: …" for
/// a loop that the kernel lacks, a number that the launch has already, and steps of other kinds.
void apply_steps(const std::string& name, const schedule::Steps& steps, kernel::Kernel& kernel);

/// Returns steps that say how a kernel's loops are staged and how it is launched; those of its grid are its own.
schedule::Steps steps_of_kernel(const kernel::Kernel& kernel);

}  // namespace weft::k::detail
