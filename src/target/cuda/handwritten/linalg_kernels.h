#pragma once
// Small kernels beside cuSOLVER's and cuBLAS's routines on batches of matrices: the host side of linalg.cu.
#include <memory>
#include <span>

#include "target/cuda/handwritten/loaded.h"

namespace weft::target::cuda {

class LinalgKernels {
 public:
  /// Matrices that lie `bytes` from one to the next.
  struct Matrices {
    void* first = nullptr;
    size_t bytes = 0;
  };

  LinalgKernels(Context& context, CompileSource compile);
  /// Fills matrix k of each of up to three results with NaN where one of the `words` numbers info[k·words …] is not 0.
  void poison(const int* info, int words, int64_t count, std::span<const Matrices> results) const;
  /// Writes table[i·count + k]: the address of matrix k of the i-th of up to three.
  void addresses(void* table, int64_t count, std::span<const Matrices> of) const;
  /// Writes rows[k·m …]: the indices of m rows after rows 0, 1 … were exchanged with rows pivots[k·pivoted …] - 1, one
  /// after the other.
  void exchanged_rows(const int* pivots, int pivoted, uint32_t* rows, int m, int64_t count) const;
  /// Copies what lies above the diagonals of `count` matrices n × n, row by row, of float32 or float64.
  void upper_parts(bool doubles, const void* from, void* to, int n, int64_t count) const;
  /// Writes the first `columns` columns of Q = H₀H₁…, Hᵢ = 1 - tauᵢ vᵢvᵢᵀ, where vᵢ is 0 above row i, 1 there, and
  /// column i of the matrix below. Matrices of m rows and n reflections, column by column, of float32 or float64.
  void columns_of_q(bool doubles, const void* reflections, const void* tau, void* q, int m, int n, int columns,
                    int64_t count) const;

 private:
  enum Which { nan, table, rows, upper, q_floats, q_doubles };
  void launch(Which which, int64_t blocks, int threads, size_t shared_bytes, void** arguments) const;
  LoadedKernel kernels_;
};

}  // namespace weft::target::cuda
