#pragma once
// Finds which positions of a sorted axis are read. Where that is a part of them, the sort computes no others.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Returns the graph with a window for each sort whose results are read by slices alone: topk, the ends of a partition,
/// the middle of a median. Of both results it is the same one, the smallest that holds all slices.
Ir narrow_sorts(Ir ir);

}  // namespace weft::compiler
