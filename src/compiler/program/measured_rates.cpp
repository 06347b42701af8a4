#include "compiler/program/measured_rates.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>

#include "base/half.h"
#include "compiler/program.h"
#include "graph/build.h"
#include "runtime/buffer.h"
#include "runtime/threads.h"

namespace weft::compiler {

namespace {

using graph::Storage;
using graph::Value;
using graph::Values;
using target::Rates;

constexpr int64_t enough_measurements = 5;  // of different processes
constexpr double seconds_of_a_figure = 0.01;
constexpr int least_bursts = 4;
constexpr int chained_additions = 128;  // an element: many more than its loads and its store
constexpr int64_t chained_elements = int64_t{1} << 20;
constexpr int64_t small_kernels = 16;  // of a program whose launches cost more than what they compute
constexpr int64_t small_side = 64;
constexpr int64_t short_rows = int64_t{1} << 16, short_row = 16;

/// Returns the product of the floats' sizes that a GPU and a CPU measure: the largest side.
int64_t largest_side(const target::Machine& machine, Dtype dtype) {
  if (!machine.simt) return dtype == float64 ? 512 : 1024;
  return dtype == float32 || dtype == float64 ? 4096 : 8192;
}

/// A program over inputs of pseudorandom numbers in [-1, 1), bound to its memory and ready to run.
class Experiment {
 public:
  Experiment(const std::vector<graph::Type>& types, const std::function<Value(const Values&)>& f,
             target::Target& target, const Policy& policy)
      : device_(target.device()) {
    Source source;
    for (size_t k = 0; k < types.size(); ++k)
      source.graph.inputs.push_back(graph::parameter(types[k], static_cast<int64_t>(k)));
    source.graph.outputs = {f(source.graph.inputs)};
    program_ = build(source, target, policy);
    bound_ = program_->bind({});
    for (size_t k = 0; k < types.size(); ++k) {
      buffers_.push_back(filled(types[k]));
      bound_->inputs[k] = buffers_.back()->on(device_);
    }
    const graph::Type& type = source.graph.outputs[0].type();
    buffers_.push_back(
        runtime::allocate_on(device_, static_cast<size_t>(num_elements(type.shape) * type.dtype.size())));
    bound_->outputs[0] = buffers_.back()->on(device_);
  }

  /// Returns the seconds of a run in the best of several bursts, whose runs are issued in a row.
  double seconds() {
    using Clock = std::chrono::steady_clock;
    const auto burst = [&](int runs) {
      const auto start = Clock::now();
      for (int k = 0; k < runs; ++k) bound_->run();
      if (device_) device_->synchronize();
      return std::chrono::duration<double>(Clock::now() - start).count() / runs;
    };
    burst(1);  // maps pages, prepares libraries
    const double once = std::max(burst(1), 1e-9);
    // A device's bursts are longer, because the host needs some 20 us to begin one and to see its end.
    const double wanted = device_ ? 2e-3 : 1e-4;
    const int runs = static_cast<int>(std::clamp(wanted / once, 1.0, 1000.0));
    double best = once, total = 0;
    for (int k = 0; k < least_bursts || total < seconds_of_a_figure; ++k) {
      const double one = burst(runs);
      best = std::min(best, one);
      total += one * runs;
    }
    return best;
  }

 private:
  runtime::BufferRef filled(const graph::Type& type) const {
    const int64_t elements = num_elements(type.shape);
    const runtime::BufferRef buffer = runtime::allocate(static_cast<size_t>(elements * type.dtype.size()));
    uint32_t state = 1;
    const auto fill = [&](auto* to, auto convert) {
      for (int64_t i = 0; i < elements; ++i) {
        state = 1664525 * state + 1013904223;
        to[i] = convert(static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f);
      }
    };
    if (type.dtype == bfloat16) fill(static_cast<uint16_t*>(buffer->data()), float_to_bf16);
    else if (type.dtype == float64) fill(static_cast<double*>(buffer->data()), [](float v) { return double{v}; });
    else fill(static_cast<float*>(buffer->data()), [](float v) { return v; });
    return buffer;
  }

  runtime::Accelerator* device_;
  std::shared_ptr<const Program> program_;
  std::vector<runtime::BufferRef> buffers_;
  std::unique_ptr<BoundProgram> bound_;
};

double copy_seconds(target::Target& target, double footprint) {
  const auto n = static_cast<int64_t>(footprint / 8);
  return Experiment(
             {{{n}, float32}}, [](const Values& in) { return -in[0]; }, target, Policy{})
      .seconds();
}

double product_rate(target::Target& target, int64_t side, Dtype dtype, bool tf32) {
  Policy policy;
  policy.numerics.tf32 = tf32;
  const graph::Type type{{side, side}, dtype};
  Experiment run(
      {type, type}, [](const Values& in) { return graph::matmul(in[0], in[1]); }, target, policy);
  return 2.0 * std::pow(static_cast<double>(side), 3) / run.seconds();
}

double addition_rate(target::Target& target) {
  const graph::Type type{{chained_elements}, float32};
  const auto chain = [](const Values& in) {
    Value v = in[0];
    for (int k = 0; k < chained_additions; ++k) v = v + in[1 + static_cast<size_t>(k % 2)];
    return v;
  };
  return static_cast<double>(chained_additions * chained_elements) /
         Experiment({type, type, type}, chain, target, Policy{}).seconds();
}

double row_rate(target::Target& target) {
  const auto sums = [](const Values& in) { return graph::sum(in[0], {1}); };
  return static_cast<double>(short_rows) /
         Experiment({{{short_rows, short_row}, float32}}, sums, target, Policy{}).seconds();
}

/// Returns the seconds of a launch among launches of other code, which the processor has to fetch: a chain of sums
/// whose lengths differ, each of which reads the one before.
double launch_seconds(target::Target& target) {
  const auto chain = [](const Values& in) {
    Value v = in[0];
    for (int64_t k = 0; k < small_kernels; ++k) {
      const Value row =
          graph::sum(graph::broadcast(v, {small_side + k, small_side}) * in[1 + static_cast<size_t>(k)], {0});
      v = graph::depends(row, {row});
    }
    return v;
  };
  std::vector<graph::Type> types{{{small_side}, float32}};
  for (int64_t k = 0; k < small_kernels; ++k) types.push_back({{small_side + k, small_side}, float32});
  return Experiment(types, chain, target, Policy{}).seconds() / small_kernels;
}

}  // namespace

Rates measure_rates(target::Target& target) {
  Rates r;
  const target::Machine& machine = target.machine();
  const double launch = launch_seconds(target);
  r.launch = 1 / launch;
  for (size_t k = 0; k < Rates::footprints; ++k) {
    const double bytes = Rates::least_footprint * static_cast<double>(int64_t{1} << k);
    const double seconds = copy_seconds(target, bytes);
    r.copy[k] = bytes / std::max(seconds - launch, seconds / 8);
  }
  for (size_t k = 0; k < Rates::sides; ++k) {
    const auto side = static_cast<int64_t>(Rates::least_side) << k;
    if (side <= largest_side(machine, float32)) r.f32_products[k] = product_rate(target, side, float32, false);
    else r.f32_products[k] = r.f32_products[k - 1];
    if (side <= largest_side(machine, bfloat16)) r.f16_products[k] = product_rate(target, side, bfloat16, false);
    else r.f16_products[k] = r.f16_products[k - 1];
  }
  r.products.f32 = *std::max_element(r.f32_products.begin(), r.f32_products.end());
  r.products.f16 = *std::max_element(r.f16_products.begin(), r.f16_products.end());
  if (const int64_t side = largest_side(machine, bfloat16); machine.simt)
    r.products.f16 = std::max(r.products.f16, product_rate(target, side, bfloat16, false));
  r.products.f64 = product_rate(target, largest_side(machine, float64), float64, false);
  if (machine.peak.tf32 > 0) r.products.tf32 = product_rate(target, largest_side(machine, float32), float32, true);
  r.vector = addition_rate(target);
  r.rows = row_rate(target);
  return r;
}

Rates machine_rates(target::Target& target, bool again) {
  if (&target == &target::null()) return target::stated_rates(target.machine());
  static std::mutex mutex;
  static auto& known = *new std::map<std::pair<Digest, int>, Rates>;
  const int threads = runtime::num_threads();
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = known.try_emplace({target.machine().digest(), threads});
  if (!fresh && !again) return at->second;
  const auto kept = target::kept_rates(target.machine(), threads);
  if (kept && kept->measurements >= enough_measurements && !again) return at->second = kept->rates;
  const Rates best = target::best_of(at->second, measure_rates(target));  // also where no folder can be written
  return at->second = target::best_of(best, target::keep_rates(target.machine(), threads, best).rates);
}

}  // namespace weft::compiler
