#pragma once
// Rows added to those that ids name, in no order, by atomics: the host side of scatter_add_rows.cu.
//
// It takes a `scatter_rows` whose sums need not have the same bits in every run: float32 sums of rows of a multiple of
// four elements, from float32 or 16-bit floats.
#include <optional>

#include "kernel/describe/desc.h"
#include "target/cuda/handwritten/registry.h"

namespace weft::target::cuda {

std::optional<Match> match_scatter_add_rows(const Work& work, const Machine& machine);

}  // namespace weft::target::cuda
