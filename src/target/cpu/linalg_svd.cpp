// Singular values and vectors by Jacobi's rotations behind a QR decomposition: exact also for small values, and a quarter of the compiling time of division and conquest.
#include <Eigen/SVD>

#include "target/cpu/linalg.h"

namespace weft::target {
namespace {

template <class T> void svd(std::span<void* const> operands, int64_t m, int64_t n, bool vectors) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  const Eigen::Map<const Matrix> a(static_cast<const T*>(operands[0]), m, n);
  const Eigen::JacobiSVD<Matrix> factor(a, vectors ? Eigen::ComputeThinU | Eigen::ComputeThinV : 0);
  Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, 1>>(static_cast<T*>(operands[1]), n) = factor.singularValues();
  if (!vectors) return;
  Eigen::Map<Matrix>(static_cast<T*>(operands[2]), m, n) = factor.matrixU();
  Eigen::Map<Matrix>(static_cast<T*>(operands[3]), n, n) = factor.matrixV();
}

}  // namespace

std::shared_ptr<const LibraryCall> cpu_svd(const kernel::CallDesc& desc) {
  return for_dtype(desc, [&](auto number) {
    return [size = matrix_size(desc), vectors = desc.outputs[1].used || desc.outputs[2].used](std::span<void* const> operands) {
      if (size.rows > 0) svd<decltype(number)>(operands, size.columns, size.rows, vectors);
    };
  });
}

}  // namespace weft::target
