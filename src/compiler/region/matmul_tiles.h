#pragma once
// The tiles of generated matmuls on tensor cores: which one a product gets, and how much of the machine it then keeps
// busy. Lowering takes the tile, fusion the share.
#include "kernel/tile.h"
#include "target/machine.h"

namespace weft::compiler {

/// A tile of C that one program computes.
struct MatmulTile {
  int64_t rows, columns, depth;
  double rate;  // the speed of an SM with it, of the fastest tile's
};

/// Bytes that a thread keeps of each element of A and of B while the K slice before it is multiplied: what the arrays
/// of computed sides give. 0 for sides that are copied to shared memory.
struct LoadedBytes {
  double a = 0, b = 0;
};

struct MatmulTiling {
  const MatmulTile* tile = nullptr;
  double share = 0;  // the speed of the product, of the same work in the fastest tiles on SMs that are all busy
};

/// Chooses the tile with which `batches` products of `rows` × `columns` are done first. SMs process tiles in waves and
/// all wait for the last one; the contracted axis is not divided. `operands`: 16-bit floats or float32, which is
/// rounded to TF32. Without a tile that fits into the shared memory the result has none.
MatmulTiling matmul_tiling(const target::Machine& machine, Dtype operands, int64_t batches, int64_t rows,
                           int64_t columns, const LoadedBytes& loaded = {});

}  // namespace weft::compiler
