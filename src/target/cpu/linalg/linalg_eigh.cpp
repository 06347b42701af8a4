// Eigenvalues and eigenvectors of symmetric and Hermitian matrices.
#include <Eigen/Eigenvalues>

#include "target/cpu/linalg/linalg.h"

namespace weft::target {
namespace {

template <class T>
void eigh(std::span<void* const> operands, int64_t n, bool vectors) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  using Rows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Matrix a = Eigen::Map<const Rows>(static_cast<const T*>(operands[0]), n, n).template triangularView<Eigen::Lower>();
  const Eigen::SelfAdjointEigenSolver<Matrix> factor(a, vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (factor.info() != Eigen::Success) {
    fill_nan<Part<T>>(operands[1], n);
    if (vectors) fill_nan<T>(operands[2], n * n);
    return;
  }
  Eigen::Map<Eigen::Matrix<Part<T>, Eigen::Dynamic, 1>>(static_cast<Part<T>*>(operands[1]), n) = factor.eigenvalues();
  if (vectors) Eigen::Map<Matrix>(static_cast<T*>(operands[2]), n, n) = factor.eigenvectors();
}

}  // namespace

std::shared_ptr<const LibraryCall> cpu_eigh(const kernel::CallDesc& desc) {
  return for_dtype(desc, [&](auto number) {
    return [n = matrix_size(desc).rows, vectors = desc.outputs[1].used](std::span<void* const> operands) {
      if (n > 0) eigh<decltype(number)>(operands, n, vectors);
    };
  });
}

}  // namespace weft::target
