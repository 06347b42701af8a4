// weft/fft.h: short-time Fourier transforms.
#include "array/op_support.h"
#include "base/error.h"
#include "weft/fft.h"
#include "weft/ops.h"

namespace weft::fft {
namespace {

/// The sizes of a transform, checked.
struct Frames {
  int size, hop;
};

Frames frames_of(const char* op, int n_fft, const std::optional<int>& hop_length) {
  if (n_fft <= 0) throw_invalid(op, "n_fft is " + std::to_string(n_fft) + ": it must be positive");
  const Frames f{n_fft, hop_length.value_or(n_fft / 4)};
  if (f.hop <= 0) throw_invalid(op, "hop_length is " + std::to_string(f.hop) + ": it must be positive");
  return f;
}

/// Returns the window [n_fft] with zeros on both sides of what is given.
array window_of(const char* op, const Frames& f, const std::optional<int>& win_length,
                const std::optional<array>& window, StreamOrDevice s) {
  if (window && window->ndim() != 1) throw_invalid(op, "a window has one axis, got " + detail::describe(*window));
  const int length = window ? static_cast<int>(window->shape(0).bound()) : win_length.value_or(f.size);
  if (length > f.size || length <= 0)
    throw_invalid(op,
                  "a window of " + std::to_string(length) + " samples does not fit n_fft = " + std::to_string(f.size));
  const array w = window ? *window : ones({length}, float32, s);
  const int left = (f.size - length) / 2;
  return length == f.size ? w : pad(w, {0}, Shape{left}, Shape{f.size - length - left}, array(0), "constant", s);
}

/// Returns for each frame and sample its index in the signal: [frames · n_fft].
array samples_of(const Frames& f, int64_t frames, StreamOrDevice s) {
  const array begins = multiply(arange(static_cast<double>(frames), int32, s), array(f.hop), s);
  return flatten(add(expand_dims(begins, 1, s), arange(static_cast<double>(f.size), int32, s), s), s);
}

}  // namespace

array stft(const array& x, int n_fft, const std::optional<int>& hop_length, const std::optional<int>& win_length,
           const std::optional<array>& window, bool center, const std::string& pad_mode, FFTNorm norm,
           const std::optional<bool>& onesided, StreamOrDevice s) {
  const detail::OnStream on_stream("stft", s);
  if (x.ndim() == 0) throw_invalid("stft", "a signal has one axis or more, got " + detail::describe(x));
  const Frames f = frames_of("stft", n_fft, hop_length);
  const array shape = window_of("stft", f, win_length, window, s);
  array signal = x;
  if (center) signal = pad(signal, {-1}, Shape{n_fft / 2}, Shape{n_fft / 2}, array(0, x.dtype()), pad_mode, s);
  const int64_t length = signal.shape(-1).bound();
  if (length < n_fft)
    throw_invalid("stft", detail::describe(x) + " is too short for frames of " + std::to_string(n_fft) + " samples");
  const int64_t frames = (length - n_fft) / f.hop + 1;
  array cut = take(signal, samples_of(f, frames, s), -1, s);
  Shape apart(cut.shape().begin(), cut.shape().end() - 1);
  apart.push_back(frames), apart.push_back(n_fft);
  cut = multiply(reshape(cut, apart, s), shape, s);
  const bool real = !is_complex(cut.dtype()), half = onesided.value_or(!is_complex(x.dtype()));
  array spectrum = real && half ? rfft(cut, -1, norm, s) : fft(cut, -1, norm, s);
  if (half && !real) {
    Shape from(spectrum.ndim(), 0), to = spectrum.shape();
    to.back() = n_fft / 2 + 1;
    spectrum = slice(spectrum, from, to, s);
  }
  return swapaxes(spectrum, -1, -2, s);
}

array istft(const array& stft_matrix, const std::optional<int>& n_fft, const std::optional<int>& hop_length,
            const std::optional<int>& win_length, const std::optional<array>& window, bool center, FFTNorm norm,
            const std::optional<bool>& onesided, const std::optional<int>& length, StreamOrDevice s) {
  const detail::OnStream on_stream("istft", s);
  if (stft_matrix.ndim() < 2)
    throw_invalid("istft", "frequencies and frames are two axes, got " + detail::describe(stft_matrix));
  const bool half = onesided.value_or(true);
  const auto frequencies = static_cast<int>(stft_matrix.shape(-2).bound());
  const Frames f = frames_of("istft", n_fft.value_or(half ? 2 * (frequencies - 1) : frequencies), hop_length);
  const array shape = window_of("istft", f, win_length, window, s);
  const array spectrum = swapaxes(astype(stft_matrix, complex_of(stft_matrix.dtype()), s), -1, -2, s);
  const array parts = half ? irfft(spectrum, f.size, -1, norm, s) : real(ifft(spectrum, f.size, -1, norm, s), s);
  const int64_t frames = parts.shape(-2).bound(), all = (frames - 1) * f.hop + f.size;
  const array samples = samples_of(f, frames, s);
  // Sums where frames overlap, along the last axis of [..., frames, n_fft].
  const auto added = [&](const array& v) {
    Shape joined(v.shape().begin(), v.shape().end() - 2);
    Shape out = joined;
    joined.push_back(frames * f.size), out.push_back(all);
    return scatter_add(moveaxis(zeros(out, v.dtype(), s), -1, 0, s), samples,
                       expand_dims(moveaxis(reshape(v, joined, s), -1, 0, s), 1, s), 0, s);
  };
  const array squares = added(broadcast_to(square(astype(shape, parts.dtype(), s), s), {frames, f.size}, s));
  const array sums = moveaxis(added(multiply(parts, shape, s)), 0, -1, s);
  array signal = divide(sums, maximum(squares, array(1e-8f), s), s);
  const int64_t from = center ? f.size / 2 : 0, to = length ? std::min<int64_t>(from + *length, all) : all - from;
  Shape begin(signal.ndim(), 0), end = signal.shape();
  begin.back() = from, end.back() = std::max(from, to);
  signal = slice(signal, begin, end, s);
  const int64_t missing = length ? *length - (end.back().bound() - from) : 0;
  return missing > 0 ? pad(signal, {-1}, Shape{0}, Shape{missing}, array(0.0f), "constant", s) : signal;
}

}  // namespace weft::fft
