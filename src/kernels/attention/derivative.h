#pragma once
// What the kernels of attention's derivative share. Probabilities are computed again, from the scores and the logarithm
// of each row's sum, once by rows for dQ and once by columns for dK and dV: so every sum is in one program, in one
// order.
#include <cmath>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/attention/tiles.h"

namespace weft::kernels {

/// Returns `written` and what the kernels of dQ and of dK and dV read.
std::vector<AttentionParams::Use> with_operands(const Attention& attention, std::vector<AttentionParams::Use> written);

/// Returns the probabilities of a block, of products of queries and keys and the logarithm of each row's sum, to
/// base 2.
k::Tile<float, 2> probabilities(const AttentionFrame& frame, const k::Tile<float, 2>& products,
                                const k::Tile<float, 2>& lse, const ScoreBlock& block);

/// Returns cotangents of weights from those of weights after dropout.
k::Tile<float, 2> after_dropout(const AttentionFrame& frame, const k::Tile<float, 2>& cotangents,
                                const ScoreBlock& block);

/// Returns whether programs of keys sum over a batch axis: what they write is the same for all of its indices.
bool summed(const Attention& attention, size_t axis);

}  // namespace weft::kernels
