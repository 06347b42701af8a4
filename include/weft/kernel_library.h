#pragma once
// What many kernels have in common, written in the kernel language itself: ordinary functions of its handles, which are
// traced like the user's own. docs/kernels.md lists them.
#include "weft/kernel/library/grid.h"
#include "weft/kernel/library/loops.h"
#include "weft/kernel/library/merge.h"
#include "weft/kernel/library/rank.h"
#include "weft/kernel/library/scaled.h"
#include "weft/kernel/library/states.h"
