// Eigenvalues and eigenvectors of general matrices, in ascending order.
#include <Eigen/Eigenvalues>
#include <numeric>

#include "target/cpu/linalg/linalg.h"

namespace weft::target {
namespace {

/// Computes in float64 for both widths: eigenvectors of nearly equal eigenvalues need it, and the solver is compiled
/// only once for real and once for complex matrices.
template <class T>
void eig(std::span<void* const> operands, int64_t n, bool vectors) {
  using Matrix = Eigen::Matrix<Wide<T>, Eigen::Dynamic, Eigen::Dynamic>;
  using Solver =
      std::conditional_t<std::is_same_v<T, Part<T>>, Eigen::EigenSolver<Matrix>, Eigen::ComplexEigenSolver<Matrix>>;
  using To = std::complex<Part<T>>;
  const Solver factor(
      Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>>(static_cast<const T*>(operands[0]), n, n)
          .template cast<Wide<T>>(),
      vectors);
  if (factor.info() != Eigen::Success) {
    fill_nan<To>(operands[1], n);
    fill_nan<To>(operands[2], n * n);
    return;
  }
  const auto& w = factor.eigenvalues();
  std::vector<Eigen::Index> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](Eigen::Index i, Eigen::Index j) {
    return w[i].real() != w[j].real() ? w[i].real() < w[j].real() : w[i].imag() < w[j].imag();
  });
  auto* to = static_cast<To*>(operands[1]);
  for (const Eigen::Index k : order) *to++ = To(w[k]);
  if (!vectors) return;
  const Eigen::MatrixXcd v = factor.eigenvectors();
  to = static_cast<To*>(operands[2]);
  for (const Eigen::Index k : order)
    for (Eigen::Index i = 0; i < n; ++i) *to++ = To(v(i, k));
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
