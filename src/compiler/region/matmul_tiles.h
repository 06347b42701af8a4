#pragma once
// The tiles of generated matmuls on GPUs: which one a product gets, and how much of the machine it then keeps
// busy. Lowering takes the tile, fusion the share.
#include <string>

#include "compiler/ir/grouping.h"
#include "kernel/tile.h"
#include "target/machine.h"

namespace weft::compiler {

/// A tile of C that one program computes, `depth` of the contracted axis at a time.
struct MatmulTile {
  int64_t rows = 0, columns = 0, depth = 0;  // rows 0: no tile fits the machine
  int stages = 0;                            // slices in shared memory; 0: as many as the code chooses
  bool ping_pong = false;                    // two warpgroups of an SM have a tile each, and multiply in turns
};

/// Bytes that a thread keeps of each element of A and of B while the K slice before it is multiplied: what the arrays
/// of computed sides give. 0 for sides that are copied to shared memory.
struct LoadedBytes {
  double a = 0, b = 0;
};

/// The products that a tile is chosen for: `batches` of `rows` × `columns`.
struct MatmulWork {
  Dtype operands;  // 16-bit floats or float32
  int64_t batches = 1, rows = 1, columns = 1, depth = 1;
  bool exact = false;        // float32 is multiplied exactly, by vector units; else it is rounded to TF32
  bool along_depth = false;  // lines of both operands run along the contracted axis, as warpgroups want float32
  double bytes = 2;          // that an element's epilogue reads and stores
  double operations = 0;     // of an element's epilogue
  LoadedBytes loaded = {};
};

struct MatmulTiling {
  MatmulTile tile;
  double share = 0;  // the speed of the multiplications, of the same work in the fastest tiles on SMs that are all busy
  double seconds = 0;  // predicted
};

/// Returns the work of a product, with what its epilogue reads, computes and stores for each element; `transposed`: of
/// C computed as [n, m].
MatmulWork matmul_work(const DotPlan& plan, bool transposed);
/// Returns whether generated code multiplies a product in tiles: on tensor cores, or exactly by a GPU's vector units.
bool takes_matmul_tiles(const DotPlan& plan, const target::Machine& machine);
/// Returns why the machine has no code, memory or registers for a tile; empty if it has.
std::string why_no_tile(const target::Machine& machine, const MatmulWork& work, const MatmulTile& tile);

/// Chooses the tile with which products are predicted to be done first. SMs process tiles in waves and all wait for the
/// last one; the contracted axis is not divided. With ping-pong, epilogues of one tile run beside the multiplications
/// of the next.
MatmulTiling matmul_tiling(const target::Machine& machine, const MatmulWork& work);

}  // namespace weft::compiler
