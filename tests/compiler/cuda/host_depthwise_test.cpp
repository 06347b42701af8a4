// The hand-written kernels for depthwise convolutions (target/cuda/handwritten/convolution/depthwise.h), run on the CPU
// thread by thread, against float64: dtypes, axes, strides, dilations, padding, and every way in which channels,
// outputs and parts may be left over.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <random>

#include "compiler/host_cuda/host_source.h"
#include "compiler/support.h"
#include "graph/regions/convolution.h"
#include "graph/rows.h"
#include "target/cuda/handwritten/convolution/depthwise.h"

using namespace weft;
using namespace weft::compiler::testing;
namespace cuda = weft::target::cuda;

namespace {

struct Case {
  Shape x;
  std::vector<int64_t> kernel;
  graph::ConvolutionForm form;
};

const Case cases[] = {
    {{3, 14, 14, 40}, {7, 7}, {{1, 1}, {3, 3}, {3, 3}, {1, 1}, {1, 1}, 40}},
    {{2, 7, 7, 136}, {7, 7}, {{1, 1}, {3, 3}, {3, 3}, {1, 1}, {1, 1}, 136}},  // tiles of channels
    {{2, 9, 13, 76}, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 76}},   // the last tile is not full
    {{3, 11, 17, 6}, {3, 5}, {{2, 2}, {1, 2}, {0, 1}, {1, 1}, {1, 1}, 6}},    // strides, uneven padding
    {{2, 15, 12, 5}, {3, 2}, {{1, 3}, {0, 4}, {5, 0}, {3, 2}, {1, 1}, 5}},    // dilation, one channel a thread
    {{5, 33, 24}, {4}, {{1}, {3}, {0}, {1}, {1}, 24}},                        // one axis
    {{1, 4, 3, 2}, {1, 1}, {{1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}, 2}},      // one tap
};

HostTensor random_tensor(std::mt19937_64& engine, const graph::Type& type) {
  HostTensor t{type, {}};
  std::normal_distribution<double> normal;
  for (int64_t k = num_elements(type.shape); k > 0; --k)
    t.data.push_back(kernel::round_to(Number::of_real(normal(engine)), type.dtype));
  return t;
}

kernel::CallDesc::Array array_of(const graph::Type& type) { return {type.dtype, graph::bounds(type.shape)}; }

kernel::CallDesc desc_of(const char* name, const graph::ConvolutionForm& form, const graph::Type& first,
                         const graph::Type& second, const graph::Type& result) {
  kernel::CallDesc d;
  d.name = name;
  d.inputs = {array_of(first), array_of(second)}, d.outputs = {array_of(result)};
  d.integers = {form.groups};
  for (const auto* list : {&form.stride, &form.low, &form.high, &form.dilation, &form.input_dilation})
    d.integers.insert(d.integers.end(), list->begin(), list->end());
  return d;
}

}  // namespace

TEST_CASE("depthwise convolutions and the gradients of their weights by hand-written kernels, against float64") {
  if (weft::test::host_compiler().empty()) {
    MESSAGE("skipped: no C++ compiler");
    return;
  }
  const target::Machine& machine = target::stated_machine("NVIDIA H200");
  std::mt19937_64 engine(7);
  int number = 0;
  for (const Case& c : cases) {
    const Dtype dtype = std::array{float32, bfloat16, float16}[number++ % 3];
    CAPTURE(to_string(c.x));
    CAPTURE(dtype_name(dtype));
    Shape filter = c.x;
    filter.front() = c.x.back(), filter.back() = 1;
    std::copy(c.kernel.begin(), c.kernel.end(), filter.begin() + 1);
    const graph::Value x = graph::parameter({c.x, float64}), w = graph::parameter({filter, float64}),
                       y = graph::convolution(x, w, c.form), g = graph::parameter({y.shape(), float64});
    const graph::Graph both{{x, w, g}, {y, graph::convolution_weights(x, g, c.form, c.kernel)}};
    const graph::Type tx{c.x, dtype}, tw{filter, dtype}, ty{y.shape(), dtype};
    std::vector<HostTensor> inputs{random_tensor(engine, tx), random_tensor(engine, tw), random_tensor(engine, ty)};
    std::vector<graph::Storage> storages;
    for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
    for (HostTensor& t : inputs) t.type.dtype = float64;
    const std::vector<HostTensor> expected = evaluate_reference(both, inputs);

    for (const bool weights : {false, true}) {
      const graph::Type& result = weights ? tw : ty;
      const kernel::CallDesc desc =
          desc_of(weights ? "convolution_weights" : "convolution", c.form, tx, weights ? ty : tw, result);
      const auto match = weights ? cuda::match_depthwise_weights(desc, machine) : cuda::match_depthwise(desc, machine);
      REQUIRE(match.has_value());
      CAPTURE(match->form);
      HostTensor empty{result, std::vector<Number>(expected[weights].data.size())};
      graph::Storage storage = to_storage(empty);
      const graph::Storage& second = storages[weights ? 2 : 1];
      void* const operands[] = {storages[0].buffer->data(), second.buffer->data(), storage.buffer->data()};
      weft::test::HostHandwritten(cuda::handwritten_kernel(weights ? "depthwise_weights" : "depthwise"), *match)
          .run(operands);
      const HostTensor got = from_storage(storage, result);
      double worst = 0;
      for (size_t k = 0; k < got.data.size(); ++k)
        worst = std::max(
            worst, std::abs(got.data[k].f - expected[weights].data[k].f) / (1 + std::abs(expected[weights].data[k].f)));
      CHECK(worst < (dtype == float32 ? 2e-5 : dtype == float16 ? 2e-3 : 1e-2));
    }
  }
}

TEST_CASE("what hand-written kernels for depthwise convolutions take, and how the work is divided") {
  const target::Machine& machine = target::stated_machine("NVIDIA H200");
  const graph::ConvolutionForm same{{1, 1}, {3, 3}, {3, 3}, {1, 1}, {1, 1}, 160};
  const graph::Type x{{64, 14, 14, 160}, bfloat16}, w{{160, 7, 7, 1}, bfloat16};
  const kernel::CallDesc plain = desc_of("convolution", same, x, w, x);
  const auto form = cuda::depthwise_form(plain, machine.processors);
  REQUIRE(form.has_value());
  CHECK(form->vector == 4);
  CHECK(form->tile == 8);  // whole sectors
  CHECK(form->run == 7);   // no outputs past the end of a row
  CHECK(form->tiles() == 5);
  const auto forward = cuda::match_depthwise(plain, machine);
  CHECK(forward->may_win);
  CHECK(forward->entries[0].shape.grid_x == 560);  // smaller blocks: the SMs end together

  const auto changed = [&](const auto& change) {
    kernel::CallDesc d = plain;
    change(d);
    return cuda::depthwise_form(d, machine.processors).has_value();
  };
  CHECK(changed([](kernel::CallDesc&) {}));
  CHECK_FALSE(changed([](kernel::CallDesc& d) { d.integers[0] = 80, d.inputs[1].extents[3] = 2; }));
  CHECK_FALSE(changed([](kernel::CallDesc& d) { d.integers[9] = 2; }));            // a dilated input
  CHECK_FALSE(changed([](kernel::CallDesc& d) { d.integers[3] = -1; }));           // an input that is cut
  CHECK_FALSE(changed([](kernel::CallDesc& d) { d.inputs[1].extents[2] = 31; }));  // a row of weights in registers
  CHECK_FALSE(changed([](kernel::CallDesc& d) { d.inputs[0].extents[0] = 0; }));
  CHECK_FALSE(
      changed([](kernel::CallDesc& d) { d.inputs[0].dtype = d.inputs[1].dtype = d.outputs[0].dtype = float64; }));
  kernel::CallDesc little = plain;
  little.inputs[0].extents[0] = little.outputs[0].extents[0] = 1;
  little.inputs[0].extents[3] = little.outputs[0].extents[3] = little.inputs[1].extents[0] = little.integers[0] = 8;
  CHECK_FALSE(cuda::match_depthwise(little, machine)->may_win);  // most of its time is the launch
}
