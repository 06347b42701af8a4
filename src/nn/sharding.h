// Parts of parameters that are divided among processes.
#pragma once
#include "weft/nn/distributed.h"

namespace weft::nn {

/// Returns the part of process `rank` of `size`: of each segment along the axis, one of `size` equal parts.
array part_of(const array& parameter, const Division& division, int rank, int size);

}  // namespace weft::nn
