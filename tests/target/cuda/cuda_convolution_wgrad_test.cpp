// The hand-written kernels for gradients of convolutions' weights
// (target/cuda/handwritten/convolution/convolution_wgrad.h): what they take, that their sums stay in registers, and
// what they compute, against float64.
#include "target/cuda/driver/nvrtc.h"
#include "target/cuda/handwritten/convolution/convolution_wgrad.h"
#include "target/cuda/handwritten/loaded.h"
#include "target/own_call.h"

namespace cuda = weft::target::cuda;
using namespace weft;
using namespace weft::test;
using kernel::CallDesc;

namespace {

constexpr int64_t shared_bytes = 227 << 10;  // of a Hopper SM
const target::Machine& machine = target::stated_machine("NVIDIA H200");
const cuda::HandwrittenKernel& table_row = cuda::handwritten_kernel("convolution_wgrad");

/// Axes of space one after the other.
struct Case {
  std::vector<int64_t> x, g, kernel, stride, low, high, dilation;
};

CallDesc desc_of(const Case& c, Dtype dtype = float32) {
  CallDesc d;
  d.name = "convolution_weights";
  std::vector<int64_t> w{c.g.back()};
  w.insert(w.end(), c.kernel.begin(), c.kernel.end());
  w.push_back(c.x.back());
  d.inputs = {{dtype, c.x}, {dtype, c.g}};
  d.outputs = {{dtype, w}};
  d.integers = {1};
  for (const auto* part : {&c.stride, &c.low, &c.high, &c.dilation})
    d.integers.insert(d.integers.end(), part->begin(), part->end());
  d.integers.insert(d.integers.end(), c.kernel.size(), 1);
  d.numerics.tf32 = true;
  return d;
}

/// Padding, strides, dilation, edges of tiles, one tap and many, several blocks of channels, one axis.
const Case cases[] = {
    {{40, 14, 14, 32}, {40, 14, 14, 64}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {{13, 14, 15, 64}, {13, 7, 7, 96}, {3, 2}, {2, 2}, {1, 0}, {0, 1}, {1, 2}},
    {{5, 9, 9, 32}, {5, 9, 9, 128}, {5, 5}, {1, 1}, {2, 2}, {2, 2}, {1, 1}},
    {{3, 5, 6, 32}, {3, 5, 6, 64}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}},
    {{2, 40, 33, 32}, {2, 39, 32, 32}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, {1, 1}},
    {{7, 50, 32}, {7, 48, 64}, {3}, {1}, {0}, {0}, {1}},
};

std::vector<double> expected(const CallDesc& d, const cuda::WgradForm& f, const std::vector<double>& x,
                             const std::vector<double>& g) {
  std::vector<double> out(static_cast<size_t>(f.results()));
  for (int64_t b = 0; b < d.inputs[0].extents[0]; ++b)
    for (int64_t p = 0; p < f.output[0] * f.output[1]; ++p)
      for (int64_t tap = 0; tap < f.kernel[0] * f.kernel[1]; ++tap) {
        const int64_t row = p / f.output[1] * f.stride[0] - f.low[0] + tap / f.kernel[1] * f.dilation[0],
                      column = p % f.output[1] * f.stride[1] - f.low[1] + tap % f.kernel[1] * f.dilation[1];
        if (row < 0 || column < 0 || row >= f.input[0] || column >= f.input[1]) continue;
        const double *from = &x[static_cast<size_t>(((b * f.input[0] + row) * f.input[1] + column) * f.in)],
                     *by = &g[static_cast<size_t>((b * f.output[0] * f.output[1] + p) * f.out)];
        for (int64_t o = 0; o < f.out; ++o)
          for (int64_t c = 0; c < f.in; ++c)
            out[static_cast<size_t>((o * f.kernel[0] * f.kernel[1] + tap) * f.in + c)] += by[o] * from[c];
      }
  return out;
}

}  // namespace

TEST_CASE("hand-written weight gradients: what the kernels take") {
  for (const Case& c : cases) {
    const auto form = cuda::wgrad_form(desc_of(c), shared_bytes);
    REQUIRE(form.has_value());
    CAPTURE(form->symbol());
    CHECK(form->shared_bytes <= shared_bytes / 2);
    CHECK(form->stages >= 2);
    CHECK(form->depth() >= form->tile[0] * form->tile[1]);
    CHECK(form->depth() % (8 * form->parts) == 0);
    CHECK(cuda::wgrad_parts(*form, c.x[0], 132) <= c.x[0] * form->tiles_of_image());
  }
  const auto refused = [](Case c, auto edit, Dtype dtype = float32) {
    edit(c);
    return !cuda::wgrad_form(desc_of(c, dtype), shared_bytes).has_value();
  };
  const auto as_it_is = [](Case&) {};
  CHECK(!refused(cases[0], as_it_is));
  CHECK(refused(cases[0], as_it_is, bfloat16));
  CHECK(refused(cases[0], [](Case& c) { c.x.back() = 48; }));
  CHECK(refused(cases[0], [](Case& c) { c.g.back() = 72; }));
  CHECK(refused(cases[0], [](Case& c) { c.low = {-1, 1}; }));
  CHECK(refused(cases[0], [](Case& c) { c.dilation = {500, 500}; }));  // no tile fits
  CallDesc groups = desc_of(cases[0]), dilated = groups, forward = groups, exact = groups;
  groups.integers[0] = 2, dilated.integers.back() = 2, forward.name = "convolution", exact.numerics.tf32 = false;
  for (const CallDesc& d : {groups, dilated, forward, exact}) CHECK(!cuda::wgrad_form(d, shared_bytes));
  CHECK(!cuda::wgrad_form(desc_of(cases[0]), 0));  // no tensor cores

  Case large = cases[0];
  large.x[0] = large.g[0] = 1024;
  CHECK(cuda::wgrad_may_win(*cuda::wgrad_form(desc_of(large), shared_bytes), 1024, 132));
  CHECK(!cuda::wgrad_may_win(*cuda::wgrad_form(desc_of(cases[0]), shared_bytes), 1, 132));
  large.x.back() = large.g.back() = 512;  // little to reduce for each of many results
  CHECK(!cuda::wgrad_may_win(*cuda::wgrad_form(desc_of(large), shared_bytes), 1024, 132));
}

TEST_CASE("hand-written weight gradients: sums stay in registers") {
  std::string why;
  if (!cuda::nvrtc_available(&why)) {
    MESSAGE("skipped: " << why);
    return;
  }
  for (const Case* c : {&cases[0], &cases[1], &cases[3]}) {
    const std::optional<cuda::Match> match = cuda::match_convolution_wgrad(desc_of(*c), machine);
    REQUIRE(match.has_value());
    std::string log;
    CHECK(!cuda::compile(cuda::source_of(table_row, match->parameters), "sm_90a", {}, &log).empty());
    const auto usage = cuda::parse_usage(log);
    REQUIRE(usage.size() == 2);
    for (const auto& use : usage) {
      CAPTURE(use.name);
      CHECK(use.spill_store_bytes == 0);
      CHECK(use.stack_bytes == 0);
      CHECK(use.registers * match->entries[0].shape.threads * 2 <= 65536);  // two blocks an SM
    }
  }
}

TEST_CASE("hand-written weight gradients on the device: against float64, the same bits twice, and beside cuDNN") {
  if (!on_hopper()) return;
  cuda::Context& context = test::context();
  for (const Case& c : cases) {
    const CallDesc d = desc_of(c);
    const auto form = cuda::wgrad_form(d, shared_bytes);
    REQUIRE(form.has_value());
    CAPTURE(form->symbol());
    const std::vector<double> x = rounded(numbers(size_of(c.x), 1), float32),
                              g = rounded(numbers(size_of(c.g), 2), float32);
    const std::vector<double> want = expected(d, *form, x, g);
    // Numbers of size 0.6, each product off by 2^-11 of itself at most in either factor: errors add up like their
    // squares.
    const double bound =
        6 * 0.33 * 0x1p-11 * std::sqrt(static_cast<double>(c.x[0] * form->output[0] * form->output[1]));
    const auto compile = [](const std::string& source) { return cuda::compile(source, "sm_90a"); };
    const std::optional<cuda::Match> match = cuda::match_convolution_wgrad(d, machine);
    REQUIRE(match.has_value());
    const auto own =
        cuda::handwritten_call(std::make_shared<cuda::LoadedKernel>(
                                   context, compile, cuda::source_of(table_row, match->parameters), match->entries),
                               *match);
    check_own_call(d, *own, x, g, want, bound);
  }
}
