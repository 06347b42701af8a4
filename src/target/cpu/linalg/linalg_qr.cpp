// Orthonormal columns by Householder's reflections.
#include <Eigen/QR>

#include "target/cpu/linalg/linalg.h"

namespace weft::target {
namespace {

template <class T>
void qr(std::span<void* const> operands, int64_t m, int64_t n, int64_t columns) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  const Eigen::HouseholderQR<Matrix> factor(Eigen::Map<const Matrix>(static_cast<const T*>(operands[0]), m, n));
  Eigen::Map<Matrix> q(static_cast<T*>(operands[1]), m, columns);
  q.setIdentity();
  q.applyOnTheLeft(factor.householderQ());
}

}  // namespace

std::shared_ptr<const LibraryCall> cpu_qr(const kernel::CallDesc& desc) {
  return for_dtype(desc, [&](auto number) {
    return [size = matrix_size(desc), whole = desc.integers[0] != 0](std::span<void* const> operands) {
      const int64_t m = size.columns, n = size.rows, columns = whole ? m : n;
      if (columns > 0) qr<decltype(number)>(operands, m, n, columns);
    };
  });
}

}  // namespace weft::target
