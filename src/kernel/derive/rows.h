#pragma once
// Programs of one row each as programs of several rows.
#include "kernel/length.h"
#include "kernel/tile.h"

namespace weft::kernel {

/// Returns how many programs a core should run in one, so that their memory accesses overlap: those of a kernel that
/// reduces what it loads, stores results by streaming stores, and does nothing else. 1: none are joined.
int64_t programs_to_join(const Kernel& kernel, int64_t programs);

/// Returns a kernel whose program k runs the programs k·count, k·count + 1, … of a kernel with so many `programs`, one
/// after the other.
Kernel with_joined_programs(const Kernel& kernel, int64_t count, const Length& programs);

}  // namespace weft::kernel
