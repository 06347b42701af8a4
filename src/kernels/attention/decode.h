#pragma once
// Attention of one query a head, as a decoder asks it of a cache of keys and values: memory is read once, as it lies.
//
// Over many keys several share a head, so that few heads keep a device busy. In one launch they are the iterations of a
// parallel loop: blocks of a cluster, or their warps. Where a device has no clusters they are programs, each with a
// split of the keys, and a second kernel joins what they give. Either way the division depends on the largest number of
// keys alone, and so do the bits.
//
// The launch may also append the newest key and value to memory. Every program that needs them, and the query, then
// computes them itself: none reads what another one stores.
#include <functional>
#include <span>
#include <vector>

#include "kernels/attention/attention.h"

namespace weft::kernels {

/// How the keys of a head are divided: into tiles of `rows` of them, which `sharers` iterations of a parallel loop take
/// in turns.
struct DecodeBlocks {
  int64_t rows = 1, sharers = 1;
  friend bool operator==(const DecodeBlocks&, const DecodeBlocks&) = default;
};

/// The newest position of a head: its query, key and value, rounded as memory holds them. A row has as many elements as
/// a tile has columns (decode_columns), 0 behind the last one.
struct DecodeRows {
  k::Tile<float, 1> query = {}, key = {}, value = {};
};

struct Decode {
  Attention a;  // of one query; a mask is an integer, the number of keys that are seen
  DecodeBlocks blocks;
  /// Programs of a head, and the keys of each; 0: one program has all of them. Splits leave their results in float32:
  /// part_o [batch…, splits, value_width], part_lse [batch…, splits]. a.o and a.lse are what the join of them makes.
  int64_t splits = 0, split_keys = 0;
  AttentionArray part_o, part_lse;
  /// Computes the newest position, the last one that is seen, which k and v do not hold yet: it is the last key, and is
  /// stored there. a.q is absent then. Nothing: memory holds all that is seen.
  std::function<DecodeRows(const std::vector<k::Index>& batch)> append = {};
};

/// Returns the columns of a tile of rows of this width.
int64_t decode_columns(int64_t width);
/// Returns the blocks for a device whose clusters have `cluster` blocks; 1: it has none.
DecodeBlocks decode_blocks(const Attention& a, int64_t cluster);

/// Returns the grid: the batch axes, and the splits.
k::Grid decode_grid(const Decode& d);
/// Appends the kernel to the trace of the calling thread, whose grid is decode_grid's. `memory`: the buffers, by their
/// numbers; `keys`: how many keys there are, from 0 to the bound. Throws std::invalid_argument where the attention is
/// not one of a single query, or has functions of scores, windows, or masks of bools or floats.
void decode(const Decode& d, std::span<const k::AnyRef> memory, const k::Index& keys);

/// Returns the grid of the join: the batch axes.
k::Grid decode_join_grid(const Decode& d);
/// Appends the kernel that makes a.o and a.lse of the results of splits.
void decode_join(const Decode& d, std::span<const k::AnyRef> memory);

/// Returns the kernels by themselves: one, or that of the splits and their join.
std::vector<AttentionKernel> attention_decode(const Decode& d);

}  // namespace weft::kernels
