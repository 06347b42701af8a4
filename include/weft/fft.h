#pragma once
#include <optional>
#include <vector>

#include "weft/array.h"

/// Discrete Fourier transforms, with MLX's names and arguments.
///
/// `n`, where given, are the lengths of the transformed axes: the input is cut off or padded with zeros to them (irfft:
/// to n / 2 + 1). Inputs are converted to complex64 (float64 to complex128), those of rfft to float32 or float64, and
/// results are complex or real of the same width. Transforms multiply by exp(-2πi jk / n), inverse ones by exp(2πi jk /
/// n), and `norm` says which of them divides. Axes may have any length but 0 (std::invalid_argument, as for an axis
/// that is named twice); lengths with prime factors above 13 take a few times longer on a CPU. Derivatives and vmap are
/// transforms again.
namespace weft::fft {

/// What is divided by the number of elements of a transform: the inverse one (Backward), both by its square root
/// (Ortho), or the forward one (Forward).
enum class FFTNorm { Backward, Ortho, Forward };

/// Returns the transform along `axes` (all by default), complex of a's shape, or with sizes `n` along the axes.
WEFT_API array fftn(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                    StreamOrDevice s = {});
WEFT_API array fftn(const array& a, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                    StreamOrDevice s = {});
WEFT_API array fftn(const array& a, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {});
/// Returns the inverse transform along `axes` (all by default), complex of a's shape, or with sizes `n`.
WEFT_API array ifftn(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                     StreamOrDevice s = {});
WEFT_API array ifftn(const array& a, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                     StreamOrDevice s = {});
WEFT_API array ifftn(const array& a, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {});
/// Returns the transform of a real array along `axes` (all by default), complex; the last of the axes keeps n / 2 + 1
/// of its n frequencies, as the others follow from them.
WEFT_API array rfftn(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                     StreamOrDevice s = {});
WEFT_API array rfftn(const array& a, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                     StreamOrDevice s = {});
WEFT_API array rfftn(const array& a, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {});
/// Returns the inverse of rfftn along `axes` (all by default), float32. Where `n` is not given, the last of the axes
/// becomes 2 (length - 1).
WEFT_API array irfftn(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                      StreamOrDevice s = {});
WEFT_API array irfftn(const array& a, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                      StreamOrDevice s = {});
WEFT_API array irfftn(const array& a, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {});

/// Returns the transform along one axis (the last by default), complex.
inline array fft(const array& a, int n, int axis, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {}) {
  return fftn(a, {n}, {axis}, norm, s);
}
inline array fft(const array& a, int axis = -1, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {}) {
  return fftn(a, std::vector<int>{axis}, norm, s);
}
/// Returns the inverse transform along one axis, complex.
inline array ifft(const array& a, int n, int axis, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {}) {
  return ifftn(a, {n}, {axis}, norm, s);
}
inline array ifft(const array& a, int axis = -1, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {}) {
  return ifftn(a, std::vector<int>{axis}, norm, s);
}
/// Returns the n / 2 + 1 first frequencies of a real array along one axis, complex.
inline array rfft(const array& a, int n, int axis, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {}) {
  return rfftn(a, {n}, {axis}, norm, s);
}
inline array rfft(const array& a, int axis = -1, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {}) {
  return rfftn(a, std::vector<int>{axis}, norm, s);
}
/// Returns the inverse of rfft along one axis, float32 with n elements, 2 (length - 1) by default.
inline array irfft(const array& a, int n, int axis, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {}) {
  return irfftn(a, {n}, {axis}, norm, s);
}
inline array irfft(const array& a, int axis = -1, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {}) {
  return irfftn(a, std::vector<int>{axis}, norm, s);
}

/// Returns the transform along two axes (the last two by default), complex.
inline array fft2(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                  StreamOrDevice s = {}) {
  return fftn(a, n, axes, norm, s);
}
inline array fft2(const array& a, const std::vector<int>& axes = {-2, -1}, FFTNorm norm = FFTNorm::Backward,
                  StreamOrDevice s = {}) {
  return fftn(a, axes, norm, s);
}
/// Returns the inverse transform along two axes, complex.
inline array ifft2(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                   StreamOrDevice s = {}) {
  return ifftn(a, n, axes, norm, s);
}
inline array ifft2(const array& a, const std::vector<int>& axes = {-2, -1}, FFTNorm norm = FFTNorm::Backward,
                   StreamOrDevice s = {}) {
  return ifftn(a, axes, norm, s);
}
/// Returns the transform of a real array along two axes, complex; the last one keeps n / 2 + 1 frequencies.
inline array rfft2(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                   StreamOrDevice s = {}) {
  return rfftn(a, n, axes, norm, s);
}
inline array rfft2(const array& a, const std::vector<int>& axes = {-2, -1}, FFTNorm norm = FFTNorm::Backward,
                   StreamOrDevice s = {}) {
  return rfftn(a, axes, norm, s);
}
/// Returns the inverse of rfft2, float32.
inline array irfft2(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                    StreamOrDevice s = {}) {
  return irfftn(a, n, axes, norm, s);
}
inline array irfft2(const array& a, const std::vector<int>& axes = {-2, -1}, FFTNorm norm = FFTNorm::Backward,
                    StreamOrDevice s = {}) {
  return irfftn(a, axes, norm, s);
}

/// Returns the n frequencies of a transform of samples at distance d, in its order: 0, 1, …, -2, -1 over n d. float32.
/// Throws std::invalid_argument for n < 1 and for d = 0.
WEFT_API array fftfreq(int n, double d = 1.0, StreamOrDevice s = {});
/// Returns the n / 2 + 1 frequencies of a transform of real samples, float32. Errors are those of `fftfreq`.
WEFT_API array rfftfreq(int n, double d = 1.0, StreamOrDevice s = {});
/// Returns `a` with frequency 0 moved to the middle of the axes (all by default).
WEFT_API array fftshift(const array& a, const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array fftshift(const array& a, StreamOrDevice s = {});
/// Returns `a` with the middle of the axes moved to the front: the inverse of fftshift.
WEFT_API array ifftshift(const array& a, const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array ifftshift(const array& a, StreamOrDevice s = {});

/// Returns the short-time Fourier transform of the last axis: complex [..., frequencies, frames]. Frame f begins at
/// sample f · hop_length (by default n_fft / 4) and has n_fft samples, times the window, which is padded to n_fft with
/// zeros on both sides: by default ones, win_length of them (by default n_fft). With `center` the signal is padded by
/// n_fft / 2 on both sides, by pad's mode pad_mode. `onesided`, by default where `x` is real: the n_fft / 2 + 1 first
/// frequencies. Throws std::invalid_argument for sizes that do not fit.
WEFT_API array stft(const array& x, int n_fft = 2048, const std::optional<int>& hop_length = std::nullopt,
                    const std::optional<int>& win_length = std::nullopt,
                    const std::optional<array>& window = std::nullopt, bool center = true,
                    const std::string& pad_mode = "reflect", FFTNorm norm = FFTNorm::Backward,
                    const std::optional<bool>& onesided = std::nullopt, StreamOrDevice s = {});
/// Returns the signal of a short-time Fourier transform, float32: frames are transformed back, multiplied by the
/// window, added where they overlap, and divided by the sum of squared windows, by 10⁻⁸ at least. `n_fft` is by default
/// 2 (frequencies - 1), or with `onesided` false the frequencies; `center` drops n_fft / 2 samples on both sides.
/// `length` cuts the signal, or adds zeros behind it.
WEFT_API array istft(const array& stft_matrix, const std::optional<int>& n_fft = std::nullopt,
                     const std::optional<int>& hop_length = std::nullopt,
                     const std::optional<int>& win_length = std::nullopt,
                     const std::optional<array>& window = std::nullopt, bool center = true,
                     FFTNorm norm = FFTNorm::Backward, const std::optional<bool>& onesided = std::nullopt,
                     const std::optional<int>& length = std::nullopt, StreamOrDevice s = {});

}  // namespace weft::fft
