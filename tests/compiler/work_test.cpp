// Bytes and operations of steps, and what a recorded run says about them.
#include <doctest/doctest.h>

#include <string>

#include "compiler/program.h"
#include "compiler/program/step_times.h"
#include "graph/build.h"
#include "graph/regions/convolution.h"
#include "runtime/buffer.h"
#include "runtime/trace.h"

using namespace weft;
using namespace weft::graph;

namespace {

std::vector<compiler::StepInfo> steps_of(const Values& inputs, const Values& outputs,
                                         target::Target& target = target::null()) {
  compiler::Source source;
  source.graph = {inputs, outputs};
  return compiler::build(source, target)->steps();
}

Value parameter_of(const Shape& shape, int64_t slot, Dtype dtype = float32) { return parameter({shape, dtype}, slot); }

}  // namespace

TEST_CASE("work: a map reads its operands once and writes its result") {
  const Value a = parameter_of({100, 30}, 0), b = parameter_of({30}, 1);
  const auto steps = steps_of({a, b}, {exp(a) * broadcast(b, {100, 30}) + a});
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].bytes == 4.0 * (3000 + 30 + 3000));
  CHECK(steps[0].flops == 3 * 3000.0);
  CHECK(std::string(steps[0].kind) == "kernel");
  CHECK(steps[0].what == "exp mul add -> f32(100,30)");
}

TEST_CASE("work: reductions, slices and gathers count what is looked at") {
  const Value a = parameter_of({64, 50}, 0);
  const auto reduced = steps_of({a}, {sum(square(a), {1})});
  REQUIRE(reduced.size() == 1);
  CHECK(reduced[0].bytes == 4.0 * (3200 + 64));
  CHECK(reduced[0].flops == 2 * 3200.0);
  const auto sliced = steps_of({a}, {slice(a, {0, 0}, {2, 50}) + 1.0});
  REQUIRE(sliced.size() == 1);
  CHECK(sliced[0].bytes == 4.0 * (100 + 100));
  const auto halves = steps_of({a}, {slice(a, {0, 0}, {64, 25}) * slice(a, {0, 25}, {64, 25})});
  REQUIRE(halves.size() == 1);
  CHECK(halves[0].bytes == 4.0 * (3200 + 1600));
  const auto differences = steps_of({a}, {slice(a, {1, 0}, {63, 50}) - slice(a, {0, 0}, {63, 50})});
  REQUIRE(differences.size() == 1);
  CHECK(differences[0].bytes == 4.0 * (3200 + 63 * 50));
  const Value rows = parameter_of({3}, 1, int32);
  const auto taken = steps_of({a, rows}, {take(a, rows, 0) * 2.0});
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].bytes == 4.0 * (150 + 3 + 150));
  CHECK(taken[0].flops == 150.0);
}

TEST_CASE("work: products, by a library or not") {
  const Value a = parameter_of({8, 64, 32}, 0), b = parameter_of({8, 32, 48}, 1);
  for (target::Target* target : {&target::null(), &target::cpu()}) {
    const auto steps = steps_of({a, b}, {matmul(a, b)}, *target);
    REQUIRE(steps.size() == 1);
    CHECK(steps[0].flops == 2.0 * 8 * 64 * 32 * 48);
    CHECK(steps[0].bytes == 4.0 * 8 * (64 * 32 + 32 * 48 + 64 * 48));
    CHECK(steps[0].arithmetic == Arithmetic::f32);
  }
  const Value c = parameter_of({64, 64}, 0, bfloat16);
  CHECK(steps_of({c}, {matmul(c, c)})[0].arithmetic == Arithmetic::f16);
  const Value e = parameter({c.shape(), float8_e4m3});
  CHECK(steps_of({e}, {matmul(e, e)})[0].arithmetic == Arithmetic::f8);
  CHECK(steps_of({a}, {exp(a)})[0].arithmetic == Arithmetic::vector);
}

TEST_CASE("work: convolutions and their gradients, by a library or as products over windows") {
  const Value x = parameter_of({4, 18, 18, 16}, 0), w = parameter_of({32, 3, 3, 8}, 1);
  const ConvolutionForm form{
      .stride = {2, 2}, .low = {1, 1}, .high = {1, 1}, .dilation = {1, 1}, .input_dilation = {1, 1}, .groups = 2};
  const Value y = convolution(x, w, form), g = parameter_of(y.shape(), 2);
  REQUIRE(y.shape() == Shape{4, 9, 9, 32});
  const double products = 2.0 * (4 * 9 * 9 * 32) * (3 * 3 * 8);
  const auto flops = [](const Values& inputs, const Value& output, target::Target& target) {
    double sum = 0;
    for (const auto& step : steps_of(inputs, {output}, target)) sum += step.flops;
    return sum;
  };
  for (target::Target* target : {&target::null(), &target::cpu()}) {
    CHECK(flops({x, w}, y, *target) == products);
    CHECK(flops({x, g}, convolution_weights(x, g, form, {3, 3}), *target) == products);
  }
  // Steps leave zeros between the elements of the cotangent, which nobody multiplies.
  const double counted = flops({g, w}, convolution_input(g, w, form, {18, 18}), target::cpu());
  CHECK(counted == doctest::Approx(products).epsilon(0.01));
}

TEST_CASE("work: a recorded run has one slice for each step, with its figures, inside the run") {
  const Value a = parameter_of({256, 256}, 0);
  compiler::Source source;
  source.graph = {{a}, {sum(exp(matmul(a, a)), {1})}};
  runtime::start_recording();
  const auto program = compiler::build(source, target::cpu());
  const Storage input{runtime::allocate(256 * 256 * 4), 0, row_major_strides({256, 256})};
  std::fill_n(static_cast<float*>(input.buffer->data()), 256 * 256, 0.01f);
  program->run(std::span(&input, 1));
  const runtime::Timeline t = runtime::stop_recording();
  size_t steps = 0;
  double run_end = 0;
  std::vector<std::string> stages;
  for (const runtime::Slice& s : t.slices) {
    if (std::string(s.kind) == "compiler") stages.push_back(t.names[static_cast<size_t>(s.name)]);
    if (std::string(s.kind) == "program") run_end = s.start + s.length;
    if (s.step < 0) continue;
    const compiler::StepInfo& info = program->steps()[static_cast<size_t>(s.step)];
    CHECK(s.program == program->number());
    CHECK(s.bytes == info.bytes);
    CHECK(s.flops == info.flops);
    CHECK(t.names[static_cast<size_t>(s.name)] == compiler::label(info));
    ++steps;
  }
  CHECK(steps == program->steps().size());
  CHECK(run_end > 0);
  std::vector<std::string> expected;
  for (const auto& [name, ms] : program->stats().passes) expected.push_back(name);
  CHECK(expected.size() >= 5);
  for (const char* last : {"compile", "build"}) expected.emplace_back(last);
  CHECK(stages == expected);
  REQUIRE_FALSE(t.samples.empty());
  CHECK(t.samples[0].value > 0);
}
