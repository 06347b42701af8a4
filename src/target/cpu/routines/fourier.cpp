#include "target/cpu/routines/fourier.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

// The loops below are compiled for several vector widths, and the widest that the processor has runs. All of them give
// the same bits: they have no reductions, and products and sums are not contracted.
// Clang has no such templates.
#if defined(__x86_64__) && defined(__ELF__) && !defined(__clang__)
#define WEFT_VECTOR_WIDTHS [[gnu::target_clones("avx512f", "avx2", "default")]]
#else
#define WEFT_VECTOR_WIDTHS
#endif
// The loop behind it reads nothing that it writes.
#ifdef __clang__
#define WEFT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define WEFT_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace weft::target {
namespace {

constexpr int largest_factor = 13;
constexpr std::array<int, 7> factors{4, 2, 3, 5, 7, 11, largest_factor};  // in the order of their passes

/// Multiplies two numbers.
template <class T>
constexpr Root<T> times(Root<T> a, Root<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/// A pass of Stockham's algorithm with the factor p: `groups` groups of p numbers, each number `count` times side by
/// side. Result t of group i is multiplied by roots[i·t·step].
template <class T>
struct Pass {
  Planes<T> from, to;
  int64_t groups, count, step;
  const Root<T>* roots;
  Root<T> root(int64_t i, int64_t t) const { return roots[i * t * step]; }
};

/// Computes out_t = w_t Σ_r in_r (-1)^(rt) in every group.
template <class T>
WEFT_VECTOR_WIDTHS void pass_of_2(const Pass<T>& pass) {
  const int64_t n = pass.count, apart = n * pass.groups;
  for (int64_t i = 0; i < pass.groups; ++i) {
    const T *const re = pass.from.re + i * n, *const im = pass.from.im + i * n;
    T *const r0 = pass.to.re + 2 * i * n, *const i0 = pass.to.im + 2 * i * n;
    T *const r1 = r0 + n, *const i1 = i0 + n;
    const Root<T> w = pass.root(i, 1);
    WEFT_INDEPENDENT
    for (int64_t q = 0; q < n; ++q) {
      const T ur = re[q] - re[q + apart], ui = im[q] - im[q + apart];
      r0[q] = re[q] + re[q + apart], i0[q] = im[q] + im[q + apart];
      r1[q] = ur * w.re - ui * w.im, i1[q] = ur * w.im + ui * w.re;
    }
  }
}

/// Computes out_t = w_t Σ_r in_r (-i)^(rt) in every group.
template <class T>
WEFT_VECTOR_WIDTHS void pass_of_4(const Pass<T>& pass) {
  const int64_t n = pass.count, s = n * pass.groups;
  for (int64_t i = 0; i < pass.groups; ++i) {
    const T *const re = pass.from.re + i * n, *const im = pass.from.im + i * n;
    T *const r0 = pass.to.re + 4 * i * n, *const i0 = pass.to.im + 4 * i * n;
    T *const r1 = r0 + n, *const i1 = i0 + n;
    T *const r2 = r1 + n, *const i2 = i1 + n;
    T *const r3 = r2 + n, *const i3 = i2 + n;
    const Root<T> w1 = pass.root(i, 1), w2 = pass.root(i, 2), w3 = pass.root(i, 3);
    WEFT_INDEPENDENT
    for (int64_t q = 0; q < n; ++q) {
      const T ar = re[q] + re[q + 2 * s], ai = im[q] + im[q + 2 * s];
      const T br = re[q] - re[q + 2 * s], bi = im[q] - im[q + 2 * s];
      const T cr = re[q + s] + re[q + 3 * s], ci = im[q + s] + im[q + 3 * s];
      const T er = im[q + s] - im[q + 3 * s], ei = re[q + 3 * s] - re[q + s];  // -i (in_1 - in_3)
      const T ur = br + er, ui = bi + ei, vr = ar - cr, vi = ai - ci, xr = br - er, xi = bi - ei;
      r0[q] = ar + cr, i0[q] = ai + ci;
      r1[q] = ur * w1.re - ui * w1.im, i1[q] = ur * w1.im + ui * w1.re;
      r2[q] = vr * w2.re - vi * w2.im, i2[q] = vr * w2.im + vi * w2.re;
      r3[q] = xr * w3.re - xi * w3.im, i3[q] = xr * w3.im + xi * w3.re;
    }
  }
}

/// Computes out_t = Σ_r in_r w_t e^(-2πirt/p) in every group. roots_of_p[k] = e^(-2πik/p).
template <class T>
WEFT_VECTOR_WIDTHS void pass_of(int p, const Pass<T>& pass, const std::array<Root<T>, largest_factor>& roots_of_p) {
  const int64_t n = pass.count;
  for (int64_t i = 0; i < pass.groups; ++i)
    for (int t = 0; t < p; ++t) {
      T *const to_re = pass.to.re + (p * i + t) * n, *const to_im = pass.to.im + (p * i + t) * n;
      for (int r = 0; r < p; ++r) {
        const Root<T> w = times(pass.root(i, t), roots_of_p[static_cast<size_t>(r * t % p)]);
        const T *const re = pass.from.re + (r * pass.groups + i) * n, *const im =
                                                                          pass.from.im + (r * pass.groups + i) * n;
        if (r == 0) WEFT_INDEPENDENT
        for (int64_t q = 0; q < n; ++q) to_re[q] = re[q] * w.re - im[q] * w.im, to_im[q] = re[q] * w.im + im[q] * w.re;
        else WEFT_INDEPENDENT for (int64_t q = 0; q < n; ++q) to_re[q] += re[q] * w.re - im[q] * w.im,
            to_im[q] += re[q] * w.im + im[q] * w.re;
      }
    }
}

/// Multiplies `count` numbers of x by w into `to`, which may be x. `conjugate` turns the results around.
template <class T>
WEFT_VECTOR_WIDTHS void scale(Planes<T> x, Root<T> w, Planes<T> to, int64_t count, bool conjugate) {
  const T sign = conjugate ? -1 : 1;
  WEFT_INDEPENDENT
  for (int64_t q = 0; q < count; ++q) {
    const T re = x.re[q], im = x.im[q];
    to.re[q] = re * w.re - im * w.im, to.im[q] = sign * (re * w.im + im * w.re);
  }
}

}  // namespace

template <class T>
Root<T> root_of_unity(int64_t k, int64_t n) {
  constexpr std::array<Root<T>, 4> quarters{{{1, 0}, {0, -1}, {-1, 0}, {0, 1}}};
  if (4 * k % n == 0) return quarters[static_cast<size_t>(4 * k / n)];
  const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle))};
}

template Root<float> root_of_unity(int64_t k, int64_t n);
template Root<double> root_of_unity(int64_t k, int64_t n);

bool has_passes(int64_t n) {
  for (const int p : factors)
    while (n % p == 0) n /= p;
  return n == 1;
}

template <class T>
FourierTransform<T>::FourierTransform(int64_t n) : n_(n) {
  int64_t rest = n;
  for (const int p : factors)
    for (; rest % p == 0; rest /= p) factors_.push_back(p);
  if (rest > 1) prepare_convolution();
  else
    for (int64_t k = 0; k < n; ++k) roots_.push_back(root_of_unity<T>(k, n));
}

template <class T>
void FourierTransform<T>::run(Planes<T> x, Planes<T> scratch, int64_t rows) const {
  if (inner_) return convolve(x, scratch, rows);
  Planes<T> from = x, to = scratch;
  int64_t left = n_, done = 1;
  for (const int p : factors_) {
    left /= p;
    const Pass<T> pass{from, to, left, done * rows, done, roots_.data()};
    if (p == 2) pass_of_2(pass);
    else if (p == 4) pass_of_4(pass);
    else {
      std::array<Root<T>, largest_factor> roots_of_p{};
      for (int r = 0; r < p; ++r) roots_of_p[static_cast<size_t>(r)] = roots_[static_cast<size_t>(r * (n_ / p))];
      pass_of(p, pass, roots_of_p);
    }
    std::swap(from, to);
    done *= p;
  }
  if (from.re != x.re) std::copy_n(from.re, n_ * rows, x.re), std::copy_n(from.im, n_ * rows, x.im);
}

/// Prepares Bluestein's convolution. With jk = (j² + k² - (k-j)²) / 2 the sum is c_k Σ_j (x_j c_j) / c_(k-j), where
/// c_j = e^(-πij²/n).
template <class T>
void FourierTransform<T>::prepare_convolution() {
  int64_t length = 1;
  while (length < 2 * n_ - 1) length *= 2;
  inner_ = std::make_unique<FourierTransform<T>>(length);
  std::vector<T> re(static_cast<size_t>(length)), im(re.size()), rest_re(re.size()), rest_im(re.size());
  for (int64_t j = 0; j < n_; ++j) {
    chirp_.push_back(root_of_unity<T>(j * j % (2 * n_), 2 * n_));
    for (const int64_t k : {j, (length - j) % length}) {
      re[static_cast<size_t>(k)] = chirp_.back().re / static_cast<T>(length);
      im[static_cast<size_t>(k)] = -chirp_.back().im / static_cast<T>(length);
    }
  }
  inner_->run({re.data(), im.data()}, {rest_re.data(), rest_im.data()}, 1);
  for (size_t k = 0; k < re.size(); ++k) filter_.push_back({re[k], im[k]});
}

template <class T>
void FourierTransform<T>::convolve(Planes<T> x, Planes<T> scratch, int64_t rows) const {
  const int64_t length = inner_->n_;
  const Planes<T> y = scratch, rest = scratch + length * rows;
  for (int64_t j = 0; j < n_; ++j) scale(x + j * rows, chirp_[static_cast<size_t>(j)], y + j * rows, rows, false);
  std::fill(y.re + n_ * rows, y.re + length * rows, T(0));
  std::fill(y.im + n_ * rows, y.im + length * rows, T(0));
  inner_->run(y, rest, rows);
  for (int64_t j = 0; j < length; ++j)  // the inverse is the conjugate of the conjugate's transform
    scale(y + j * rows, filter_[static_cast<size_t>(j)], y + j * rows, rows, true);
  inner_->run(y, rest, rows);
  for (int64_t j = 0; j < n_; ++j) {
    const Root<T> c = chirp_[static_cast<size_t>(j)];
    scale(y + j * rows, {c.re, -c.im}, x + j * rows, rows, true);  // conj(y) c = conj(y conj(c))
  }
}

template class FourierTransform<float>;
template class FourierTransform<double>;

}  // namespace weft::target
