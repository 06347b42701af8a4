#pragma once
// The thread's default sequence of random keys, as transforms see it.
#include <cstdint>

namespace weft::detail {

/// Returns how many keys the calling thread's default sequence has supplied: compile() learns from it whether a
/// function drew from the sequence.
int64_t implicit_key_uses();

}  // namespace weft::detail
