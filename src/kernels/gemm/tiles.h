#pragma once
// The tiles of generated matmuls on GPUs: which one a product gets, and how much of the machine it then keeps
// busy. Lowering takes the tile, fusion the share.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel/tile.h"
#include "target/machine.h"

namespace weft::kernels {

/// A tile of C that one program computes, `depth` of the contracted axis at a time.
struct GemmTile {
  int64_t rows = 0, columns = 0, depth = 0;  // rows 0: no tile fits the machine
  int stages = 0;                            // slices in shared memory; 0: as many as the code chooses
  bool ping_pong = false;                    // two warpgroups of an SM have a tile each, and multiply in turns
};

/// A number for each operand: 0 for operands that are copied to shared memory as they are.
struct PerOperand {
  double a = 0, b = 0;
};

/// The products that a tile is chosen for: `batches` of `rows` × `columns`.
struct GemmWork {
  Dtype operands;  // 16-bit floats, float32, 8-bit floats or integers
  int64_t batches = 1, rows = 1, columns = 1, depth = 1;
  bool exact = false;        // float32 is multiplied exactly, by vector units; else it is rounded to TF32
  bool along_depth = false;  // lines of both operands run along the contracted axis, as warpgroups want float32
  bool b_across = false;     // lines of B run along the columns: tiles of it are copied as whole lines of 128 bytes
  double bytes = 2;          // that an element's epilogue reads and stores
  double epilogue_operations = 0;  // of an element
  PerOperand loaded = {};      // bytes that a thread keeps of each element while the K slice before it is multiplied
  PerOperand operations = {};  // that make an element
  bool a_shared = false, b_shared = false;  // elements share what they are made from, as codes share a word
  double kept = 0;                          // registers for what all elements are made from alike
  int64_t rows_of_tiles = 1;                // divides the rows of a tile
};

struct GemmTiling {
  GemmTile tile;
  double share = 0;  // the speed of the multiplications, of the same work in the fastest tiles on SMs that are all busy
  double seconds = 0;  // predicted
};

/// Returns whether C had better be computed transposed: warpgroups take A from registers, where its elements may be
/// unpacked, and B from shared memory.
bool exchanges_operands(const target::Machine& machine, const GemmWork& work);
/// Returns the work of the transposed product.
GemmWork exchanged(GemmWork work);

/// Returns why the machine has no code, memory or registers for a tile; empty if it has.
std::string why_no_tile(const target::Machine& machine, const GemmWork& work, const GemmTile& tile);

/// Chooses the tile with which products are predicted to be done first. SMs process tiles in waves and all wait for the
/// last one, or for the L2, which all read; the contracted axis is not divided. With ping-pong, epilogues of one tile
/// run beside the multiplications of the next.
GemmTiling gemm_tiling(const target::Machine& machine, const GemmWork& work);
/// Returns tiles by the predicted time, the least first; `most` at most.
std::vector<GemmTiling> gemm_tilings(const target::Machine& machine, const GemmWork& work, size_t most);

}  // namespace weft::kernels
