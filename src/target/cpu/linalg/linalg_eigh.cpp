// Eigenvalues and eigenvectors of symmetric and Hermitian matrices, in float64 for both widths.
#include <Eigen/Eigenvalues>

#include "target/cpu/linalg/linalg.h"

namespace weft::target {

template <class S>
Eigenpairs<S> eigenpairs(const Dense<S>& a, bool vectors) {
  const Eigen::SelfAdjointEigenSolver<Dense<S>> solver(a,
                                                       vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return {false, {}, {}};
  return {true, solver.eigenvalues(), vectors ? solver.eigenvectors() : Dense<S>()};
}
template Eigenpairs<double> eigenpairs(const Dense<double>&, bool);
template Eigenpairs<std::complex<double>> eigenpairs(const Dense<std::complex<double>>&, bool);

namespace {

template <class T>
void eigh(std::span<void* const> operands, int64_t n, bool vectors) {
  using Rows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Rows> a(static_cast<const T*>(operands[0]), n, n);
  const Eigenpairs<Wide<T>> pairs = eigenpairs<Wide<T>>(a.template cast<Wide<T>>(), vectors);
  if (!pairs.found) {
    fill_nan<Part<T>>(operands[1], n);
    if (vectors) fill_nan<T>(operands[2], n * n);
    return;
  }
  auto* values = static_cast<Part<T>*>(operands[1]);
  std::transform(pairs.values.begin(), pairs.values.end(), values, [](double w) { return static_cast<Part<T>>(w); });
  if (vectors) Eigen::Map<Dense<T>>(static_cast<T*>(operands[2]), n, n) = pairs.vectors.template cast<T>();
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
