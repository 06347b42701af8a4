// The hand-written kernel for convolutions of few channels (target/cuda/handwritten/convolution/convolution.h): what it
// takes, that its sums stay in registers, and what it computes, against float64.
#include "target/cuda/driver/nvrtc.h"
#include "target/cuda/handwritten/convolution/convolution.h"
#include "target/cuda/handwritten/loaded.h"
#include "target/own_call.h"

namespace cuda = weft::target::cuda;
using namespace weft;
using namespace weft::test;
using kernel::CallDesc;

namespace {

constexpr int64_t shared_bytes = 227 << 10;  // of a Hopper SM
const target::Machine& machine = target::stated_machine("NVIDIA H200");
const cuda::HandwrittenKernel& table_row = cuda::handwritten_kernel("convolution");

/// Axes of space one after the other.
struct Case {
  std::vector<int64_t> x, kernel;
  int64_t out;
  std::vector<int64_t> low, high, dilation;
};

CallDesc desc_of(const Case& c, Dtype dtype = float32) {
  CallDesc d;
  d.name = "convolution";
  const size_t space = c.kernel.size();
  std::vector<int64_t> w{c.out}, y{c.x[0]};
  w.insert(w.end(), c.kernel.begin(), c.kernel.end());
  w.push_back(c.x.back());
  for (size_t k = 0; k < space; ++k) y.push_back(c.x[1 + k] + c.low[k] + c.high[k] - (c.kernel[k] - 1) * c.dilation[k]);
  y.push_back(c.out);
  d.inputs = {{dtype, c.x}, {dtype, w}};
  d.outputs = {{dtype, y}};
  d.integers = {1};
  d.integers.insert(d.integers.end(), space, 1);
  for (const auto* part : {&c.low, &c.high, &c.dilation})
    d.integers.insert(d.integers.end(), part->begin(), part->end());
  d.integers.insert(d.integers.end(), space, 1);
  d.numerics.tf32 = true;
  return d;
}

/// Padding on both sides, on one, on none and more than taps reach; dilation; several slices of channels, one; one
/// group of warps; one axis; one tap.
const Case cases[] = {
    {{40, 14, 14, 64}, {3, 3}, 32, {1, 1}, {1, 1}, {1, 1}}, {{133, 14, 14, 32}, {3, 3}, 64, {1, 1}, {1, 1}, {1, 1}},
    {{5, 9, 11, 96}, {3, 2}, 24, {1, 0}, {0, 1}, {1, 2}},   {{3, 7, 5, 32}, {2, 2}, 128, {3, 0}, {0, 4}, {2, 1}},
    {{2, 9, 8, 64}, {5, 5}, 8, {0, 0}, {0, 0}, {1, 1}},     {{7, 50, 32}, {3}, 40, {1}, {1}, {3}},
    {{4, 6, 6, 32}, {1, 1}, 16, {0, 0}, {0, 0}, {1, 1}},
};

std::vector<double> expected(const CallDesc& d, const cuda::ConvolutionForm& f, const std::vector<double>& x,
                             const std::vector<double>& w) {
  std::vector<double> y;
  for (int64_t b = 0; b < d.inputs[0].extents[0]; ++b)
    for (int64_t p = 0; p < f.output[0] * f.output[1]; ++p)
      for (int64_t o = 0; o < f.out; ++o) {
        double sum = 0;
        for (int64_t tap = 0; tap < f.kernel[0] * f.kernel[1]; ++tap) {
          const int64_t row = p / f.output[1] - f.low[0] + tap / f.kernel[1] * f.dilation[0],
                        column = p % f.output[1] - f.low[1] + tap % f.kernel[1] * f.dilation[1];
          if (row < 0 || column < 0 || row >= f.input[0] || column >= f.input[1]) continue;
          const double *from = &x[static_cast<size_t>(((b * f.input[0] + row) * f.input[1] + column) * f.in)],
                       *by = &w[static_cast<size_t>((o * f.kernel[0] * f.kernel[1] + tap) * f.in)];
          for (int64_t c = 0; c < f.in; ++c) sum += from[c] * by[c];
        }
        y.push_back(sum);
      }
  return y;
}

}  // namespace

TEST_CASE("hand-written convolutions: what the kernel takes") {
  for (const Case& c : cases) {
    const auto form = cuda::convolution_form(desc_of(c), shared_bytes);
    REQUIRE(form.has_value());
    CAPTURE(form->symbol());
    CHECK(form->shared_bytes <= shared_bytes);
    CHECK(form->plane_bytes / 16 >= 128 + form->reach());
    CHECK(form->plane_bytes / 16 % 2 == 1);
    // The line has a pixel for every element of an image, and what a tap reads beyond a row are zeros.
    for (size_t axis = 0; axis < 2; ++axis) {
      CHECK(form->lines[axis] >= form->output[axis]);
      CHECK(form->lines[axis] >= form->input[axis] + form->low[axis]);
      CHECK(form->output[axis] - 1 + (form->kernel[axis] - 1) * form->dilation[axis] <
            form->lines[axis] + form->low[axis]);
    }
  }
  const auto refused = [](Case c, auto edit, Dtype dtype = float32) {
    edit(c);
    return !cuda::convolution_form(desc_of(c, dtype), shared_bytes).has_value();
  };
  const auto as_it_is = [](Case&) {};
  CHECK(!refused(cases[0], as_it_is));
  CHECK(refused(cases[0], as_it_is, bfloat16));
  CHECK(refused(cases[0], [](Case& c) { c.x.back() = 48; }));
  CHECK(refused(cases[0], [](Case& c) { c.out = 36; }));
  CHECK(refused(cases[0], [](Case& c) { c.out = 136; }));
  CHECK(refused(cases[0], [](Case& c) { c.low = {-1, 1}; }));
  CHECK(refused(cases[0], [](Case& c) { c.x[2] = 60; }));       // taps reach too far for a thread's registers
  CHECK(refused(cases[0], [](Case& c) { c.x.back() = 256; }));  // the weights do not fit
  CallDesc groups = desc_of(cases[0]), dilated = groups, strided = groups, weights = groups, exact = groups;
  groups.integers[0] = 2, strided.integers[1] = 2, dilated.integers.back() = 2, weights.name = "convolution_weights",
  exact.numerics.tf32 = false;
  for (const CallDesc& d : {groups, dilated, strided, weights, exact}) CHECK(!cuda::convolution_form(d, shared_bytes));
  CHECK(!cuda::convolution_form(desc_of(cases[0]), 0));  // no tensor cores
  CHECK(cuda::convolution_may_win(*cuda::convolution_form(desc_of(cases[0]), shared_bytes), 64));
  CHECK(!cuda::convolution_may_win(*cuda::convolution_form(desc_of(cases[0]), shared_bytes), 1));
}

TEST_CASE("hand-written convolutions: sums stay in registers") {
  std::string why;
  if (!cuda::nvrtc_available(&why)) {
    MESSAGE("skipped: " << why);
    return;
  }
  for (const Case* c : {&cases[0], &cases[1], &cases[3]}) {
    const std::optional<cuda::Match> match = cuda::match_convolution(desc_of(*c), machine);
    REQUIRE(match.has_value());
    std::string log;
    CHECK(!cuda::compile(cuda::source_of(table_row, match->parameters), "sm_90a", {}, &log).empty());
    CHECK(log.find("serialized") == std::string::npos);  // products go on beside what threads do
    const auto usage = cuda::parse_usage(log);
    REQUIRE(usage.size() == 1);
    CHECK(usage[0].spill_store_bytes == 0);
    CHECK(usage[0].stack_bytes == 0);
    CHECK(usage[0].registers * match->entries[0].shape.threads <= 65536);
  }
}

TEST_CASE("hand-written convolutions on the device: against float64, the same bits twice, and beside cuDNN") {
  if (!on_hopper()) return;
  cuda::Context& context = test::context();
  for (const Case& c : cases) {
    const CallDesc d = desc_of(c);
    const auto form = cuda::convolution_form(d, shared_bytes);
    REQUIRE(form.has_value());
    CAPTURE(form->symbol());
    const std::vector<double> x = rounded(numbers(size_of(c.x), 1), float32),
                              w = rounded(numbers(size_of(d.inputs[1].extents), 2), float32);
    const std::vector<double> want = expected(d, *form, x, w);
    // Numbers of size 0.6, each product off by 2^-11 of itself at most in either factor: errors add up like their
    // squares.
    const double bound = 6 * 0.33 * 0x1p-11 * std::sqrt(static_cast<double>(form->weight_bytes() / 4 / form->out));
    const auto compile = [](const std::string& source) { return cuda::compile(source, "sm_90a"); };
    const std::optional<cuda::Match> match = cuda::match_convolution(d, machine);
    REQUIRE(match.has_value());
    const auto own =
        cuda::handwritten_call(std::make_shared<cuda::LoadedKernel>(
                                   context, compile, cuda::source_of(table_row, match->parameters), match->entries),
                               *match);
    check_own_call(d, *own, x, w, want, bound);
  }
}
