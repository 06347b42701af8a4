#pragma once
// The matrix product on a GPU: a program has a tile of the result. It multiplies slices of both operands along the
// contracted axis and finishes the tile. What is loaded, and what is made of the sums, are the caller's functions: tile
// code of its own.
#include <functional>

#include "kernels/gemm/tiles.h"
#include "weft/kernel.h"

namespace weft::kernels {

/// A tile of the result: which of the products, its first row and column.
struct GemmOrigin {
  k::Index batch, row, column;
};

/// Rows of tiles that alternate where nobody says otherwise: about as many rows and columns of operands are read at
/// once on a large GPU.
constexpr int usual_band = 8;
/// Columns of sums that an epilogue takes at once where it has registers for few: a line of 16 bits in shared memory,
/// two of float32.
constexpr int64_t usual_part = 64;

/// A product, or several of equal shape, in the trace of the calling thread.
struct Gemm {
  int64_t batches = 1, rows = 1, columns = 1;  // of the results; of lengths that vary, their bounds
  k::Index depth;                              // of the contracted axis
  GemmTile tile;
  int64_t band = 1;  // rows of tiles that alternate, so that programs which run together read few rows and columns
  k::Precision precision = k::Precision::exact;  // of float32
  Dtype sums = float32;                          // float32; of float64 and int32 these
  using Load = std::function<k::Any(const GemmOrigin& origin, const k::Index& depth)>;
  /// Return the tiles [rows, depth] of A and [depth, columns] of B from an index of the contracted axis on; past its
  /// end they are 0.
  Load left = {}, right = {};
  /// Makes the results of sums and stores them: of a tile, or of `part` of its columns after another (0: of all), since
  /// there are registers for few elements beside the sums.
  std::function<void(const GemmOrigin& origin, const k::Any& sums)> finish = {};
  int64_t part = 0;
};

/// Returns the grid of a product: the products, then the tiles of one.
k::Grid gemm_grid(int64_t batches, int64_t rows, int64_t columns, const GemmTile& tile);
/// Appends the product to the trace, whose grid is gemm_grid's. Sums are added by ascending index.
void gemm(const Gemm& product);

}  // namespace weft::kernels
