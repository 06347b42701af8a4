// Singular values and vectors, in float64 for both widths: A is multiplied by eigenvectors of AᴴA, which makes its
// columns nearly orthogonal, and Jacobi rotations of pairs of columns do the rest (Drmač & Veselić, New fast and
// accurate Jacobi SVD algorithm, 2008, which precondition with another decomposition). The rotations recover the
// accuracy that squaring A loses.
#include <cmath>
#include <numeric>

#include "target/cpu/linalg/linalg.h"

namespace weft::target {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// Rotates columns p and q of both matrices by one angle. Complex columns have a phase too: that of their product.
/// S: double or a complex number of doubles.
template <class S>
class Rotation {
 public:
  Rotation(double p, double q, S product) {
    const double size = std::abs(product), theta = (q - p) / (2 * size),
                 t = std::copysign(1.0, theta) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
    cosine_ = 1 / std::sqrt(t * t + 1);
    sine_ = t * cosine_ * (product / size);
  }
  void operator()(Dense<S>& m, Index p, Index q) const {
    S *a = m.col(p).data(), *b = m.col(q).data();
    const S conjugate = Eigen::numext::conj(sine_);
    for (Index i = 0; i < m.rows(); ++i) {
      const S x = a[i], y = b[i];
      a[i] = cosine_ * x - conjugate * y, b[i] = sine_ * x + cosine_ * y;
    }
  }

 private:
  double cosine_;
  S sine_;
};

/// Rotates pairs of columns of b, and the same columns of v, until their inner products are below `tolerance` times
/// their lengths. Skips columns that count as zero.
template <class S>
void orthogonalise(Dense<S>& b, Dense<S>& v, double tolerance) {
  VectorXd size = b.colwise().squaredNorm();
  const double zero = std::pow(epsilon * static_cast<double>(b.rows()), 2) * size.maxCoeff();
  constexpr int sweeps = 40;
  bool rotated = true;
  for (int sweep = 0; rotated && sweep < sweeps; ++sweep) {
    rotated = false;
    for (Index p = 0; p < b.cols(); ++p)
      for (Index q = p + 1; q < b.cols(); ++q) {
        if (std::min(size[p], size[q]) <= zero) continue;
        const S product = b.col(p).dot(b.col(q));
        if (std::abs(product) <= tolerance * std::sqrt(size[p] * size[q])) continue;
        const Rotation<S> rotation(size[p], size[q], product);
        rotation(b, p, q);
        rotation(v, p, q);
        size[p] = b.col(p).squaredNorm(), size[q] = b.col(q).squaredNorm();
        rotated = true;
      }
  }
}

/// Fills the columns from `first` on with unit vectors orthogonal to the columns before them.
template <class S>
void complete(Dense<S>& u, Index first) {
  using Vector = Eigen::Matrix<S, Eigen::Dynamic, 1>;
  for (Index axis = 0; first < u.cols() && axis < u.rows(); ++axis) {
    Vector x = Vector::Unit(u.rows(), axis);
    for (int pass = 0; pass < 2; ++pass) x -= u.leftCols(first) * (u.leftCols(first).adjoint() * x);
    if (x.squaredNorm() * 4 * static_cast<double>(u.rows()) < 1) continue;
    u.col(first++) = x.normalized();
  }
}

/// Computes the singular values, descending, and with `vectors` the singular vectors of a column-major m × n matrix.
template <class T>
void svd(std::span<void* const> operands, int64_t m, int64_t n, bool vectors) {
  using S = Wide<T>;
  using R = Part<T>;
  Dense<S> b = Eigen::Map<const Dense<T>>(static_cast<const T*>(operands[0]), m, n).template cast<S>();
  const double largest = b.cwiseAbs().maxCoeff(), scale = largest > 0 ? largest : 1;
  b /= scale;
  const Eigenpairs<S> pairs = eigenpairs<S>(b.adjoint() * b, true);
  if (!pairs.found) {  // an element is not finite
    fill_nan<R>(operands[1], n);
    if (vectors) fill_nan<T>(operands[2], m * n), fill_nan<T>(operands[3], n * n);
    return;
  }
  Dense<S> v = pairs.vectors.rowwise().reverse();
  b *= v;
  orthogonalise(b, v, sizeof(R) == sizeof(float) ? 1e-9 : epsilon * std::sqrt(static_cast<double>(m)));
  const VectorXd s = b.colwise().norm();
  std::vector<Index> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](Index i, Index j) { return s[i] > s[j]; });
  auto* values = static_cast<R*>(operands[1]);
  for (const Index k : order) *values++ = static_cast<R>(s[k] * scale);
  if (!vectors) return;
  Dense<S> u(m, n);
  Index known = 0;
  for (; known < n && s[order[static_cast<size_t>(known)]] > epsilon * static_cast<double>(m) * s.maxCoeff(); ++known) {
    const Index k = order[static_cast<size_t>(known)];
    u.col(known) = b.col(k) / s[k];
  }
  complete(u, known);
  Eigen::Map<Dense<T>>(static_cast<T*>(operands[2]), m, n) = u.template cast<T>();
  auto* right = static_cast<T*>(operands[3]);
  for (const Index k : order)
    for (Index i = 0; i < n; ++i) *right++ = static_cast<T>(Eigen::numext::conj(v(i, k)));
}

}  // namespace

std::shared_ptr<const LibraryCall> cpu_svd(const kernel::CallDesc& desc) {
  return for_dtype(desc, [&](auto number) {
    return [size = matrix_size(desc),
            vectors = desc.outputs[1].used || desc.outputs[2].used](std::span<void* const> operands) {
      if (size.rows > 0) svd<decltype(number)>(operands, size.columns, size.rows, vectors);
    };
  });
}

}  // namespace weft::target
