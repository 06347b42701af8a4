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

Matrix adjoint_of(const Matrix& a) {
  Matrix out = transposed(a);
  for (Complex& z : out.data) z = std::conj(z);
  return out;
}

Matrix matrix_of(const HostTensor& t, int64_t k) {
  const Shape& shape = t.type.shape;
  Matrix out(shape[shape.size() - 2].bound(), shape.back().bound());
  const size_t parts = is_complex(t.type.dtype) ? 2 : 1;
  for (size_t i = 0; i < out.data.size(); ++i) {
    const Number* number = &t.data[(static_cast<size_t>(k) * out.data.size() + i) * parts];
    out.data[i] = {number[0].real(), parts == 2 ? number[1].real() : 0.0};
  }
  return out;
}

int64_t count_of(const HostTensor& t) {
  int64_t count = 1;
  for (size_t k = 0; k + 2 < t.type.shape.size(); ++k) count *= t.type.shape[k].bound();
  return count;
}

void append(HostTensor& t, std::span<const Complex> numbers) {
  const Dtype part = real_of(t.type.dtype);
  const auto put = [&](double v) {
    t.data.push_back(
        kernel::round_to(is_float(part) ? Number::of_real(v) : Number::of_int(static_cast<int64_t>(v)), part));
  };
  for (const Complex& z : numbers) {
    put(z.real());
    if (is_complex(t.type.dtype)) put(z.imag());
  }
}

bool factor_cholesky(Matrix& a) {
  for (int64_t j = 0; j < a.rows; ++j) {
    double d = a(j, j).real();
    for (int64_t k = 0; k < j; ++k) d -= std::norm(a(j, k));
    if (!(d > 0)) return false;
    a(j, j) = std::sqrt(d);
    for (int64_t i = j + 1; i < a.rows; ++i) {
      for (int64_t k = 0; k < j; ++k) a(i, j) -= a(i, k) * std::conj(a(j, k));
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
      if (std::abs(a(i, k)) > std::abs(a(pivot, k))) pivot = i;
    pivots.push_back(pivot);
    if (pivot != k) {
      for (int64_t j = 0; j < a.columns; ++j) std::swap(a(k, j), a(pivot, j));
      std::swap(rows[static_cast<size_t>(k)], rows[static_cast<size_t>(pivot)]);
    }
    if (a(k, k) == 0.0) continue;
    for (int64_t i = k + 1; i < a.rows; ++i) {
      a(i, k) /= a(k, k);
      for (int64_t j = k + 1; j < a.columns; ++j) a(i, j) -= a(i, k) * a(k, j);
    }
  }
}

namespace {

/// I - tau v vᴴ.
struct Reflection {
  std::vector<Complex> v;
  Complex tau;
};

/// Returns the reflection that maps column k of a, from the diagonal on, to a real multiple of the first unit vector.
Reflection reflection_of(const Matrix& a, int64_t k) {
  Reflection out{std::vector<Complex>(static_cast<size_t>(a.rows)), 0};
  const Complex first = a(k, k);
  double tail = 0;
  for (int64_t i = k + 1; i < a.rows; ++i) tail += std::norm(a(i, k));
  if (tail > 0 || first.imag() != 0) {
    const double beta = std::copysign(std::sqrt(std::norm(first) + tail), -first.real());
    out.tau = std::conj((beta - first) / beta);
    for (int64_t i = k + 1; i < a.rows; ++i) out.v[static_cast<size_t>(i)] = a(i, k) / (first - beta);
  }
  out.v[static_cast<size_t>(k)] = 1;
  return out;
}

void reflect(const Reflection& r, Complex tau, Matrix& m) {
  for (int64_t j = 0; j < m.columns; ++j) {
    Complex dot = 0;
    for (int64_t i = 0; i < m.rows; ++i) dot += std::conj(r.v[static_cast<size_t>(i)]) * m(i, j);
    for (int64_t i = 0; i < m.rows; ++i) m(i, j) -= tau * dot * r.v[static_cast<size_t>(i)];
  }
}

}  // namespace

Matrix reflections(Matrix a, int64_t count) {
  std::vector<Reflection> all;
  for (int64_t k = 0; k < a.columns; ++k) {
    all.push_back(reflection_of(a, k));
    reflect(all.back(), all.back().tau, a);
  }
  Matrix q(a.rows, count);
  for (int64_t j = 0; j < count; ++j) q(j, j) = 1;
  for (size_t k = all.size(); k-- > 0;) reflect(all[k], std::conj(all[k].tau), q);
  return q;
}

namespace {

/// The rotation of two columns that diagonalises [[a, c], [c*, b]].
struct Turn {
  double cosine = 1;
  Complex sine = 0;
};

Turn turn_of(double a, double b, Complex c) {
  const double size = std::abs(c);
  if (size == 0) return {};
  const double theta = (b - a) / (2 * size),
               t = std::copysign(1.0, theta) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
  const double cosine = 1 / std::sqrt(t * t + 1);
  return {cosine, t * cosine * (c / size)};
}

void rotate(Matrix& a, int64_t p, int64_t q, const Turn& turn) {
  for (int64_t i = 0; i < a.rows; ++i) {
    const Complex x = a(i, p), y = a(i, q);
    a(i, p) = turn.cosine * x - std::conj(turn.sine) * y, a(i, q) = turn.sine * x + turn.cosine * y;
  }
}

/// Permutes the columns.
Matrix columns_of(const Matrix& a, const std::vector<int64_t>& order) {
  Matrix out(a.rows, static_cast<int64_t>(order.size()));
  for (int64_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j < order.size(); ++j) out(i, static_cast<int64_t>(j)) = a(i, order[j]);
  return out;
}

/// Returns the order of numbers by real, then by imaginary parts.
std::vector<int64_t> ascending(const std::vector<Complex>& w) {
  std::vector<int64_t> order(w.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const Complex x = w[static_cast<size_t>(a)], y = w[static_cast<size_t>(b)];
    return x.real() != y.real() ? x.real() < y.real() : x.imag() < y.imag();
  });
  return order;
}

std::vector<Complex> in_order(const std::vector<Complex>& v, const std::vector<int64_t>& order) {
  std::vector<Complex> out;
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

Matrix rotate_hermitian(Matrix a, std::vector<Complex>& w) {
  const int64_t n = a.rows;
  Matrix v = identity(n);
  for (int sweep = 0; sweep < sweeps; ++sweep)
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        const Turn turn = turn_of(a(p, p).real(), a(q, q).real(), a(p, q));
        if (turn.sine == 0.0) continue;
        rotate(a, p, q, turn);
        a = adjoint_of(a);
        rotate(a, p, q, turn);
        rotate(v, p, q, turn);
      }
  for (int64_t k = 0; k < n; ++k) w.push_back(a(k, k).real());
  const std::vector<int64_t> order = ascending(w);
  w = in_order(w, order);
  return columns_of(v, order);
}

Matrix rotate_columns(Matrix& a, std::vector<Complex>& s) {
  const int64_t n = a.columns;
  Matrix v = identity(n);
  const auto dot = [&](int64_t p, int64_t q) {
    Complex total = 0;
    for (int64_t i = 0; i < a.rows; ++i) total += std::conj(a(i, p)) * a(i, q);
    return total;
  };
  for (int sweep = 0; sweep < sweeps; ++sweep)
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        const Turn turn = turn_of(dot(p, p).real(), dot(q, q).real(), dot(p, q));
        rotate(a, p, q, turn);
        rotate(v, p, q, turn);
      }
  for (int64_t k = 0; k < n; ++k) s.push_back(std::sqrt(dot(k, k).real()));
  for (int64_t k = 0; k < n; ++k)
    for (int64_t i = 0; i < a.rows; ++i) a(i, k) /= s[static_cast<size_t>(k)];
  std::vector<int64_t> order = ascending(s);
  std::reverse(order.begin(), order.end());
  s = in_order(s, order);
  a = columns_of(a, order);
  return columns_of(v, order);
}

namespace {

/// One step t - shift = QR, t := RQ + shift on the leading `size` rows and columns, by rotations of neighbouring rows,
/// from the bottom of each column up; `z` collects them.
void qr_step(Matrix& t, Matrix& z, int64_t size, Complex shift) {
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
    for (Matrix* m : {&t, &z})
      for (int64_t k = 0; k < n; ++k) {
        Complex &a = (*m)(k, givens.p), &b = (*m)(k, givens.q);
        const Complex first = a * givens.c + b * givens.s, second = -a * std::conj(givens.s) + b * std::conj(givens.c);
        a = first, b = second;
      }
  for (int64_t k = 0; k < size; ++k) t(k, k) += shift;
}

/// Returns the eigenvalue of the last two rows and columns of the leading `size` that is nearest to the last element.
Complex wilkinson_shift(const Matrix& t, int64_t size) {
  const Complex a = t(size - 2, size - 2), b = t(size - 2, size - 1), c = t(size - 1, size - 2),
                d = t(size - 1, size - 1);
  const Complex middle = (a + d) / 2.0, root = std::sqrt((a - d) * (a - d) / 4.0 + b * c);
  return std::abs(middle + root - d) < std::abs(middle - root - d) ? middle + root : middle - root;
}

}  // namespace

Matrix schur_vectors(const Matrix& a, std::vector<Complex>& w) {
  const int64_t n = a.rows;
  Matrix t(n, n), z(n, n);
  double scale = 0;
  for (size_t k = 0; k < t.data.size(); ++k) t.data[k] = a.data[k], scale = std::max(scale, std::abs(a.data[k]));
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
  Matrix v(n, n);
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
  const std::vector<int64_t> order = ascending(w);
  w = in_order(w, order);
  return columns_of(v, order);
}

}  // namespace weft::graph::linalg
