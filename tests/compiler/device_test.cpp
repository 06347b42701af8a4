// Programs on a device with memory of its own: what is copied and what is not, and runs that are written down.
#include <atomic>
#include <thread>

#include "compiler/fake_device.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/regions/composites.h"
#include "runtime/trace.h"
#include "weft/array.h"
#include "weft/compile.h"
#include "weft/control.h"
#include "weft/linalg.h"
#include "weft/ops.h"

using namespace weft;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using weft::test::FakeTarget;

namespace {

FakeTarget& fake() {
  static auto* const target = new FakeTarget;  // programs in the table outlive tests
  return *target;
}

/// Compiled functions build their programs for the fake device.
struct OnFake {
  OnFake() { set_default_target(fake()); }
  ~OnFake() { set_default_target(weft::test::target_under_test()); }
};

HostTensor counting(const Shape& shape) {
  HostTensor t{{shape, float32}, {}};
  for (int64_t k = 0; k < num_elements(shape); ++k)
    t.data.push_back(Number::of_real(0.001 * static_cast<double>(k % 97)));
  return t;
}

struct Copies {
  int64_t in = runtime::counters().to_device, out = runtime::counters().to_host;
  int64_t to_device() const { return runtime::counters().to_device - in; }
  int64_t to_host() const { return runtime::counters().to_host - out; }
  int64_t across = runtime::counters().between_devices;
  int64_t between() const { return runtime::counters().between_devices - across; }
};

}  // namespace

TEST_CASE("a buffer is copied where it is wanted, once, and again after it was overwritten") {
  weft::test::FakeDevice device;
  const runtime::BufferRef b = runtime::allocate(16);
  std::memcpy(b->data(), "0123456789abcdef", 16);
  Copies copies;
  void* there = b->on(&device);
  CHECK(std::memcmp(there, "0123456789abcdef", 16) == 0);
  CHECK(b->on(&device) == there);
  CHECK(copies.to_device() == 1);
  std::memcpy(there, "fedcba", 6);
  b->overwritten_on(&device);
  CHECK(std::memcmp(b->data(), "fedcba6789abcdef", 16) == 0);
  CHECK(std::memcmp(b->data(), "fedcba6789abcdef", 16) == 0);
  CHECK(copies.to_host() == 1);
  static_cast<char*>(b->data())[0] = 'F';
  b->overwritten_on(nullptr);
  CHECK(std::memcmp(b->on(&device), "Fedcba", 6) == 0);
  CHECK(copies.to_device() == 2);

  {
    const runtime::BufferRef born_there = runtime::allocate_on(&device, 8);
    CHECK(device.blocks == 2);
    std::memcpy(born_there->on(&device), "12345678", 8);
    CHECK(std::memcmp(born_there->data(), "12345678", 8) == 0);
  }
  CHECK(device.blocks == 1);
}

TEST_CASE("what lies on one device comes to another directly where that reaches it, by the host otherwise") {
  for (const bool reached : {true, false}) {
    weft::test::FakeDevice first(0), second(1, reached);
    const runtime::BufferRef b = runtime::allocate_on(&first, 4);
    std::memcpy(b->on(&first), "abcd", 4);
    Copies copies;
    void* there = b->on(&second);
    CHECK(std::memcmp(there, "abcd", 4) == 0);
    CHECK(b->on(&second) == there);
    CHECK(std::memcmp(b->on(&first), "abcd", 4) == 0);
    CHECK(copies.between() == (reached ? 1 : 0));
    CHECK(copies.to_host() == (reached ? 0 : 1));
    CHECK(copies.to_device() == (reached ? 0 : 1));
    CHECK(std::memcmp(b->data(), "abcd", 4) == 0);
    CHECK(copies.to_host() == 1);
    std::memcpy(there, "efgh", 4);
    b->overwritten_on(&second);  // the first device and the host are behind now
    CHECK(std::memcmp(b->on(&first), "efgh", 4) == 0);
    CHECK(copies.between() == (reached ? 2 : 1));  // the first one always reaches the second
    CHECK(std::memcmp(b->data(), "efgh", 4) == 0);
    CHECK(copies.to_host() == 2);
  }
}

TEST_CASE("equal devices have programs of their own") {
  static auto* const second = new FakeTarget(1);
  const graph::Value x = graph::parameter({{16}, float32});
  const graph::Graph g{{x}, {graph::tanh(x)}};
  const auto here = lookup_or_build({g, {}, {}}, fake()), there = lookup_or_build({g, {}, {}}, *second);
  CHECK(here != there);
  CHECK(lookup_or_build({g, {}, {}}, *second) == there);
  const std::vector<graph::Storage> input{to_storage(counting({16}))};
  const graph::Storage one = here->run(input)[0];
  Copies copies;
  const graph::Storage two = there->run(std::vector{one})[0];
  CHECK(copies.between() == 1);
  CHECK(copies.to_host() + copies.to_device() == 0);
  double v = 0.001 * 15;
  CHECK(from_storage(two, g.outputs[0].type()).data[15].real() == doctest::Approx(std::tanh(std::tanh(v))));
}

TEST_CASE("programs on a device give the CPU's results, and copy each input once") {
  const graph::Value x = graph::parameter({{40, 30}, float32}), w = graph::parameter({{30, 20}, float32});
  const graph::Value y = graph::tanh(graph::dot(x, w, {1}, {0}));
  const graph::Graph g{{x, w}, {y, graph::sum(y, {0}), graph::softmax(y, {1})}};
  const std::vector<HostTensor> inputs{counting({40, 30}), counting({30, 20})};
  std::vector<graph::Storage> here, there;
  for (const HostTensor& t : inputs) here.push_back(to_storage(t)), there.push_back(to_storage(t));
  const auto expected = build({g, {}, {}}, target::cpu())->run(here);
  const auto program = build({g, {}, {}}, fake());
  Copies copies;
  for (int run = 0; run < 5; ++run) {
    const auto results = program->run(there);
    CHECK(copies.to_host() == 3 * run);
    for (size_t k = 0; k < results.size(); ++k)
      CHECK(difference(from_storage(results[k], g.outputs[k].type()), from_storage(expected[k], g.outputs[k].type()),
                       2) == "");
  }
  CHECK(copies.to_device() == 2);
}

TEST_CASE("a training loop on a device is written down once, and its state never leaves it") {
  const OnFake on;
  array w = full({8, 4}, 0.5f), b = zeros({4}), count = zeros({}, int32);
  const auto step = compile(
      [&](const std::vector<array>& in) {
        const array out = tanh(matmul(in[0], w) + b), loss = mean(square(out - in[1]));
        count = count + array(1);
        w = w - 0.1f * matmul(transpose(in[0]), out - in[1]);
        b = b - 0.1f * sum(out - in[1], 0);
        return std::vector<array>{loss};
      },
      {.state = {&w, &b, &count}});
  const array x = reshape(arange(16.f), {2, 8}) * 0.01f, y = ones({2, 4});
  eval(x, y);
  float before = 1e9f;
  for (int k = 0; k < 3; ++k) before = step({x, y})[0].item<float>();
  Copies copies;
  const int64_t replayed = runtime::counters().graph_launches;
  for (int k = 0; k < 10; ++k) {
    const float loss = step({x, y})[0].item<float>();
    CHECK(loss < before);
    before = loss;
  }
  CHECK(copies.to_device() == 0);
  CHECK(copies.to_host() == 10);  // the losses
  CHECK(runtime::counters().graph_launches - replayed == 10);
  CHECK(count.item<int32_t>() == 13);
}

TEST_CASE("what is before and behind a call that waits for the device is written down") {
  const OnFake on;
  const auto step = compile([](const std::vector<array>& in) {
    array x = in[0];
    for (int k = 0; k < 5; ++k) x = softmax(matmul(x, in[0]), -1);
    array y = linalg::cholesky(matmul(x, transpose(x)) + eye(24));
    for (int k = 0; k < 5; ++k) y = softmax(matmul(y, in[0]), -1);
    return std::vector<array>{y, sum(x, 0)};
  });
  array x = reshape(arange(576.f), {24, 24}) * 0.01f;
  eval(x);
  const std::vector<array> expected = step({x});
  eval(expected);
  std::vector<array> now = step({x});
  eval(now);
  Copies copies;
  const int64_t replayed = runtime::counters().graph_launches, called = runtime::counters().library_calls;
  for (int k = 0; k < 6; ++k) {
    now = {};  // its memory comes again
    now = step({x});
    eval(now);
  }
  CHECK(copies.to_device() + copies.to_host() == 0);
  CHECK(runtime::counters().library_calls - called == 6);
  CHECK(runtime::counters().graph_launches - replayed >= 2 * 4);
  for (size_t k = 0; k < now.size(); ++k) CHECK(now[k].to_vector<float>() == expected[k].to_vector<float>());
}

TEST_CASE("states that share their memory get memory of their own without leaving the device") {
  const OnFake on;
  std::vector<array> moments;
  for (int k = 0; k < 4; ++k)
    moments.push_back(full({64, 32}, array(0.0f)));  // as an optimizer begins: equal values are computed once
  std::vector<array*> state;
  for (array& m : moments) state.push_back(&m);
  const auto step = compile(
      [&](const std::vector<array>& in) {
        for (size_t k = 0; k < moments.size(); ++k) moments[k] = moments[k] + in[0] * static_cast<float>(k + 1);
        return std::vector<array>{};
      },
      {.state = state});
  const array x = ones({64, 32});
  for (array& m : moments) eval(m);
  eval(x);
  x.to_vector<float>();           // to the host, wherever it was computed
  const array kept = moments[0];  // somebody holds on to it
  {                               // in one place, as a program leaves equal results
    const graph::Storage shared = *kept.value().node->storage(0);
    shared.buffer->on(fake().device());
    for (size_t k = 1; k < moments.size(); ++k) moments[k] = array(graph::data(moments[k].value().type(), shared));
  }
  Copies copies;
  step({x});
  CHECK(copies.to_host() == 0);
  CHECK(copies.to_device() <= 1);  // x
  for (size_t k = 0; k < moments.size(); ++k)
    CHECK(moments[k].to_vector<float>() == std::vector<float>(64 * 32, static_cast<float>(k + 1)));
  CHECK(kept.to_vector<float>() == std::vector<float>(64 * 32, 0.0f));
}

namespace {

/// The CPU, which notes for what launches its kernels are wanted.
class NotingTarget final : public target::Target {
 public:
  NotingTarget() { machine_ = target::cpu().machine(); }
  std::string fingerprint() const override { return "noting " + target::cpu().fingerprint(); }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return weft::test::compile_when_run(kernels);
  }
  std::vector<std::shared_ptr<const target::Executable>> begin(std::span<const kernel::Kernel> kernels,
                                                               std::span<const std::vector<size_t>> segments) override {
    begun.assign(segments.begin(), segments.end());
    return compile(kernels);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc&) const override { return nullptr; }
  target::CompileStats stats() const override { return {}; }
  std::vector<std::vector<size_t>> begun;
};

}  // namespace

TEST_CASE(
    "a number that many arrays lead to is computed by several kernels of a GPU, none of them long, with the bits of "
    "one") {
  graph::Graph g;
  std::vector<graph::Storage> inputs;
  graph::Value total;
  for (int k = 0; k < 200; ++k) {
    const graph::Value x = graph::parameter({{}, float32}, k);
    total = k == 0 ? x : graph::binary(graph::Op::add, total, x);
    g.inputs.push_back(x);
    inputs.push_back(to_storage(HostTensor{{{}, float32}, {Number::of_real(1.0 / (k + 3))}}));
  }
  g.outputs.push_back(graph::unary(graph::Op::sqrt, total));
  weft::test::SimtTarget many;
  const auto one = build({g, {}, {}}, target::cpu()), several = build({g, {}, {}}, many);
  CHECK(one->stats().launches == 1);
  CHECK(several->stats().launches == 4);
  const auto read = [](const graph::Storage& s) { return static_cast<const float*>(s.buffer->data())[s.offset]; };
  const float expected = read(one->run(inputs)[0]);
  CHECK(expected > 1);
  CHECK(read(several->run(inputs)[0]) == expected);
}

TEST_CASE("a target is told what launches its kernels are wanted for") {
  NotingTarget target;
  graph::Graph g;
  for (int64_t n : {1000, 2000, 3000}) {  // of one kernel, in one launch
    g.inputs.push_back(graph::parameter({{n}, float32}));
    g.outputs.push_back(graph::exp(g.inputs.back()));
  }
  const auto program = build({g, {}, {{0, 0}, {1, 1}, {2, 2}}}, target);
  CHECK(program->stats().launches == 1);
  CHECK(target.begun == std::vector<std::vector<size_t>>{{3}});
}

TEST_CASE("a plan says how much memory a run takes of a device") {
  const graph::Value x = graph::parameter({{200, 300}, float32}), w = graph::parameter({{300, 100}, float32}),
                     s = graph::parameter({{300, 100}, float32});
  const graph::Value y = graph::tanh(graph::dot(x, w, {1}, {0}));
  const graph::Graph g{{x, w, s},
                       {graph::sum(y, {0}), graph::softmax(y, {1}), w + s,
                        graph::cast(graph::cumulative(kernel::Reducer::sum, graph::exp(y), 0), bfloat16)}};
  const auto program = build({g, {}, {{2, 2}}}, fake());
  auto& device = fake().fake();
  const size_t before = device.memory().active;
  {
    std::vector<graph::Storage> inputs;
    for (const graph::Value& v : g.inputs) inputs.push_back(to_storage(counting(v.shape())));
    device.reset_peak();
    for (int run = 0; run < 4; ++run) {
      const auto results = program->run(inputs);
      const auto taken = static_cast<int64_t>(device.memory().peak - before);
      CHECK(taken == program->stats().peak_bytes);
      CHECK(results[2].buffer == inputs[2].buffer);
    }
  }
  CHECK(program->stats().arena_bytes > 0);
  CHECK(static_cast<int64_t>(device.memory().active - before) <=
        program->stats().arena_bytes + 256);  // kept for the next run
}

TEST_CASE("a timeline of a device holds the steps of every run, replayed or not, and waits for none of them") {
  const OnFake on;
  const auto f = compile(
      [](const std::vector<array>& in) {
        return std::vector<array>{sum(exp(in[0]), 1), softmax(in[0], 0),      in[0] * 2.f,
                                  cumsum(in[0], 1),   cumsum(in[0] * 3.f, 0), cummax(in[0], 0)};
      },
      CompileOptions{});
  const array x = ones({16, 24});
  eval(x);
  size_t steps = 0;
  {
    const BuildRecord record;
    const auto out = f({x});
    steps = record.programs().back()->steps().size();
  }
  REQUIRE(steps >= 4);
  const auto before = f({x});
  const int64_t waits = fake().fake().waits, replayed = runtime::counters().graph_launches;
  runtime::start_recording();
  constexpr size_t runs = 7;
  for (size_t k = 0; k < runs; ++k) {
    const auto out = f({x});
    CHECK(out[2].to_vector<float>() == before[2].to_vector<float>());
  }
  CHECK(fake().fake().waits == waits);
  CHECK(runtime::counters().graph_launches - replayed == static_cast<int64_t>(runs));
  const runtime::Timeline t = runtime::stop_recording();
  const auto track = std::find(t.threads.begin(), t.threads.end(), "fake:0");
  REQUIRE(track != t.threads.end());
  double last = 0;
  size_t found = 0;
  for (const runtime::Slice& s : t.slices) {
    if (s.step < 0) continue;
    CHECK(s.thread == track - t.threads.begin());
    CHECK(s.step == static_cast<int>(found % steps));
    CHECK(s.start >= last);
    CHECK(s.bytes > 0);
    last = s.start + s.length;
    ++found;
  }
  CHECK(found == runs * steps);
  CHECK(std::any_of(t.names.begin(), t.names.end(),
                    [](const std::string& name) { return name.find("exp sum") != std::string::npos; }));
  const auto again = f({x});  // as it is without a timeline
  CHECK(again[3].to_vector<float>() == before[3].to_vector<float>());
}

TEST_CASE("threads run programs on a device and look at their arrays") {
  const OnFake on;
  const auto f = compile(
      [](const std::vector<array>& in) {
        return std::vector<array>{in[0] * 2.f, exp(in[0]), sum(in[0]), in[0] + 1.f};
      },
      CompileOptions{});
  const array x = arange(1000.f);
  eval(x);
  std::atomic<int> wrong{0};
  for (int round = 0; round < 20; ++round) {
    const auto out = f({x});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        if (t % 2) wrong += f({out[0]})[0].to_vector<float>()[999] != 3996;
        else wrong += out[0].to_vector<float>()[999] != 1998 || out[2].item<float>() != 499500;
      });
    for (std::thread& t : threads) t.join();
  }
  CHECK(wrong == 0);
}

TEST_CASE("control flow on a device") {
  const OnFake on;
  const auto f = compile(
      [](const std::vector<array>& in) {
        return while_loop([](const std::vector<array>& c) { return sum(c[0]) < array(1000.f); },
                          [](const std::vector<array>& c) {
                            return std::vector<array>{c[0] * 2.f, c[1] + array(1)};
                          },
                          {in[0], array(0)});
      },
      CompileOptions{});
  const auto out = f({ones({4})});
  CHECK(out[1].item<int32_t>() == 8);
  CHECK(sum(out[0]).item<float>() == 1024.f);
}
