// What a device of many threads makes of convolutional networks: gradients of weights with few taps as sums, pooling
// and norms computed where they are wanted, long columns in parts. The kernels are tile IR like any other, so the CPU's
// code generator runs them here.
#include <algorithm>
#include <random>
#include <sstream>

#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/derive/derive.h"
#include "graph/regions/convolution.h"
#include "graph/rows.h"
#include "models/mnist.h"
#include "weft/compile.h"
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/random.h"
#include "weft/transforms.h"

using namespace weft;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using graph::Graph;
using graph::Value;

namespace {

HostTensor random_tensor(std::mt19937_64& engine, const graph::Type& type) {
  HostTensor t{type, {}};
  std::normal_distribution<double> normal;
  for (int64_t k = num_elements(type.shape); k > 0; --k)
    t.data.push_back(kernel::round_to(Number::of_real(normal(engine)), type.dtype));
  return t;
}

struct Case {
  Shape x, g;
  std::vector<int64_t> kernel;
  graph::ConvolutionForm form;
  int calls;  // of a library: none where the gradient is sums
};

/// A convolution or the gradient of its weights, one group over two axes of space, by its definition.
class PlainConvolution final : public target::LibraryCall {
 public:
  explicit PlainConvolution(const kernel::CallDesc& desc) : d_(desc), weights_(desc.name == "convolution_weights") {}
  std::string name() const override { return "plain " + d_.name; }
  void run(std::span<void* const> operands) const override {
    const auto &x = d_.inputs[0].extents, &y = weights_ ? d_.inputs[1].extents : d_.outputs[0].extents,
               &w = weights_ ? d_.outputs[0].extents : d_.inputs[1].extents;
    const auto pixels = static_cast<const float*>(operands[0]), second = static_cast<const float*>(operands[1]);
    const auto result = static_cast<float*>(operands[2]);
    std::fill_n(result, weights_ ? w[0] * w[1] * w[2] * w[3] : y[0] * y[1] * y[2] * y[3], 0.0f);
    for (int64_t position = 0; position < y[0] * y[1] * y[2]; ++position)
      for (int64_t tap = 0; tap < w[1] * w[2]; ++tap) {
        const int64_t row = at(0, position / y[2] % y[1], tap / w[2]), column = at(1, position % y[2], tap % w[2]);
        if (row < 0 || column < 0 || row >= x[1] || column >= x[2]) continue;
        const float* const from = pixels + ((position / (y[1] * y[2]) * x[1] + row) * x[2] + column) * x[3];
        for (int64_t o = 0; o < w[0]; ++o) {
          const int64_t weight = (o * w[1] * w[2] + tap) * x[3], out = position * w[0] + o;
          for (int64_t c = 0; c < x[3]; ++c)
            if (weights_) result[weight + c] += second[out] * from[c];
            else result[out] += second[weight + c] * from[c];
        }
      }
  }

 private:
  int64_t at(size_t axis, int64_t position, int64_t tap) const {
    return position * d_.integers[1 + axis] - d_.integers[3 + axis] + tap * d_.integers[7 + axis];
  }
  kernel::CallDesc d_;
  bool weights_;
};

/// Where convolutions are a library's, as on a GPU, whatever the CPU has.
class WithConvolutions final : public weft::test::SimtTarget {
 public:
  std::shared_ptr<const target::LibraryCall> call(const kernel::CallDesc& desc) const override {
    return desc.name.starts_with("convolution") ? std::make_shared<PlainConvolution>(desc) : SimtTarget::call(desc);
  }
};

}  // namespace

TEST_CASE("convolutions with few taps, and the gradients of their weights, are arithmetic where many threads compute") {
  std::mt19937_64 engine(5);
  const Case cases[] = {
      {{4, 9, 7, 1}, {4, 9, 7, 32}, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, 0},
      {{3, 9, 8, 2}, {3, 4, 4, 16}, {2, 3}, {{2, 2}, {0, 1}, {1, 0}, {2, 1}, {1, 1}, 1}, 0},
      {{5, 20, 3}, {5, 18, 24}, {3}, {{1}, {0}, {0}, {1}, {1}, 1}, 0},
      {{4, 9, 7, 2}, {4, 9, 7, 32}, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, 1},  // 18 taps
      {{4, 9, 7, 1}, {4, 9, 7, 8}, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, 1},   // too few channels
  };
  weft::test::SimtTarget target;
  for (const Case& c : cases)
    for (const Dtype dtype : {float32, bfloat16}) {
      CAPTURE(to_string(c.g));
      Shape w = c.x;
      w.front() = c.g.back();
      std::copy(c.kernel.begin(), c.kernel.end(), w.begin() + 1);
      const auto of = [&](Dtype t) {
        const Value x = graph::parameter({c.x, t}), g = graph::parameter({c.g, t}), v = graph::parameter({w, t});
        const Value y = graph::convolution(x, v, c.form);
        // The result, its sums over channels, what one element of it differs by from the others, and the gradient.
        const Value shift =
            graph::broadcast(graph::slice(y, std::vector<int64_t>(w.size(), 0), Shape(w.size(), 1)), y.shape());
        return Graph{{x, g, v}, {y, graph::sum(y - shift, {0, 1}), graph::convolution_weights(x, g, c.form, c.kernel)}};
      };
      const std::vector<HostTensor> inputs{random_tensor(engine, {c.x, dtype}), random_tensor(engine, {c.g, dtype}),
                                           random_tensor(engine, {w, dtype})};
      std::vector<HostTensor> wide = inputs;
      for (HostTensor& t : wide) t.type.dtype = float64;
      const std::vector<HostTensor> expected = evaluate_reference(of(float64), wide);
      const auto program = build({of(dtype), {}, {}}, target);
      std::vector<graph::Storage> storages;
      for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
      const auto results = program->run(storages);
      for (size_t i = 0; i < expected.size(); ++i) {
        const HostTensor got = from_storage(results[i], of(dtype).outputs[i].type());
        double worst = 0;
        for (size_t k = 0; k < got.data.size(); ++k)
          worst =
              std::max(worst, std::abs(got.data[k].f - expected[i].data[k].f) / (1 + std::abs(expected[i].data[k].f)));
        CHECK(worst < (dtype == float32 ? 1e-5 : 0.15));  // sums of what was rounded to eight bits
      }
      if (c.calls == 0) CHECK(program->stats().library_calls == 0);
    }
}

TEST_CASE("what several sums read in turns, and nobody stores, is made for each element") {
  const array x = random::normal({6, 28, 28, 1}, float32, 0, 1, random::key(1)),
              w = random::normal({32, 3, 3, 1}, float32, 0, 1, random::key(2)),
              weights = random::normal({6, 28, 28, 32}, float32, 0, 1, random::key(3));
  const auto slope = [](const std::vector<array>& in) {
    const auto loss = [&](const std::vector<array>& v) {
      const array y = conv_general(v[0], v[1], {1}, {1});
      return sum(y * y * in[2]);
    };
    return grad(loss, {1})({in[0], in[1]});
  };
  const auto expected =
      slope({astype(x, float64), astype(w, float64), astype(weights, float64)})[0].to_vector<double>();
  eval(x, w, weights);
  WithConvolutions target;
  target::Target& before = default_target();
  set_default_target(target);
  const BuildRecord record(true);
  const auto got = weft::compile(slope, CompileOptions{})({x, w, weights})[0].to_vector<double>();
  set_default_target(before);
  REQUIRE(got.size() == expected.size());
  for (size_t k = 0; k < got.size(); ++k) CHECK(std::abs(got[k] - expected[k]) < 1e-3 + 1e-5 * std::abs(expected[k]));
  // What the elements of a turn read is asked for before any of them is computed.
  REQUIRE(!record.programs().empty());
  std::istringstream lines(record.programs()[0]->print("kernels"));
  size_t most = 0, loads = 0, computed = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto holds = [&](const char* text) { return line.find(text) != std::string::npos; };
    if (holds(" = loop ")) loads = computed = 0;
    if (holds(" = loop ") || !line.starts_with("    ")) continue;
    if (holds(" = load ")) {
      CHECK(computed == 0);
      most = std::max(most, ++loads);
    } else if (holds(": f32[") && !holds(" = constant ")) {
      ++computed;
    }
  }
  CHECK(most >= 40);  // 14 positions of the gradient, and the pixels under them
}

namespace {

struct Step {
  std::vector<array> results;  // the loss, then the gradients
  std::shared_ptr<const Program> program;
};

Step step_on(target::Target& target, int batch) {
  random::seed(12);
  models::Mnist model;
  // A background of one value, as images have it: equal extremes share a gradient.
  const array images = maximum(random::normal({batch, 28, 28, 1}), array(0.5f)),
              labels = remainder(arange(batch, int32), array(10, int32));
  std::vector<array*> state = model.state();
  for (array* a : state) eval(*a);
  eval(images, labels);
  target::Target& before = default_target();
  set_default_target(target);
  const BuildRecord record;
  const auto gradients =
      nn::value_and_grad(model, [&](const std::vector<array>& in) { return model.loss(in[0], in[1]); });
  const auto step = weft::compile(
      [&](const std::vector<array>& in) {
        auto [loss, grads] = gradients(in);
        grads.insert(grads.begin(), loss);
        return grads;
      },
      {.state = state});
  Step out{step({images, labels}), nullptr};
  for (array& a : out.results) eval(a);
  set_default_target(before);
  REQUIRE(record.programs().size() == 1);
  out.program = record.programs()[0];
  return out;
}

}  // namespace

TEST_CASE("a step of the MNIST network on many threads: the CPU's gradients, in few launches and little memory") {
  constexpr int batch = 24;
  WithConvolutions target;
  const Step cpu = step_on(target::cpu(), batch), threads = step_on(target, batch);
  REQUIRE(cpu.results.size() == threads.results.size());
  for (size_t k = 0; k < cpu.results.size(); ++k) {
    CAPTURE(k);
    const double scale = max(abs(cpu.results[k])).item<float>();
    // A value that rounds to either side of zero lets its gradient through, or does not: of 5000 positions for each
    // channel that is less than this.
    CHECK(max(abs(cpu.results[k] - threads.results[k])).item<float>() < 5e-3 * scale + 1e-6);
  }
  CHECK(threads.program->stats().launches <= 32);
  // Of the large arrays only what libraries read and write lies in memory: both convolutions' results, what stands for
  // their pooling, and the second one's gradient.
  const int64_t first = batch * 28 * 28 * 32 * 4, second = first / 2;
  CHECK(threads.program->stats().arena_bytes < first + 3 * first / 4 + 3 * second + (int64_t{4} << 20));
}

TEST_CASE("new weights of norms, which gradients of inputs still read, are not copied into their places") {
  random::seed(12);
  models::Mnist model;
  optim::SGD optimizer(model.trainable_parameters(), {.learning_rate = 0.01f});
  std::vector<array*> state = model.state();
  for (array* a : optimizer.state()) state.push_back(a);
  const array images = random::normal({8, 28, 28, 1}), labels = arange(8, int32);
  for (array* a : state) eval(*a);
  eval(images, labels);
  const auto gradients =
      nn::value_and_grad(model, [&](const std::vector<array>& in) { return model.loss(in[0], in[1]); });
  target::Target& before = default_target();
  WithConvolutions target;
  set_default_target(target);
  const BuildRecord record;
  const auto step = weft::compile(
      [&](const std::vector<array>& in) {
        const auto [loss, grads] = gradients(in);
        optimizer.update(grads);
        return std::vector<array>{loss};
      },
      {.state = state});
  const float first = step({images, labels})[0].item<float>(), second = step({images, labels})[0].item<float>();
  set_default_target(before);
  CHECK(second < first);
  REQUIRE(!record.programs().empty());
  CHECK(record.programs()[0]->stats().copies == 0);
}

namespace {

/// A GPU whose library takes the convolutions that cuDNN takes: of inputs that are neither dilated nor cut. It computes
/// nothing. `gradients`: it takes gradients of inputs as well.
class PlainForms final : public weft::test::SimtTarget {
 public:
  explicit PlainForms(bool gradients) : gradients_(gradients) {}
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return target::null().compile(kernels);
  }
  std::shared_ptr<const target::LibraryCall> call(const kernel::CallDesc& desc) const override {
    const size_t space = (desc.integers.size() - 1) / 5;
    for (size_t k = 0; k < space; ++k)
      if (desc.integers[1 + 4 * space + k] != 1 || desc.integers[1 + space + k] < 0 ||
          desc.integers[1 + 2 * space + k] < 0)
        return nullptr;
    return gradients_ || desc.name != "convolution_input" ? target::null().call(desc) : nullptr;
  }

 private:
  bool gradients_;
};

/// A convolution of which gradients are taken; `calls`: of the library, for the input's gradient where it has no call
/// for that. A transposed one is the input's gradient itself, and its result's gradient is the plain convolution.
struct Strided {
  Shape x, w;
  graph::ConvolutionForm form;
  int calls;
};

int64_t bytes_of(const std::vector<Value>& values) {
  int64_t bytes = 0;
  for (const Value& v : values) bytes += num_elements(v.shape()) * static_cast<int64_t>(v.dtype().size());
  return bytes;
}

}  // namespace

TEST_CASE("gradients of strided convolutions are convolutions by the library, without windows in memory") {
  const Strided cases[] = {
      {{8, 32, 64}, {32, 4, 64}, {{2}, {1}, {1}, {1}, {1}, 1}, 2},
      {{8, 16, 16, 32}, {64, 3, 3, 32}, {{2, 2}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, 4},
      {{8, 16, 16, 32}, {64, 4, 4, 32}, {{2, 2}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, 4},
      {{8, 16, 16, 32}, {64, 1, 1, 32}, {{2, 2}, {0, 0}, {0, 0}, {1, 1}, {1, 1}, 1}, 1},
      {{8, 32, 32, 16},
       {64, 16, 16, 16},
       {{16, 16}, {0, 0}, {0, 0}, {1, 1}, {1, 1}, 1},
       1},                                                                                  // patches: one phase's taps
      {{8, 32, 32, 16}, {64, 16, 16, 16}, {{8, 8}, {4, 4}, {4, 4}, {1, 1}, {1, 1}, 1}, 4},  // 64 phases in 4 runs
      {{8, 16, 16, 32}, {64, 3, 3, 8}, {{2, 1}, {1, 2}, {1, 2}, {1, 2}, {1, 1}, 4}, 2},
      {{4, 8, 8, 8, 16}, {32, 3, 3, 3, 16}, {{2, 2, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 1}, 8},
      {{8, 16, 16, 32}, {64, 1, 1, 32}, {{2, 2}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, 1},  // the padding reads no tap
  };
  PlainForms plain(false), whole(true);
  for (const Strided& c : cases) {
    CAPTURE(to_string(c.x));
    CAPTURE(to_string(c.w));
    const std::vector<int64_t> extents = graph::bounds(Shape(c.x.begin() + 1, c.x.end() - 1)),
                               kernel = graph::bounds(Shape(c.w.begin() + 1, c.w.end() - 1));
    const Value x = graph::parameter({c.x, bfloat16}), w = graph::parameter({c.w, bfloat16});
    const Value y = graph::convolution(x, w, c.form), g = graph::parameter(y.type());
    const Value slope = graph::convolution_input(g, w, c.form, extents);
    // The gradient is a convolution itself: that of its input is the plain one, that of its weights exchanges operands.
    const Graph graphs[] = {{{g, w}, {slope}},
                            {{x, g}, {graph::convolution_weights(x, g, c.form, kernel)}},
                            {{g, w, x}, graph::pull_back(graph::Values{slope}, graph::Values{x}, graph::Values{g, w})}};
    const int calls[] = {c.calls, 1, 2};
    for (size_t k = 0; k < 3; ++k)
      for (PlainForms* target : {&plain, &whole}) {
        CAPTURE(k);
        const auto program = build({graphs[k], {}, {}}, *target);
        INFO(program->print("plan"));
        CHECK(program->stats().library_calls == (target == &whole && k == 0 ? 1 : calls[k]));
        CHECK(program->stats().arena_bytes <= 3 * (bytes_of(graphs[k].inputs) + bytes_of(graphs[k].outputs)));
      }
  }
}

TEST_CASE("convolutions whose windows lie side by side are dots on a GPU, where its library cannot load pixels") {
  struct Patches {
    Shape x, w;
    bool dots;  // else the library's
  };
  const Patches cases[] = {
      {{8, 32, 32, 3}, {64, 8, 8, 3}, true},
      {{8, 34, 39, 3}, {64, 8, 8, 3}, true},     // rows and columns are left over
      {{8, 60, 3}, {64, 8, 3}, true},            // one axis
      {{8, 32, 32, 16}, {64, 8, 8, 16}, false},  // pixels of whole loads
      {{8, 35, 35, 3}, {64, 5, 5, 3}, false},    // windows that are no whole loads
  };
  std::mt19937_64 engine(9);
  PlainForms planned(true);
  weft::test::SimtTarget computed;
  for (const Patches& c : cases) {
    CAPTURE(to_string(c.x));
    CAPTURE(to_string(c.w));
    const std::vector<int64_t> kernel = graph::bounds(Shape(c.w.begin() + 1, c.w.end() - 1)), none(kernel.size(), 0),
                               one(kernel.size(), 1);
    const graph::ConvolutionForm form{kernel, none, none, one, one, 1};
    Shape positions = c.x;
    positions.back() = c.w[0];
    for (size_t k = 0; k < kernel.size(); ++k) positions[k + 1] = positions[k + 1].bound() / kernel[k];
    const auto of = [&](Dtype t) {
      const Value x = graph::parameter({c.x, t}), w = graph::parameter({c.w, t}),
                  bias = graph::parameter({Shape{c.w[0]}, t}), g = graph::parameter({positions, t});
      const Value y = graph::convolution(x, w, form) + graph::broadcast(bias, positions);
      return Graph{{x, w, bias, g}, {y, graph::convolution_weights(x, g, form, kernel)}};
    };
    const auto plan = build({of(bfloat16), {}, {}}, planned);
    INFO(plan->print("plan"));
    CHECK(plan->stats().library_calls == (c.dots ? 0 : 2));
    // The pixels in another order are stored once, for the convolution and for the gradient; the bias is an epilogue.
    if (c.dots) {
      CHECK(plan->stats().launches == 3);
      CHECK(plan->stats().arena_bytes <= num_elements(c.x) * 2 + 1024);
    }
    std::vector<HostTensor> inputs;
    for (const Value& v : of(float32).inputs) inputs.push_back(random_tensor(engine, v.type()));
    std::vector<graph::Storage> storages;
    for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
    const auto results = build({of(float32), {}, {}}, computed)->run(storages);
    for (HostTensor& t : inputs) t.type.dtype = float64;
    const std::vector<HostTensor> expected = evaluate_reference(of(float64), inputs);
    for (size_t i = 0; i < expected.size(); ++i) {
      const HostTensor got = from_storage(results[i], of(float32).outputs[i].type());
      double worst = 0;
      for (size_t k = 0; k < got.data.size(); ++k)
        worst =
            std::max(worst, std::abs(got.data[k].f - expected[i].data[k].f) / (1 + std::abs(expected[i].data[k].f)));
      CHECK(worst < 1e-4);
    }
  }
}
