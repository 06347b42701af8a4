// The kernels of `weft bench tutorials`: what NVRTC makes of them, without a GPU.
#include <doctest/doctest.h>

#include <string>

#include "examples/kernels/tutorials.h"
#include "kernel/language/trace.h"
#include "target/cuda/codegen/render.h"
#include "target/cuda/cuda_support.h"
#include "target/cuda/driver/nvrtc.h"
#include "target/cuda/host_kernels.h"
#include "target/cuda/inspect.h"
#include "target/machine.h"
#include "tools/weft/bench/tutorials.h"

using namespace weft;

TEST_CASE("the kernels of the tutorials compile for sm_90a, and none spills registers") {
  std::string why;
  if (!target::cuda::nvrtc_available(&why)) {
    MESSAGE("skipped: " << why);
    return;
  }
  const target::Machine gpu = target::gpu_of("sm_90a");
  for (const tool::Tutorial& t : tool::tutorials()) {
    CAPTURE(t.name);
    for (const k::Program& program : t.programs) {
      CAPTURE(program.data().kernel.name);
      const target::cuda::KernelCode code = target::cuda::code_of(program.data().kernel, gpu);
      CHECK(code.usage.spill_store_bytes == 0);
      CHECK(!code.serialized);
    }
  }
}

TEST_CASE("tiles that an array of integers chooses are copied by TMA, thread by thread") {
  if (!test::can_run_kernels()) return;
  constexpr target::cuda::Features hopper{.warpgroups = true, .clusters = true};
  const std::vector<int32_t> list{1, 1, 0, 0};
  const k::Program program =
      k::kernel("grouped_rows", tutorials::grouped_rows<k::f16>)
          .config({.m = 128, .n = 256, .k = 64})
          .grid({2})
          .outputs([](const array& a, const array& b, const array&) {
            return Shape{a.shape(0), b.shape(2)};
          })
          .program(zeros({256, 128}, float16), zeros({2, 128, 256}, float16), array(list.data(), {2, 2}));
  test::RandomCase c{program.data().kernel, {}, {}, {}, program.programs()};
  for (const k::Param& p : program.params()) {
    const int64_t elements = static_cast<int64_t>(test::size_of(p.dims));
    c.elements.push_back(elements);
    c.buffers.emplace_back(static_cast<size_t>(elements) * p.dtype.size());
    const std::vector<double> drawn = test::numbers(static_cast<size_t>(elements), c.elements.size());
    for (size_t i = 0; i < drawn.size(); ++i)
      kernel::write_element(
          c.buffers.back().data(), p.dtype, static_cast<int64_t>(i),
          p.dtype == int32 ? Number::of_int(list[i]) : kernel::round_to(Number::of_real(drawn[i]), p.dtype));
  }
  const std::string source =
      target::cuda::render(kernel::expand(c.kernel, target::cuda::operators), "k", {}, hopper).source;
  CHECK(source.find("copied by TMA, by a warpgroup of its own") != std::string::npos);
  test::check_on_host({c}, {}, hopper);
}
