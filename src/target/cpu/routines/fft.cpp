// Discrete Fourier transforms on the CPU. Lengths with small prime factors use Stockham's algorithm, one pass for each
// factor, whose results are in order. Other lengths are a convolution of such a length (Bluestein 1970). All arithmetic
// is float64, so that float32 results are rounded once.
#include <algorithm>
#include <cmath>
#include <complex>
#include <map>
#include <memory>
#include <mutex>
#include <numbers>
#include <vector>

#include "runtime/threads.h"
#include "target/cpu/routines/calls.h"

namespace weft::target {
namespace {

using Complex = std::complex<double>;

constexpr int largest_factor = 13;

/// Multiplies two numbers. std::complex's operator also handles infinities, at several times the cost.
Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

Complex root(int64_t k, int64_t n) {
  return std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
}

/// The transform of length n: Σ_j x_j e^(-2πijk/n).
class Transform {
 public:
  explicit Transform(int64_t n) : n_(n) {
    int64_t rest = n;
    for (const int p : {4, 2, 3, 5, 7, 11, 13})
      for (; rest % p == 0; rest /= p) factors_.push_back(p);
    if (rest > 1) chirp();
    else
      for (int64_t k = 0; k < n; ++k) roots_.push_back(root(k, n));
  }

  size_t scratch() const { return static_cast<size_t>(inner_ ? 3 * inner_->n_ : n_); }

  void run(Complex* x, Complex* scratch) const {
    if (inner_) return convolve(x, scratch);
    Complex *from = x, *to = scratch;
    int64_t left = n_, done = 1;
    for (const int p : factors_) {
      pass(p, left / p, done, from, to);
      std::swap(from, to);
      left /= p, done *= p;
    }
    if (from != x) std::copy(from, from + n_, x);
  }

 private:
  /// Runs the pass of one factor: `m` groups of p numbers, each of them `done` times side by side.
  void pass(int p, int64_t m, int64_t done, const Complex* from, Complex* to) const {
    Complex w[largest_factor], roots[largest_factor];  // of the group's position, and of p
    for (int r = 0; r < p; ++r) roots[r] = roots_[static_cast<size_t>(r * (n_ / p))];
    for (int64_t i = 0; i < m; ++i) {
      for (int t = 0; t < p; ++t) w[t] = roots_[static_cast<size_t>(i * t * done)];
      const Complex* in = from + i * done;
      Complex* out = to + p * i * done;
      for (int64_t q = 0; q < done; ++q) butterfly(p, roots, in + q, done * m, w, out + q, done);
    }
  }

  /// Computes out_t = w_t Σ_r in_r e^(-2πirt/p).
  static void butterfly(int p, const Complex* roots, const Complex* in, int64_t in_step, const Complex* w, Complex* out,
                        int64_t out_step) {
    Complex v[largest_factor];
    for (int r = 0; r < p; ++r) v[r] = in[r * in_step];
    if (p == 2) {
      out[0] = v[0] + v[1];
      out[out_step] = times(w[1], v[0] - v[1]);
    } else if (p == 4) {
      const Complex a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = v[1] - v[3], e{d.imag(), -d.real()};  // -i d
      out[0] = a + c;
      out[out_step] = times(w[1], b + e);
      out[2 * out_step] = times(w[2], a - c);
      out[3 * out_step] = times(w[3], b - e);
    } else {
      for (int t = 0; t < p; ++t) {
        Complex sum = v[0];
        for (int r = 1, position = t; r < p; ++r, position += position + t < p ? t : t - p)
          sum += times(v[r], roots[position]);
        out[t * out_step] = times(w[t], sum);
      }
    }
  }

  /// Prepares Bluestein's convolution. With jk = (j² + k² - (k-j)²) / 2 the sum is c_k Σ_j (x_j c_j) / c_(k-j), where
  /// c_j = e^(-πij²/n).
  void chirp() {
    int64_t length = 1;
    while (length < 2 * n_ - 1) length *= 2;
    inner_ = std::make_unique<Transform>(length);
    filter_.assign(static_cast<size_t>(length), 0);
    for (int64_t j = 0; j < n_; ++j) {
      chirp_.push_back(root(j * j % (2 * n_), 2 * n_));
      filter_[static_cast<size_t>(j)] = filter_[static_cast<size_t>((length - j) % length)] =
          std::conj(chirp_.back()) / static_cast<double>(length);
    }
    std::vector<Complex> scratch(inner_->scratch());
    inner_->run(filter_.data(), scratch.data());
  }

  void convolve(Complex* x, Complex* scratch) const {
    const auto length = static_cast<size_t>(inner_->n_);
    Complex *y = scratch, *rest = scratch + length;
    for (size_t j = 0; j < length; ++j) y[j] = j < chirp_.size() ? times(x[j], chirp_[j]) : Complex{};
    inner_->run(y, rest);
    for (size_t j = 0; j < length; ++j)
      y[j] = std::conj(times(y[j], filter_[j]));  // the inverse is the conjugate of the conjugate's transform
    inner_->run(y, rest);
    for (size_t j = 0; j < chirp_.size(); ++j) x[j] = times(std::conj(y[j]), chirp_[j]);
  }

  int64_t n_;
  std::vector<int> factors_;
  std::vector<Complex> roots_;
  std::unique_ptr<Transform> inner_;  // of a power of two, for lengths with large factors
  std::vector<Complex> chirp_, filter_;
};

enum class Kind : uint8_t { forward, inverse, real, from_half };

template <class T>
class Fft final : public LibraryCall {
 public:
  Fft(Kind kind, int64_t n, int64_t rows) : kind_(kind), n_(n), rows_(rows), transform_(n) {}
  std::string name() const override { return "weft fft"; }

  void run(std::span<void* const> operands) const override {
    const int64_t half = n_ / 2 + 1, in = kind_ == Kind::real ? n_ : 2 * (kind_ == Kind::from_half ? half : n_),
                  out = kind_ == Kind::from_half ? n_ : 2 * (kind_ == Kind::real ? half : n_);
    const int64_t grain = std::max<int64_t>(1, 4096 / n_);
    runtime::parallel_for((rows_ + grain - 1) / grain, [&](int64_t begin, int64_t end) {
      std::vector<Complex> x(static_cast<size_t>(n_)), scratch(transform_.scratch());
      for (int64_t row = begin * grain; row < std::min(end * grain, rows_); ++row)
        one(static_cast<const T*>(operands[0]) + row * in, static_cast<T*>(operands[1]) + row * out, x, scratch);
    });
  }

 private:
  /// Transforms one row. The inverse is the conjugate of the conjugate's transform.
  void one(const T* in, T* out, std::vector<Complex>& x, std::vector<Complex>& scratch) const {
    const double sign = kind_ == Kind::inverse ? -1 : 1;
    for (int64_t k = 0; k < n_; ++k) {
      Complex& v = x[static_cast<size_t>(k)];
      if (kind_ == Kind::real) v = static_cast<double>(in[k]);
      else if (kind_ != Kind::from_half)
        v = {static_cast<double>(in[2 * k]), sign * static_cast<double>(in[2 * k + 1])};
      else if (k == 0 || 2 * k == n_) v = static_cast<double>(in[2 * k]);
      else
        v = 2 * k < n_ ? Complex(static_cast<double>(in[2 * k]), -static_cast<double>(in[2 * k + 1]))
                       : Complex(static_cast<double>(in[2 * (n_ - k)]), static_cast<double>(in[2 * (n_ - k) + 1]));
    }
    transform_.run(x.data(), scratch.data());
    const int64_t count = kind_ == Kind::real ? n_ / 2 + 1 : n_;
    for (int64_t k = 0; k < count; ++k) {
      const Complex v = x[static_cast<size_t>(k)];
      if (kind_ == Kind::from_half) out[k] = static_cast<T>(v.real());
      else out[2 * k] = static_cast<T>(v.real()), out[2 * k + 1] = static_cast<T>(sign * v.imag());
    }
  }

  Kind kind_;
  int64_t n_, rows_;
  Transform transform_;
};

}  // namespace

std::shared_ptr<const LibraryCall> cpu_fft(const kernel::CallDesc& desc) {
  const Kind kind = desc.name == "rfft"    ? Kind::real
                    : desc.name == "irfft" ? Kind::from_half
                    : desc.integers[0]     ? Kind::inverse
                                           : Kind::forward;
  const std::vector<int64_t>& extents =
      kind == Kind::from_half ? desc.outputs[0].extents : desc.inputs[0].extents;  // with the axis at full length
  const size_t axis = extents.size() - (kind == Kind::forward || kind == Kind::inverse ? 2 : 1);
  int64_t rows = 1;
  for (size_t k = 0; k < axis; ++k) rows *= extents[k];
  if (desc.inputs[0].dtype == float64) return std::make_shared<Fft<double>>(kind, extents[axis], rows);
  return std::make_shared<Fft<float>>(kind, extents[axis], rows);
}

}  // namespace weft::target
