#pragma once
// The discrete Fourier transform of several rows side by side, as the CPU's FFT calls compute it.
#include <cstdint>
#include <memory>
#include <vector>

namespace weft::target {

/// Complex numbers: real parts in one array, imaginary parts in another, so that a loop over them is vectorised.
template <class T>
struct Planes {
  T *re, *im;
  Planes operator+(int64_t k) const { return {re + k, im + k}; }
};

template <class T>
struct Root {
  T re, im;
};

/// Returns e^(-2πik/n), rounded once, exactly at multiples of a quarter turn. 0 <= k < n.
template <class T>
Root<T> root_of_unity(int64_t k, int64_t n);

/// Returns whether all prime factors of n have a pass.
bool has_passes(int64_t n);

/// The transform of length n: Σ_j x_j e^(-2πijk/n). Lengths with small prime factors use Stockham's algorithm, one pass
/// for each factor, whose results are in order. Other lengths are a convolution of such a length (Bluestein 1970).
/// T: float or double, the dtype of all arithmetic.
template <class T>
class FourierTransform {
 public:
  explicit FourierTransform(int64_t n);  // n >= 1
  int64_t length() const { return n_; }
  /// Returns how many numbers of scratch memory a row needs.
  int64_t scratch() const { return inner_ ? 3 * inner_->n_ : n_; }
  /// Transforms `rows` rows in x: number k of row r is at k·rows + r, before and after. `scratch` holds
  /// rows·scratch() numbers.
  void run(Planes<T> x, Planes<T> scratch, int64_t rows) const;

 private:
  void prepare_convolution();
  void convolve(Planes<T> x, Planes<T> scratch, int64_t rows) const;

  int64_t n_;
  std::vector<int> factors_;
  std::vector<Root<T>> roots_;
  std::unique_ptr<FourierTransform> inner_;  // of a power of two, for lengths with large factors
  std::vector<Root<T>> chirp_, filter_;
};

extern template class FourierTransform<float>;
extern template class FourierTransform<double>;

}  // namespace weft::target
