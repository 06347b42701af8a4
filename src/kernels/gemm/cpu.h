#pragma once
// Matrix products on a CPU: a program has a part of the result. What is loaded, and what is made of the sums, are the
// caller's functions: tile code of its own. The forms differ in how a program goes through its part:
//
//   blocks   large products: panels of both operands are packed into scratch, sums stay in registers
//   panels   a few rows with a large matrix whose columns are adjacent in memory: sums in scratch
//   columns  lanes along the columns: one step of the contracted axis after another, sums in registers
//   depth    lanes along the contracted axis: partial sums, added by a tree at the end
//
// In all forms but the last an element of the result is one chain of fused multiply-adds by ascending index of the
// contracted axis, so that forms and block sizes change no bits.
#include <functional>
#include <optional>

#include "kernels/gemm/gemm.h"
#include "weft/kernel.h"

namespace weft::kernels {

enum class CpuGemmForm : uint8_t { blocks, panels, columns, depth };

/// A product, or several of equal shape, and the machine: what decides how programs divide it.
struct CpuGemmShape {
  CpuGemmForm form = CpuGemmForm::columns;
  int64_t batches = 1;
  Dim rows = 1, columns = 1, depth = 1;  // of the results; of the contracted axis
  Dtype sums = float32;                  // float32, float64 or int32; operands are given in it
  int64_t lanes = 8, registers = 16;     // of a vector of sums; how many vectors stay in registers
  int64_t processors = 1;
  bool columns_first = false;  // programs that follow each other have rows, not columns, that do
  // Whether an operand lies in memory with neighbours along the contracted axis, and not along the other one, adjacent.
  bool left_along_depth = false, right_along_depth = false;
};

/// How many elements of an axis exist from the first of a tile on; none: all that the tile has.
using GemmLimit = std::optional<k::Index>;

/// A tile of an operand that a program asks for: `count` rows of A (columns of B) from `first` on, and `steps` of the
/// contracted axis from `depth` on. It is [count, steps], or [steps, count] with `steps_first`; steps that do not exist
/// are 0.
struct OperandTile {
  k::Index first, depth;
  int64_t count = 1, steps = 1;
  bool steps_first = false;
  GemmLimit count_limit = {}, steps_limit = {};
};

/// Where a tile of results lies.
struct ResultTile {
  k::Index row, column;
  GemmLimit row_limit = {}, column_limit = {};
};

/// A product in the trace of the calling thread, whose grid is cpu_gemm_grid's.
struct CpuGemm {
  CpuGemmShape shape;
  k::Index rows = {}, columns = {}, depth = {};  // of this run: of fixed lengths constants
  /// Return tiles of A and B in the dtype of the sums.
  using Load = std::function<k::Any(const OperandTile& tile)>;
  Load left = {}, right = {};
  /// Makes the results of a tile of sums and stores those that exist.
  std::function<void(const ResultTile& tile, const k::Any& sums)> finish = {};
  /// Tells that a tile of B is read soon, by the next program. None: memory is near, or much is done with what is read.
  std::function<void(const OperandTile& tile)> ahead = {};
  /// Store the sums of A's rows (B's columns) along the contracted axis: [n] from `first` on, `limit` of which exist.
  /// None: nobody asks for them.
  using Sums = std::function<void(const k::Index& first, const k::Index& limit, const k::Any& sums)>;
  Sums left_sums = {}, right_sums = {};
};

/// How many rows and columns of the result a program has.
struct GemmPart {
  int64_t rows, columns;
};
/// Returns the part that each program has, smaller at the edges of the result.
GemmPart cpu_gemm_part(const CpuGemmShape& shape);
/// Returns the grid of a product: the products, then the parts of one.
k::Grid cpu_gemm_grid(const CpuGemmShape& shape);
/// Appends the product to the trace.
void cpu_gemm(const CpuGemm& product);

// The forms: each returns the part of a program, and appends what a program does with the part that begins at `at`.
GemmPart blocks_part(const CpuGemmShape& shape);
void gemm_by_blocks(const CpuGemm& g, const GemmOrigin& at);
GemmPart panels_part(const CpuGemmShape& shape);
void gemm_by_panels(const CpuGemm& g, const GemmOrigin& at);
GemmPart columns_part(const CpuGemmShape& shape);
void gemm_by_columns(const CpuGemm& g, const GemmOrigin& at);
GemmPart depth_part(const CpuGemmShape& shape);
void gemm_by_depth(const CpuGemm& g, const GemmOrigin& at);

/// Returns how many elements exist from `first` on, where parts of an axis may end behind it; `end` is its length.
inline GemmLimit limit_of(const Dim& extent, int64_t part, const k::Index& end, const k::Index& first) {
  return extent.is_static() && extent.bound() % part == 0 ? GemmLimit() : GemmLimit(end - first);
}

/// Calls f<T>() for the C++ type of the sums.
template <class F>
void with_sums(Dtype sums, const F& f) {
  if (sums == float64) f.template operator()<double>();
  else if (sums == int32) f.template operator()<k::i32>();
  else f.template operator()<float>();
}

}  // namespace weft::kernels
