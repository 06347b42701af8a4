// LU factors with row exchanges, of matrices of any shape. Eigen's class is for square matrices, but the function it
// calls also takes tall ones.
#include <Eigen/LU>
#include <numeric>

#include "target/cpu/linalg/linalg.h"

namespace weft::target {
namespace {

/// Factors one column-major m × n matrix: L and U in one array, the row permutation, and the pivots from 1.
template <class T>
void lu(std::span<void* const> operands, int64_t m, int64_t n) {
  T* a = static_cast<T*>(operands[1]);
  std::copy_n(static_cast<const T*>(operands[0]), m * n, a);
  auto* rows = static_cast<uint32_t*>(operands[2]);
  auto* pivots = static_cast<uint32_t*>(operands[3]);
  const int64_t k = std::min(m, n);
  std::iota(rows, rows + m, 0u);
  if (k == 0) return;
  std::vector<int> exchanged(static_cast<size_t>(k));
  int count = 0;
  Eigen::internal::partial_lu_impl<T, Eigen::ColMajor, int>::blocked_lu(m, k, a, m, exchanged.data(), count);
  for (int64_t i = 0; i < k; ++i) {
    const int with = exchanged[static_cast<size_t>(i)];
    pivots[i] = static_cast<uint32_t>(with) + 1;
    std::swap(rows[i], rows[with]);
  }
  if (n == k) return;
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;  // columns right of the square part: U₂ = L⁻¹ A₂
  Eigen::Map<Matrix> beside(a + m * k, m, n - k);
  for (int64_t i = 0; i < k; ++i) beside.row(i).swap(beside.row(exchanged[static_cast<size_t>(i)]));
  Eigen::Map<const Matrix>(a, m, k).template triangularView<Eigen::UnitLower>().solveInPlace(beside);
}

}  // namespace

std::shared_ptr<const LibraryCall> cpu_lu(const kernel::CallDesc& desc) {
  return for_dtype(desc, [&](auto number) {
    return [size = matrix_size(desc)](std::span<void* const> operands) {
      lu<decltype(number)>(operands, size.columns, size.rows);
    };
  });
}

}  // namespace weft::target
