// Eigenvalues and eigenvectors of general real matrices, in ascending order.
#include <Eigen/Eigenvalues>
#include <numeric>

#include "target/cpu/linalg.h"

namespace weft::target {
namespace {

template <class T> void eig(std::span<void* const> operands, int64_t n, bool vectors) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  const Eigen::Map<const Matrix> a(static_cast<const T*>(operands[0]), n, n);
  const Eigen::EigenSolver<Matrix> factor(a, vectors);
  if (factor.info() != Eigen::Success) {
    fill_nan<T>(operands[1], 2 * n);
    fill_nan<T>(operands[2], 2 * n * n);
    return;
  }
  const auto& w = factor.eigenvalues();
  std::vector<Eigen::Index> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](Eigen::Index i, Eigen::Index j) { return w[i].real() != w[j].real() ? w[i].real() < w[j].real() : w[i].imag() < w[j].imag(); });
  auto* values = static_cast<std::complex<T>*>(operands[1]);
  for (const Eigen::Index k : order) *values++ = w[k];
  if (!vectors) return;
  Eigen::Map<Eigen::Matrix<std::complex<T>, Eigen::Dynamic, Eigen::Dynamic>> out(static_cast<std::complex<T>*>(operands[2]), n, n);
  const auto v = factor.eigenvectors();
  for (int64_t k = 0; k < n; ++k) out.col(k) = v.col(order[static_cast<size_t>(k)]);
}

}  // namespace

std::shared_ptr<const LibraryCall> cpu_eig(const kernel::CallDesc& desc) {
  return for_dtype(desc, [&](auto number) {
    return [n = matrix_size(desc).rows, vectors = desc.outputs[1].used](std::span<void* const> operands) {
      if (n > 0) eig<decltype(number)>(operands, n, vectors);
    };
  });
}

}  // namespace weft::target
