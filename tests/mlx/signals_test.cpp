// Short-time Fourier transforms, different elements, extremes together: tests/mlx/generate/signals.py.
#include <doctest/doctest.h>

#include "mlx/assertions.h"
#include "weft/fft.h"
#include "weft/ops.h"

namespace weft::test {
namespace {

using fft::FFTNorm;
using fft::istft;
using fft::stft;

constexpr auto none = std::nullopt;

array row(const array& a, int64_t k) { return reshape(slice(a, {k, 0}, {k + 1, a.shape(1).bound()}), {-1}); }

Arrays pair(const std::tuple<array, array>& both) { return {std::get<0>(both), std::get<1>(both)}; }

void append(Arrays& out, const Arrays& more) { out.insert(out.end(), more.begin(), more.end()); }

const std::vector<Assertion> signals = {
    {"stft",
     [](const Arrays& in) {
       const array &x = in[0], &c = in[1], &w = in[2], &v = in[3], brief = slice(x, {0, 0}, {2, 10});
       return Arrays{stft(x, 32),
                     stft(x, 32, none, none, none, false),
                     stft(x, 32, 8, 20),
                     stft(x, 32, 8, none, w),
                     stft(x, 32, 8, none, v),
                     stft(x, 32, 8, 12, v),
                     stft(x, 32, none, none, none, true, "edge"),
                     stft(x, 32, none, none, none, true, "constant"),
                     stft(x, 32, none, none, none, true, "reflect", FFTNorm::Backward, false),
                     stft(x, 31, 7),
                     stft(x, 16, 20),
                     stft(brief, 32),
                     stft(row(x, 0), 32, none, none, none, true, "reflect", FFTNorm::Ortho),
                     stft(x, 32, none, none, none, true, "reflect", FFTNorm::Forward),
                     stft(astype(x, float16), 32),
                     stft(c, 32),
                     stft(c, 32, none, none, none, true, "reflect", FFTNorm::Backward, true)};
     },
     {64, 16, false}},
    {"istft",
     [](const Arrays& in) {
       const array &x = in[0], &c = in[1], &w = in[2], y = stft(x, 32, 8, none, w);
       const auto back = [&](std::optional<int> length) {
         return istft(y, 32, 8, none, w, true, FFTNorm::Backward, none, length);
       };
       const array two = stft(x, 32, none, none, none, true, "reflect", FFTNorm::Backward, false);
       return Arrays{back(none),
                     back(100),
                     back(130),
                     back(70),
                     istft(stft(x, 32)),
                     istft(two, none, none, none, none, true, FFTNorm::Backward, false),
                     istft(stft(x, 32, 8, none, none, false), 32, 8, none, none, false),
                     istft(stft(x, 31, 7), 31, 7),
                     istft(stft(x, 16, 20), 16, 20),
                     istft(stft(x, 32, none, none, none, true, "reflect", FFTNorm::Ortho), none, none, none, none, true,
                           FFTNorm::Ortho),
                     istft(stft(c, 32), none, none, none, none, true, FFTNorm::Backward, false),
                     istft(stft(x, 32, 8, 20), 32, 8, 20)};
     },
     {64, 16, false}},
    {"derivative",
     [](const Arrays& in) { return gradient([](const Arrays& a) { return abs(stft(a[0], 16)); }, {in[0]}); },
     {64, 4096, false}},
    {"unique",
     [](const Arrays& in) {
       const array &i = in[0], &f = in[1];
       Arrays out = unique(i, 5);
       append(out, unique(i, 12, true, true, true));
       append(out, unique(i, 4, true, true, true));
       append(out, unique(i, 0, true, true, true));
       append(out, unique(i, 12, false, false, true, array(7.9f)));
       append(out, unique(f, 8, true, true, true, array(0)));
       append(out, unique(i > 3, 3, true, true, true));
       append(out, unique(zeros({0, 2}), 2, true, true, true, array(1)));
       return out;
     }},
    {"minmax",
     [](const Arrays& in) {
       const array both = reshape(in[0], {2, 3});
       Arrays out = pair(minmax(slice(in[0], {2}, {3})));
       append(out, pair(minmax(both, 1)));
       append(out, pair(minmax(both, 0, true)));
       return out;
     }},
};

}  // namespace

TEST_CASE("short-time transforms, different elements and extremes as in MLX") {
  check_assertions("signals", signals, "signals");
}

TEST_CASE("short-time transforms and different elements refuse what does not fit") {
  const auto why = [](const std::function<void()>& f) -> std::string {
    try {
      f();
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "";
  };
  const array x = zeros({100});
  const auto says = [&](const std::function<void()>& f, const std::string& text) {
    const std::string message = why(f);
    CHECK_MESSAGE(message.find(text) == 0, message);
  };
  says([&] { stft(x, 0); }, "[stft] n_fft is 0: it must be positive");
  says([&] { stft(x, 32, 0); }, "[stft] hop_length is 0: it must be positive");
  says([&] { stft(x, 32, 8, 40); }, "[stft] a window of 40 samples does not fit n_fft = 32");
  says([&] { stft(x, 32, 8, none, zeros({1, 32})); }, "[stft] a window has one axis, got float32 (1,32)");
  says([&] { stft(zeros({10}), 32, none, none, none, false); }, "[stft] float32 (10) is too short for frames of 32");
  says([&] { stft(array(1.0f), 32); }, "[stft] a signal has one axis or more, got float32 ()");
  says([&] { istft(zeros({17}, complex64), 32); }, "[istft] frequencies and frames are two axes");
  says([&] { unique(x, -1); }, "[unique] the size is -1");
  says([&] { unique(x, 2, false, false, false, zeros({2})); }, "[unique] the fill value is one element");
  says([&] { unique(zeros({0}), 2); }, "[unique] an array without elements has no first one: give a fill value");
}

}  // namespace weft::test
