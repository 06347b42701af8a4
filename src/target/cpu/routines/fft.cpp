// FFT calls on the CPU: fft, ifft, rfft and irfft along the last axis. A real transform of even length n is a complex
// one of n/2 numbers, the even elements as real parts and the odd ones as imaginary parts (Sorensen et al. 1987).
#include <algorithm>
#include <vector>

#include "runtime/threads.h"
#include "target/cpu/routines/calls.h"
#include "target/cpu/routines/fourier.h"

namespace weft::target {
namespace {

enum class Kind : uint8_t { forward, inverse, real, from_half };

/// Transforms rows of T in arithmetic of N.
template <class T, class N>
class Fft final : public LibraryCall {
 public:
  Fft(Kind kind, int64_t n, int64_t rows)
      : kind_(kind), n_(n), rows_(rows), half_((kind == Kind::real || kind == Kind::from_half) && n % 2 == 0),
        transform_(half_ ? n / 2 : n) {
    if (half_)
      for (int64_t k = 0; k <= n / 2; ++k) roots_.push_back(root_of_unity<N>(k, n));
  }
  std::string name() const override { return "weft fft"; }

  void run(std::span<void* const> operands) const override {
    const int64_t kept = n_ / 2 + 1, in = kind_ == Kind::real ? n_ : 2 * (kind_ == Kind::from_half ? kept : n_),
                  out = kind_ == Kind::from_half ? n_ : 2 * (kind_ == Kind::real ? kept : n_);
    const int64_t rows_of_thread = (rows_ + runtime::num_threads() - 1) / runtime::num_threads();
    const int64_t side_by_side =
        std::max<int64_t>(1, std::min({lanes, in_cache / transform_.length(), rows_of_thread}));
    const int64_t blocks = (rows_ + side_by_side - 1) / side_by_side;
    const int64_t grain = std::max<int64_t>(1, work_of_task / (n_ * side_by_side));
    runtime::parallel_for((blocks + grain - 1) / grain, [&](int64_t begin, int64_t end) {
      const int64_t scratch = apart((transform_.length() + 1) * side_by_side, page / 4),
                    imaginary = apart(scratch + transform_.scratch() * side_by_side, page / 2);
      std::vector<N> memory(static_cast<size_t>(2 * imaginary));
      const Planes<N> x{memory.data(), memory.data() + imaginary};
      for (int64_t row = begin * grain * side_by_side; row < std::min(end * grain * side_by_side, rows_);
           row += side_by_side)
        block(static_cast<const T*>(operands[0]) + row * in, in, static_cast<T*>(operands[1]) + row * out, out,
              std::min(side_by_side, rows_ - row), x, x + scratch);
    });
  }

 private:
  static constexpr int64_t lanes = 8;           // rows side by side: from 16 on, their loads are in as many pages
  static constexpr int64_t in_cache = 1 << 13;  // numbers of rows side by side: with their scratch, 256 KB at most
  static constexpr int64_t page = 4096 / sizeof(N);
  static constexpr int64_t work_of_task = 4096;  // numbers: some ten microseconds

  /// Returns the first offset from `least` on that lies `numbers` behind a multiple of a page. A pass reads and writes
  /// several streams; from power-of-two distances they would share few sets of the L1 cache.
  static int64_t apart(int64_t least, int64_t numbers) { return (least + page - 1) / page * page + numbers; }

  /// Transforms `rows` rows side by side; rows of `in` are in_step apart, those of `out` out_step. `x` has room for
  /// length() + 1 numbers a row.
  void block(const T* in, int64_t in_step, T* out, int64_t out_step, int64_t rows, Planes<N> x,
             Planes<N> scratch) const {
    for (int64_t r = 0; r < rows; ++r) load(in + r * in_step, x + r, rows);
    if (half_ && kind_ == Kind::from_half) interleave_halves(x, rows);
    transform_.run(x, scratch, rows);
    if (half_ && kind_ == Kind::real) part_halves(x, rows);
    for (int64_t r = 0; r < rows; ++r) store(x + r, rows, out + r * out_step);
  }

  /// Reads a row into x, its numbers `step` apart. The inverse is the conjugate of the conjugate's transform.
  void load(const T* in, Planes<N> x, int64_t step) const {
    const auto set = [&](int64_t k, T re, T im) {
      x.re[k * step] = static_cast<N>(re), x.im[k * step] = static_cast<N>(im);
    };
    if (kind_ == Kind::real && !half_)
      for (int64_t k = 0; k < n_; ++k) set(k, in[k], 0);
    else if (kind_ == Kind::real || kind_ == Kind::forward)
      for (int64_t k = 0; k < transform_.length(); ++k) set(k, in[2 * k], in[2 * k + 1]);
    else if (kind_ == Kind::inverse)
      for (int64_t k = 0; k < n_; ++k) set(k, in[2 * k], -in[2 * k + 1]);
    else if (half_)
      for (int64_t k = 0; k <= n_ / 2; ++k) set(k, in[2 * k], k == 0 || 2 * k == n_ ? T(0) : in[2 * k + 1]);
    else
      for (int64_t k = 0; k < n_; ++k)
        if (k == 0) set(k, in[0], 0);
        else if (2 * k < n_) set(k, in[2 * k], -in[2 * k + 1]);
        else set(k, in[2 * (n_ - k)], in[2 * (n_ - k) + 1]);
  }

  void store(Planes<N> x, int64_t step, T* out) const {
    const N sign = kind_ == Kind::inverse || (kind_ == Kind::from_half && half_) ? -1 : 1;
    if (kind_ == Kind::from_half && !half_)
      for (int64_t k = 0; k < n_; ++k) out[k] = static_cast<T>(x.re[k * step]);
    else {
      const int64_t count = kind_ == Kind::real ? n_ / 2 + 1 : transform_.length();
      for (int64_t k = 0; k < count; ++k)
        out[2 * k] = static_cast<T>(x.re[k * step]), out[2 * k + 1] = static_cast<T>(sign * x.im[k * step]);
    }
  }

  /// Makes the kept half of a real row's transform, X_k = E_k + e^(-2πik/n) O_k for k up to n/2, of the transform Z of
  /// its n/2 pairs, in place: E_k = (Z_k + Z*_(n/2-k)) / 2, O_k = (Z_k - Z*_(n/2-k)) / 2i.
  void part_halves(Planes<N> x, int64_t rows) const {
    const int64_t h = n_ / 2;
    for (int64_t r = 0; r < rows; ++r) x.re[h * rows + r] = x.re[r], x.im[h * rows + r] = x.im[r];
    for (int64_t k = 0; 2 * k <= h; ++k) {
      const Root<N> w = roots_[static_cast<size_t>(k)], v = roots_[static_cast<size_t>(h - k)];
      const Planes<N> a = x + k * rows, b = x + (h - k) * rows;
      for (int64_t r = 0; r < rows; ++r) {
        const N er = (a.re[r] + b.re[r]) / 2, ei = (a.im[r] - b.im[r]) / 2;  // of h - k: er, -ei
        const N odd_re = (a.im[r] + b.im[r]) / 2, odd_im = (b.re[r] - a.re[r]) / 2;
        a.re[r] = er + odd_re * w.re - odd_im * w.im, a.im[r] = ei + odd_re * w.im + odd_im * w.re;
        b.re[r] = er + odd_re * v.re + odd_im * v.im, b.im[r] = odd_re * v.im - odd_im * v.re - ei;
      }
    }
  }

  /// Makes the conjugates of the n/2 numbers whose inverse transform has a real row's even elements as real parts and
  /// the odd ones as imaginary parts, of the kept half X, in place: Z_k = E_k + i O_k with E_k = X_k + X*_(n/2-k) and
  /// O_k = (X_k - X*_(n/2-k)) e^(2πik/n).
  void interleave_halves(Planes<N> x, int64_t rows) const {
    const int64_t h = n_ / 2;
    for (int64_t k = 0; 2 * k <= h; ++k) {
      const Root<N> w = roots_[static_cast<size_t>(k)], v = roots_[static_cast<size_t>(h - k)];
      const Planes<N> a = x + k * rows, b = x + (h - k) * rows;
      for (int64_t r = 0; r < rows; ++r) {
        const N er = a.re[r] + b.re[r], ei = a.im[r] - b.im[r];
        const N dr = a.re[r] - b.re[r], di = a.im[r] + b.im[r];  // of h - k: -dr, di
        const N ar = dr * w.re + di * w.im, ai = di * w.re - dr * w.im;
        const N br = di * v.im - dr * v.re, bi = di * v.re + dr * v.im;
        a.re[r] = er - ai, a.im[r] = -(ei + ar);
        b.re[r] = er - bi, b.im[r] = ei - br;
      }
    }
  }

  Kind kind_;
  int64_t n_, rows_;
  bool half_;
  FourierTransform<N> transform_;
  std::vector<Root<N>> roots_;
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
  const int64_t n = extents[axis];
  if (desc.inputs[0].dtype == float64) return std::make_shared<Fft<double, double>>(kind, n, rows);
  // Convolutions multiply roundings: their sums are several times as large as the results.
  if (!has_passes(n)) return std::make_shared<Fft<float, double>>(kind, n, rows);
  return std::make_shared<Fft<float, float>>(kind, n, rows);
}

}  // namespace weft::target
