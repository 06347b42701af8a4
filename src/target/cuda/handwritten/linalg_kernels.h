#pragma once
// Small kernels that complete cuSOLVER's and cuBLAS's routines on batches of matrices: the host side of linalg.cu.
#include <memory>
#include <span>

#include "target/cuda/handwritten/loaded.h"
#include "weft/dtype.h"

namespace weft::target::cuda {

class LinalgKernels {
 public:
  /// Matrices at a distance of `bytes` from each other.
  struct Matrices {
    void* first = nullptr;
    size_t bytes = 0;
  };

  LinalgKernels(Context& context, CompileSource compile);
  /// Fills matrix k of each of up to three results with NaN if any of the `words` integers from info[k·words] on is not
  /// 0.
  void poison(const int* info, int words, int64_t count, std::span<const Matrices> results) const;
  /// Writes table[i·count + k]: the address of matrix k of the i-th of up to three operands.
  void addresses(void* table, int64_t count, std::span<const Matrices> of) const;
  /// Writes rows[k·m …]: the row indices 0, 1 … m - 1 after exchanging i with pivots[k·pivoted + i] - 1, for each i in
  /// turn.
  void exchanged_rows(const int* pivots, int pivoted, uint32_t* rows, int m, int64_t count) const;
  /// Copies the part above the diagonal of `count` row-major n × n matrices.
  void upper_parts(Dtype element, const void* from, void* to, int n, int64_t count) const;
  /// Conjugates `count` numbers in place; does nothing to real ones.
  void conjugate(Dtype element, void* numbers, int64_t count) const;
  /// Writes the first `columns` columns of Q = H₀H₁…, Hᵢ = 1 - tauᵢ vᵢvᵢᴴ. vᵢ is 0 above row i, 1 at row i, and column
  /// i of the matrix below. Matrices are column-major, with m rows and n reflections, of float32, float64, complex64 or
  /// complex128.
  void columns_of_q(Dtype element, const void* reflections, const void* tau, void* q, int m, int n, int columns,
                    int64_t count) const;

 private:
  enum Which { nan, table, rows, upper, conjugates, q_floats, q_doubles, q_complex_floats, q_complex_doubles };
  void launch(Which which, int64_t blocks, int threads, size_t shared_bytes, void** arguments) const;
  LoadedKernel kernels_;
};

}  // namespace weft::target::cuda
