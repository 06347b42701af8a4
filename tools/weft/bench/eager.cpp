// weft bench eager and tensors: what the host takes for an operation that is not compiled, and for a call of a compiled
// function with thousands of buffers.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/program.h"
#include "runtime/trace.h"
#include "tools/weft/bench/support.h"
#include "weft/compile.h"
#include "weft/device.h"
#include "weft/nn.h"
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/random.h"
#include "weft/stream.h"

namespace weft::tool {

namespace {

constexpr int additions = 1000;

/// Times `additions` sums of 1024 numbers, of which `each` says what is done with every one.
void bench_additions(const char* name, const BenchOptions& o, const std::function<void(const array&)>& each) {
  const array one = ones({1024});
  const array zero = zeros({1024});
  eval(one, zero);
  const auto run = [&] {
    array x = zero;
    for (int k = 0; k < additions; ++k) {
      x = x + one;
      each(x);
    }
    eval(x);
    synchronize();
  };
  const int64_t built = runtime::counters().programs_built;
  const double first = seconds_of(run), ms = median_of(reps_of(o, 30), run, o.cpu_time);
  Row(name, o, "float32")
      .whole("operations", additions)
      .number("us", 1e3 * ms / additions)
      .number("first_s", first)
      .whole("built", runtime::counters().programs_built - built)
      .print();
}

struct ManyParameters : nn::Module {
  ManyParameters(int count, int elements) {
    for (int k = 0; k < count; ++k)
      parameters_.push_back(std::make_unique<nn::Parameter>(*this, "p" + std::to_string(k), ones({elements})));
  }
  std::vector<std::unique_ptr<nn::Parameter>> parameters_;
};

/// Times a compiled AdamW step over `count` parameters whose gradients are given: 4 buffers a parameter are read, 3
/// written. On the null target nothing is computed, so that the time is the host's alone.
void bench_optimizer(const BenchOptions& o, int count, bool computed) {
  ManyParameters model(count, 1000);
  optim::AdamW optimizer(model.trainable_parameters(), {.learning_rate = 1e-3f});
  std::vector<array*> state = model.state();
  for (array* s : optimizer.state()) state.push_back(s);
  std::vector<array> gradients;
  for (int k = 0; k < count; ++k) gradients.push_back(random::normal({1000}, float32, 0, 1, random::key(7)));
  eval(gradients);
  for (array* s : state) eval(*s);
  target::Target& before = compiler::default_target();
  if (!computed) compiler::set_default_target(target::null());
  const ArrayFunction step = compile(
      [&](const std::vector<array>& given) {
        optimizer.update(given);
        return std::vector<array>{};
      },
      CompileOptions{.state = state});
  const double first = seconds_of([&] { step(gradients); });
  const int64_t copied = runtime::counters().copies;
  const double ms = median_of(
      reps_of(o, 15), [&] { step(gradients); }, o.cpu_time);
  Row("optimizer_step", o, "float32")
      .text("target", computed ? "default" : "null")
      .whole("tensors", count)
      .number("us", 1e3 * ms)
      .number("us_a_buffer", 1e3 * ms / (7.0 * count))
      .number("first_s", first)
      .whole("copies", runtime::counters().copies - copied)
      .print();
  compiler::set_default_target(before);
}

}  // namespace

void bench_eager(const BenchOptions& o) {
  bench_additions("eager_add_eval", o, [](const array& x) { eval(x); });
  bench_additions("eager_add_async_eval", o, [](const array& x) { async_eval(x); });
  bench_additions("eager_add_at_end", o, [](const array&) {});
}

void bench_tensors(const BenchOptions& o) {
  for (const int count : {20, 200, 2000})
    for (const bool computed : {false, true}) bench_optimizer(o, count, computed);
}

}  // namespace weft::tool
