// weft bench cost: holds the cost model's predictions against the measured times of every kernel that the other
// benchmarks run. Nothing in the model was fitted to them: its rates are measured on other programs
// (compiler/program/measured_rates.h).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include "compiler/program.h"
#include "compiler/program/measured_rates.h"
#include "runtime/trace.h"
#include "tools/weft/bench/support.h"
#include "weft/device.h"
#include "weft/memory.h"

namespace weft::tool {

namespace {

constexpr size_t least_runs = 5;      // of a step, of which the shortest counts
constexpr size_t least_kernels = 20;  // of a class, for figures of their own

// They compute nothing, run what others run, or change what programs are built for.
constexpr std::string_view left_out[] = {"cost",          "compile",       "kernels",         "tune",      "schedules",
                                         "gpu-decode-1b", "gpu-decode-7b", "gpu-decode-124m", "gpu-replay"};
constexpr std::string_view for_both[] = {"linalg", "trig"};  // devices

bool is_left_out(std::string_view name) {
  return std::find(std::begin(left_out), std::end(left_out), name) != std::end(left_out);
}
bool is_for_both(std::string_view name) {
  return std::find(std::begin(for_both), std::end(for_both), name) != std::end(for_both);
}

struct Sample {
  std::string bench;
  compiler::StepInfo step;
  double ms = 0, predicted_ms = 0, floor_ms = 0;
  double error() const { return std::abs(predicted_ms - ms) / ms; }
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Returns what kind of code a step is: "row", "map", "dot by a library", "convolution by a library", ….
std::string class_of(const compiler::StepInfo& step) {
  const std::string first = step.name.substr(0, step.name.find_first_of("_ ("));
  if (std::string_view(step.kind) != "library") return std::string_view(step.kind) == "kernel" ? first : step.kind;
  return first + " by a library";
}

/// Returns the ranks of values, equal ones sharing the mean of theirs.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> out(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t k = begin; k < end; ++k) out[order[k]] = (static_cast<double>(begin + end) - 1) / 2;
  }
  return out;
}

/// Returns Spearman's rank correlation of predicted and measured times.
double rank_correlation(const std::vector<Sample>& samples) {
  std::vector<double> a, b;
  for (const Sample& s : samples) a.push_back(s.predicted_ms), b.push_back(s.ms);
  a = ranks(a), b = ranks(b);
  const double mean = (static_cast<double>(samples.size()) - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    ab += (a[k] - mean) * (b[k] - mean);
    aa += (a[k] - mean) * (a[k] - mean);
    bb += (b[k] - mean) * (b[k] - mean);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

/// Runs a benchmark silently and returns its kernels with their shortest times: rates are the best of several runs,
/// too, and other processes disturb neither.
std::vector<Sample> samples_of(const Bench& bench, BenchOptions o, const target::Rates& rates) {
  o.silent = true, o.record.clear(), o.profile = false;
  o.reps = std::max<int64_t>(o.reps, least_runs);
  runtime::start_recording();
  bench.run(o);
  synchronize();
  const runtime::Timeline timeline = runtime::stop_recording();
  std::map<std::pair<int64_t, int>, std::vector<double>> times;
  for (const runtime::Slice& s : timeline.slices)
    if (s.step >= 0 && std::string_view(s.kind) != "nested") times[{s.program, s.step}].push_back(s.length / 1e3);
  std::map<int64_t, std::vector<compiler::Prediction>> predictions;
  std::vector<Sample> out;
  for (auto& [key, ms] : times) {
    const auto program = compiler::find_program(key.first);
    if (!program || ms.size() < least_runs) continue;
    const auto [at, fresh] = predictions.try_emplace(key.first);
    if (fresh) at->second = program->predict(rates);
    const auto k = static_cast<size_t>(key.second);
    out.push_back({bench.name, program->steps()[k], *std::min_element(ms.begin(), ms.end()),
                   1e3 * at->second[k].seconds, 1e3 * at->second[k].floor});
  }
  return out;
}

void print_kernel(const BenchOptions& o, const std::string& kind, const Sample& s) {
  Row("cost_kernel", o)
      .text("class", kind)
      .text("from", s.bench)
      .text("name", s.step.name)
      .text("what", s.step.what)
      .whole("groups", s.step.segments)
      .number("bytes", s.step.bytes)
      .number("flops", s.step.flops)
      .number("ms", s.ms)
      .number("predicted_ms", s.predicted_ms)
      .number("floor_ms", s.floor_ms)
      .print();
}

void print_class(const BenchOptions& o, const std::string& kind, const std::vector<Sample>& samples) {
  std::vector<double> errors, ratios;
  for (const Sample& s : samples) errors.push_back(s.error()), ratios.push_back(s.predicted_ms / s.ms);
  Row("cost", o)
      .text("class", kind)
      .whole("kernels", static_cast<int64_t>(samples.size()))
      .number("rank_correlation", rank_correlation(samples))
      .number("median_error", median(errors))
      .number("median_predicted_of_measured", median(ratios))
      .print();
}

}  // namespace

void bench_cost(const BenchOptions& o) {
  const bool gpu = default_device().type == Device::gpu;
  const target::Rates rates = compiler::machine_rates(compiler::default_target(), true);
  std::map<std::string, std::vector<Sample>> classes;
  std::set<std::string> known;
  std::vector<std::string> failed;
  for (const Bench& bench : all_benches()) {
    const std::string_view name = bench.name;
    if (is_left_out(name) || (gpu != name.starts_with("gpu-") && !is_for_both(name))) continue;
    std::vector<Sample> samples;
    try {
      samples = samples_of(bench, o, rates);
    } catch (const std::exception& e) {  // a device may be too small for one of them
      runtime::stop_recording();
      fmt::print(stderr, "{}: {}\n", name, e.what());
      failed.emplace_back(name);
    }
    clear_cache();
    for (Sample& s : samples) {
      const std::string kind = class_of(s.step);
      if (known.insert(fmt::format("{} {} {} {}", kind, s.step.what, s.step.bytes, s.step.flops)).second)
        classes[kind].push_back(std::move(s));
    }
  }
  std::vector<Sample> all, small;
  for (const auto& [kind, samples] : classes) {
    if (o.json || o.profile)
      for (const Sample& s : samples) print_kernel(o, kind, s);
    all.insert(all.end(), samples.begin(), samples.end());
    if (samples.size() < least_kernels) small.insert(small.end(), samples.begin(), samples.end());
  }
  for (const auto& [kind, samples] : classes)
    if (samples.size() >= least_kernels) print_class(o, kind, samples);
  if (!small.empty()) print_class(o, "others", small);
  if (!all.empty()) print_class(o, "all", all);
  if (!failed.empty()) throw std::runtime_error(fmt::format("not measured: {}", fmt::join(failed, ", ")));
}

}  // namespace weft::tool
