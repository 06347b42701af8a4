#pragma once
#include <optional>
#include <vector>

#include "weft/array.h"

/// Discrete Fourier transforms, with MLX's names and arguments.
///
/// `n`, where given, are the lengths of the transformed axes: an array is cut off or padded with zeros to them (for
/// irfft: to n / 2 + 1). Results are complex64, those of irfft, irfft2 and irfftn float32; the input is converted. A
/// transform of a real array along the last of the axes keeps the first n / 2 + 1 of n numbers. Axes may be of any
/// length but 0; lengths with prime factors above 13 take some times longer on a CPU. Derivatives and vmap are
/// transforms again.
namespace weft::fft {

/// What is divided by the number of elements of a transform: the inverse; both, by its root; or the forward one.
enum class FFTNorm { Backward, Ortho, Forward };

WEFT_API array fftn(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                    StreamOrDevice s = {});
WEFT_API array fftn(const array& a, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                    StreamOrDevice s = {});
WEFT_API array fftn(const array& a, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {});
WEFT_API array ifftn(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                     StreamOrDevice s = {});
WEFT_API array ifftn(const array& a, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                     StreamOrDevice s = {});
WEFT_API array ifftn(const array& a, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {});
WEFT_API array rfftn(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                     StreamOrDevice s = {});
WEFT_API array rfftn(const array& a, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                     StreamOrDevice s = {});
WEFT_API array rfftn(const array& a, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {});
/// Where n is not given, the last of the axes becomes 2 (length - 1).
WEFT_API array irfftn(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                      StreamOrDevice s = {});
WEFT_API array irfftn(const array& a, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                      StreamOrDevice s = {});
WEFT_API array irfftn(const array& a, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {});

inline array fft(const array& a, int n, int axis, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {}) {
  return fftn(a, {n}, {axis}, norm, s);
}
inline array fft(const array& a, int axis = -1, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {}) {
  return fftn(a, std::vector<int>{axis}, norm, s);
}
inline array ifft(const array& a, int n, int axis, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {}) {
  return ifftn(a, {n}, {axis}, norm, s);
}
inline array ifft(const array& a, int axis = -1, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {}) {
  return ifftn(a, std::vector<int>{axis}, norm, s);
}
inline array rfft(const array& a, int n, int axis, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {}) {
  return rfftn(a, {n}, {axis}, norm, s);
}
inline array rfft(const array& a, int axis = -1, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {}) {
  return rfftn(a, std::vector<int>{axis}, norm, s);
}
inline array irfft(const array& a, int n, int axis, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {}) {
  return irfftn(a, {n}, {axis}, norm, s);
}
inline array irfft(const array& a, int axis = -1, FFTNorm norm = FFTNorm::Backward, StreamOrDevice s = {}) {
  return irfftn(a, std::vector<int>{axis}, norm, s);
}

inline array fft2(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                  StreamOrDevice s = {}) {
  return fftn(a, n, axes, norm, s);
}
inline array fft2(const array& a, const std::vector<int>& axes = {-2, -1}, FFTNorm norm = FFTNorm::Backward,
                  StreamOrDevice s = {}) {
  return fftn(a, axes, norm, s);
}
inline array ifft2(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                   StreamOrDevice s = {}) {
  return ifftn(a, n, axes, norm, s);
}
inline array ifft2(const array& a, const std::vector<int>& axes = {-2, -1}, FFTNorm norm = FFTNorm::Backward,
                   StreamOrDevice s = {}) {
  return ifftn(a, axes, norm, s);
}
inline array rfft2(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                   StreamOrDevice s = {}) {
  return rfftn(a, n, axes, norm, s);
}
inline array rfft2(const array& a, const std::vector<int>& axes = {-2, -1}, FFTNorm norm = FFTNorm::Backward,
                   StreamOrDevice s = {}) {
  return rfftn(a, axes, norm, s);
}
inline array irfft2(const array& a, const Shape& n, const std::vector<int>& axes, FFTNorm norm = FFTNorm::Backward,
                    StreamOrDevice s = {}) {
  return irfftn(a, n, axes, norm, s);
}
inline array irfft2(const array& a, const std::vector<int>& axes = {-2, -1}, FFTNorm norm = FFTNorm::Backward,
                    StreamOrDevice s = {}) {
  return irfftn(a, axes, norm, s);
}

/// The frequencies of a transform of n samples that lie d apart, in its order: 0, 1 … -2, -1 over n d; and those of a
/// real one.
WEFT_API array fftfreq(int n, double d = 1.0, StreamOrDevice s = {});
WEFT_API array rfftfreq(int n, double d = 1.0, StreamOrDevice s = {});
/// The frequency 0 in the middle of the axes (all where none are given), and back.
WEFT_API array fftshift(const array& a, const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array fftshift(const array& a, StreamOrDevice s = {});
WEFT_API array ifftshift(const array& a, const std::vector<int>& axes, StreamOrDevice s = {});
WEFT_API array ifftshift(const array& a, StreamOrDevice s = {});

}  // namespace weft::fft
