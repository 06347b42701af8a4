#pragma once
// Adds rows to the rows that ids name, by atomics in no fixed order: the host side of scatter_add_rows.cu.
//
// It takes a `scatter_rows` whose sums may differ between runs, into float32 rows of a multiple of four elements, from
// float32 or 16-bit floats.
#include <optional>

#include "kernel/describe/desc.h"
#include "target/cuda/handwritten/registry.h"

namespace weft::target::cuda {

std::optional<Match> match_scatter_add_rows(const kernel::CallDesc& work, const Machine& machine);

}  // namespace weft::target::cuda
