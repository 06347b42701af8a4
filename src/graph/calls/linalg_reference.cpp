// Dense decompositions of small matrices in float64.
#include "graph/calls/linalg_reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weft::graph::linalg {

Matrix transposed(const Matrix& a) {
  Matrix out(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.columns; ++j) out(j, i) = a(i, j);
  return out;
}

Matrix matrix_of(const HostTensor& t, int64_t k) {
  const Shape& shape = t.type.shape;
  Matrix out(shape[shape.size() - 2].bound(), shape.back().bound());
  for (size_t i = 0; i < out.data.size(); ++i)
    out.data[i] = t.data[static_cast<size_t>(k) * out.data.size() + i].real();
  return out;
}

int64_t count_of(const HostTensor& t) {
  int64_t count = 1;
  for (size_t k = 0; k + 2 < t.type.shape.size(); ++k) count *= t.type.shape[k].bound();
  return count;
}

void append(HostTensor& t, std::span<const double> numbers) {
  for (const double v : numbers)
    t.data.push_back(kernel::round_to(
        is_float(t.type.dtype) ? Number::of_real(v) : Number::of_int(static_cast<int64_t>(v)), t.type.dtype));
}

bool factor_cholesky(Matrix& a) {
  for (int64_t j = 0; j < a.rows; ++j) {
    for (int64_t k = 0; k < j; ++k) a(j, j) -= a(j, k) * a(j, k);
    if (!(a(j, j) > 0)) return false;
    a(j, j) = std::sqrt(a(j, j));
    for (int64_t i = j + 1; i < a.rows; ++i) {
      for (int64_t k = 0; k < j; ++k) a(i, j) -= a(i, k) * a(j, k);
      a(i, j) /= a(j, j);
    }
  }
  return true;
}

void solve_in_place(const Matrix& t, Matrix& b, bool upper) {
  const int64_t n = t.rows;
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = upper ? n - 1 - step : step;
    for (int64_t c = 0; c < b.columns; ++c) {
      for (int64_t j = upper ? i + 1 : 0; j < (upper ? n : i); ++j) b(i, c) -= t(i, j) * b(j, c);
      b(i, c) /= t(i, i);
    }
  }
}

void factor_lu(Matrix& a, std::vector<int64_t>& rows, std::vector<int64_t>& pivots) {
  rows.resize(static_cast<size_t>(a.rows));
  std::iota(rows.begin(), rows.end(), 0);
  for (int64_t k = 0; k < std::min(a.rows, a.columns); ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < a.rows; ++i)
      if (std::fabs(a(i, k)) > std::fabs(a(pivot, k))) pivot = i;
    pivots.push_back(pivot);
    if (pivot != k) {
      for (int64_t j = 0; j < a.columns; ++j) std::swap(a(k, j), a(pivot, j));
      std::swap(rows[static_cast<size_t>(k)], rows[static_cast<size_t>(pivot)]);
    }
    if (a(k, k) == 0) continue;
    for (int64_t i = k + 1; i < a.rows; ++i) {
      a(i, k) /= a(k, k);
      for (int64_t j = k + 1; j < a.columns; ++j) a(i, j) -= a(i, k) * a(k, j);
    }
  }
}

Matrix reflections(Matrix a, int64_t count) {
  const int64_t m = a.rows, n = a.columns;
  std::vector<std::vector<double>> vectors;  // v of I - tau v vᵀ
  std::vector<double> taus;
  for (int64_t k = 0; k < n; ++k) {
    std::vector<double> v(static_cast<size_t>(m), 0.0);
    double tail = 0;
    for (int64_t i = k + 1; i < m; ++i) tail += a(i, k) * a(i, k);
    double tau = 0;
    if (tail > 0) {
      const double beta = std::copysign(std::sqrt(a(k, k) * a(k, k) + tail), -a(k, k));
      tau = (beta - a(k, k)) / beta;
      for (int64_t i = k + 1; i < m; ++i) v[static_cast<size_t>(i)] = a(i, k) / (a(k, k) - beta);
    }
    v[static_cast<size_t>(k)] = 1;
    for (int64_t j = k; j < n; ++j) {
      double dot = 0;
      for (int64_t i = k; i < m; ++i) dot += v[static_cast<size_t>(i)] * a(i, j);
      for (int64_t i = k; i < m; ++i) a(i, j) -= tau * dot * v[static_cast<size_t>(i)];
    }
    vectors.push_back(v), taus.push_back(tau);
  }
  Matrix q(m, count);
  for (int64_t j = 0; j < count; ++j) q(j, j) = 1;
  for (int64_t k = n; k-- > 0;)
    for (int64_t j = 0; j < count; ++j) {
      const std::vector<double>& v = vectors[static_cast<size_t>(k)];
      double dot = 0;
      for (int64_t i = 0; i < m; ++i) dot += v[static_cast<size_t>(i)] * q(i, j);
      for (int64_t i = 0; i < m; ++i) q(i, j) -= taus[static_cast<size_t>(k)] * dot * v[static_cast<size_t>(i)];
    }
  return q;
}

namespace {

/// Returns cos and sin of the rotation that diagonalises [[a, c], [c, b]].
std::pair<double, double> rotation(double a, double b, double c) {
  if (c == 0) return {1, 0};
  const double theta = (b - a) / (2 * c),
               t = std::copysign(1.0, theta) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
  const double cosine = 1 / std::sqrt(t * t + 1);
  return {cosine, t * cosine};
}

void rotate(Matrix& a, int64_t p, int64_t q, double c, double s) {
  for (int64_t i = 0; i < a.rows; ++i) {
    const double x = a(i, p), y = a(i, q);
    a(i, p) = c * x - s * y, a(i, q) = s * x + c * y;
  }
}

/// Permutes the columns.
template <class T>
Dense<T> columns_of(const Dense<T>& a, const std::vector<int64_t>& order) {
  Dense<T> out(a.rows, static_cast<int64_t>(order.size()));
  for (int64_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j < order.size(); ++j) out(i, static_cast<int64_t>(j)) = a(i, order[j]);
  return out;
}

template <class Before>
std::vector<int64_t> ordered(size_t count, Before before) {
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return before(static_cast<size_t>(a), static_cast<size_t>(b)); });
  return order;
}

template <class T>
std::vector<T> in_order(const std::vector<T>& v, const std::vector<int64_t>& order) {
  std::vector<T> out;
  for (const int64_t k : order) out.push_back(v[static_cast<size_t>(k)]);
  return out;
}

constexpr int sweeps = 60;

Matrix identity(int64_t n) {
  Matrix out(n, n);
  for (int64_t k = 0; k < n; ++k) out(k, k) = 1;
  return out;
}

}  // namespace

Matrix rotate_symmetric(Matrix a, std::vector<double>& w) {
  const int64_t n = a.rows;
  Matrix v = identity(n);
  for (int sweep = 0; sweep < sweeps; ++sweep)
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        const auto [c, s] = rotation(a(p, p), a(q, q), a(p, q));
        if (s == 0) continue;
        rotate(a, p, q, c, s);
        a = transposed(a);
        rotate(a, p, q, c, s);
        rotate(v, p, q, c, s);
      }
  for (int64_t k = 0; k < n; ++k) w.push_back(a(k, k));
  const std::vector<int64_t> order = ordered(w.size(), [&](size_t i, size_t j) { return w[i] < w[j]; });
  w = in_order(w, order);
  return columns_of(v, order);
}

Matrix rotate_columns(Matrix& a, std::vector<double>& s) {
  const int64_t n = a.columns;
  Matrix v = identity(n);
  const auto dot = [&](int64_t p, int64_t q) {
    double total = 0;
    for (int64_t i = 0; i < a.rows; ++i) total += a(i, p) * a(i, q);
    return total;
  };
  for (int sweep = 0; sweep < sweeps; ++sweep)
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        const auto [c, t] = rotation(dot(p, p), dot(q, q), dot(p, q));
        rotate(a, p, q, c, t);
        rotate(v, p, q, c, t);
      }
  for (int64_t k = 0; k < n; ++k) s.push_back(std::sqrt(dot(k, k)));
  for (int64_t k = 0; k < n; ++k)
    for (int64_t i = 0; i < a.rows; ++i) a(i, k) /= s[static_cast<size_t>(k)];
  const std::vector<int64_t> order = ordered(s.size(), [&](size_t i, size_t j) { return s[i] > s[j]; });
  s = in_order(s, order);
  a = columns_of(a, order);
  return columns_of(v, order);
}

namespace {

using Complex = std::complex<double>;

/// One step t - shift = QR, t := RQ + shift on the leading `size` rows and columns, by rotations of neighbouring rows,
/// from the bottom of each column up; `z` collects them.
void qr_step(ComplexMatrix& t, ComplexMatrix& z, int64_t size, Complex shift) {
  const int64_t n = t.rows;
  struct Givens {
    int64_t p, q;
    Complex c, s;
  };
  std::vector<Givens> rotations;
  for (int64_t k = 0; k < size; ++k) t(k, k) -= shift;
  for (int64_t j = 0; j < size; ++j)
    for (int64_t i = size - 1; i > j; --i) {
      const Complex x = t(i - 1, j), y = t(i, j);
      const double length = std::sqrt(std::norm(x) + std::norm(y));
      if (length == 0 || y == 0.0) continue;
      const Givens givens{i - 1, i, x / length, y / length};
      for (int64_t k = 0; k < n; ++k) {
        const Complex a = t(givens.p, k), b = t(givens.q, k);
        t(givens.p, k) = std::conj(givens.c) * a + std::conj(givens.s) * b;
        t(givens.q, k) = -givens.s * a + givens.c * b;
      }
      rotations.push_back(givens);
    }
  for (const Givens& givens : rotations)
    for (ComplexMatrix* m : {&t, &z})
      for (int64_t k = 0; k < n; ++k) {
        Complex &a = (*m)(k, givens.p), &b = (*m)(k, givens.q);
        const Complex first = a * givens.c + b * givens.s, second = -a * std::conj(givens.s) + b * std::conj(givens.c);
        a = first, b = second;
      }
  for (int64_t k = 0; k < size; ++k) t(k, k) += shift;
}

/// Returns the eigenvalue of the last two rows and columns of the leading `size` that is nearest to the last element.
Complex wilkinson_shift(const ComplexMatrix& t, int64_t size) {
  const Complex a = t(size - 2, size - 2), b = t(size - 2, size - 1), c = t(size - 1, size - 2),
                d = t(size - 1, size - 1);
  const Complex middle = (a + d) / 2.0, root = std::sqrt((a - d) * (a - d) / 4.0 + b * c);
  return std::abs(middle + root - d) < std::abs(middle - root - d) ? middle + root : middle - root;
}

}  // namespace

ComplexMatrix schur_vectors(const Matrix& a, std::vector<Complex>& w) {
  const int64_t n = a.rows;
  ComplexMatrix t(n, n), z(n, n);
  double scale = 0;
  for (size_t k = 0; k < t.data.size(); ++k) t.data[k] = a.data[k], scale = std::max(scale, std::fabs(a.data[k]));
  for (int64_t k = 0; k < n; ++k) z(k, k) = 1;
  for (int64_t size = n, tries = 0; size > 1 && tries < 300 * n; ++tries) {
    double left = 0;
    for (int64_t k = 0; k + 1 < size; ++k) left = std::max(left, std::abs(t(size - 1, k)));
    if (left <= 1e-16 * scale) {
      for (int64_t k = 0; k + 1 < size; ++k) t(size - 1, k) = 0;
      --size;
      continue;
    }
    const Complex kick = tries % 11 == 10 ? Complex(scale / 3, scale / 7) : 0.0;  // breaks cycles
    qr_step(t, z, size, wilkinson_shift(t, size) + kick);
  }
  ComplexMatrix v(n, n);
  for (int64_t k = 0; k < n; ++k) {  // (T - w_k) y = 0 backwards from y_k = 1, and back through z
    std::vector<Complex> y(static_cast<size_t>(n), 0.0);
    y[static_cast<size_t>(k)] = 1;
    for (int64_t i = k; i-- > 0;) {
      Complex total = 0;
      for (int64_t j = i + 1; j <= k; ++j) total -= t(i, j) * y[static_cast<size_t>(j)];
      const Complex gap = t(i, i) - t(k, k);
      y[static_cast<size_t>(i)] = total / (std::abs(gap) > 1e-300 ? gap : Complex(1e-16 * scale));
    }
    double length = 0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j <= k; ++j) v(i, k) += z(i, j) * y[static_cast<size_t>(j)];
      length += std::norm(v(i, k));
    }
    for (int64_t i = 0; i < n; ++i) v(i, k) /= std::sqrt(length);
    w.push_back(t(k, k));
  }
  const std::vector<int64_t> order = ordered(w.size(), [&](size_t i, size_t j) {
    return w[i].real() != w[j].real() ? w[i].real() < w[j].real() : w[i].imag() < w[j].imag();
  });
  w = in_order(w, order);
  return columns_of(v, order);
}

}  // namespace weft::graph::linalg
