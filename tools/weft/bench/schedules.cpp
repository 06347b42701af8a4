// weft bench schedules: for each of twenty kernels and more, the rules' schedule against every one that repeated moves
// to neighbours reach, up to a bound. All are timed in turns by the tuner's own bench; the fastest are then timed again
// beside the rules', more often, so that the best of many noisy times does not count as a gain.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "compiler/pipeline.h"
#include "compiler/tune/tune.h"
#include "tools/weft/bench/support.h"
#include "tools/weft/command.h"
#include "transforms/traced.h"
#include "weft/device.h"
#include "weft/fast.h"
#include "weft/ops.h"

namespace weft::tool {

namespace {

using Arrays = std::vector<array>;

constexpr size_t most_schedules = 64;  // of a kernel
constexpr size_t finalists = 4;        // beside the rules', which are timed once more
constexpr compiler::TuneEffort first_round{.seconds_of_an_item = 1, .most_repeats = 9, .recorded = false};
constexpr compiler::TuneEffort second_round{.seconds_of_an_item = 1, .most_repeats = 61, .recorded = false};

/// A function of float32 arrays; `gpu`: shapes for a GPU, which are some times as large as those for two cores.
struct Kernel {
  const char* name;
  ArrayFunction function;
  std::vector<Shape> cpu, gpu;
};

Arrays one(const array& a) { return {a}; }

const std::vector<Kernel>& kernels() {
  const auto twice = [](const Shape& s) { return std::vector<Shape>{s, s}; };
  static const std::vector<Kernel> all = {
      {"gelu",
       [](const Arrays& in) { return one(fast::gelu_tanh(in[0] * array(1.5f)) * array(0.5f)); },
       {{2048, 2048}},
       {{4096, 4096}}},
      {"scale", [](const Arrays& in) { return one(in[0] * array(3.0f)); }, {{2048, 2048}}, {{4096, 4096}}},
      {"gate", [](const Arrays& in) { return one(sigmoid(in[0]) * in[0] * in[1]); }, twice({2048, 1024}),
       twice({8192, 2048})},
      {"bias and residual",
       [](const Arrays& in) { return one(tanh(in[0] + in[2]) + in[1]); },
       {{2048, 768}, {2048, 768}, {768}},
       {{16384, 768}, {16384, 768}, {768}}},
      {"narrow", [](const Arrays& in) { return one(astype(in[0], bfloat16)); }, {{2048, 2048}}, {{4096, 4096}}},
      {"rotate",
       [](const Arrays& in) { return one(fast::rope(in[0], 64, false, 10000.0f, 1.0f, 0)); },
       {{4, 12, 512, 64}},
       {{16, 12, 1024, 64}}},
      {"concat",
       [](const Arrays& in) {
         return one(concatenate({in[0], in[1] * array(2.0f)}, 1));
       },
       {{2048, 768}, {2048, 256}},
       {{16384, 768}, {16384, 256}}},
      {"transpose",
       [](const Arrays& in) { return one(transpose(in[0]) * array(2.0f)); },
       {{2048, 2048}},
       {{4096, 4096}}},
      {"transpose and add",
       [](const Arrays& in) { return one(transpose(in[0]) + in[1]); },
       {{1024, 2048}, {2048, 1024}},
       {{2048, 8192}, {8192, 2048}}},
      {"heads",
       [](const Arrays& in) {
         return one(transpose(in[0], {0, 2, 1, 3}) * array(0.5f));
       },
       {{4, 512, 12, 64}},
       {{16, 1024, 12, 64}}},
      {"softmax of short rows",
       [](const Arrays& in) { return one(softmax(in[0], -1)); },
       {{8192, 256}},
       {{65536, 256}}},
      {"softmax", [](const Arrays& in) { return one(softmax(in[0], -1)); }, {{1024, 2048}}, {{8192, 2048}}},
      {"softmax of long rows",
       [](const Arrays& in) { return one(softmax(in[0], -1)); },
       {{32, 65536}},
       {{128, 131072}}},
      {"layer norm",
       [](const Arrays& in) { return one(fast::layer_norm(in[0], in[1], in[2], 1e-5f)); },
       {{2048, 768}, {768}, {768}},
       {{16384, 768}, {768}, {768}}},
      {"rms norm",
       [](const Arrays& in) { return one(fast::rms_norm(in[0], in[1], 1e-5f)); },
       {{512, 4096}, {4096}},
       {{4096, 4096}, {4096}}},
      {"sums of rows", [](const Arrays& in) { return one(sum(in[0], 1)); }, {{2048, 1024}}, {{16384, 1024}}},
      {"logsumexp of long rows",
       [](const Arrays& in) { return one(logsumexp(in[0], -1)); },
       {{8, 262144}},
       {{8, 1 << 21}}},
      {"argmax of rows", [](const Arrays& in) { return one(argmax(in[0], -1)); }, {{64, 50304}}, {{512, 50304}}},
      {"sums of columns", [](const Arrays& in) { return one(sum(in[0], 0)); }, {{4096, 768}}, {{16384, 1024}}},
      {"products of columns", [](const Arrays& in) { return one(sum(in[0] * in[1], 0)); }, twice({4096, 512}),
       twice({16384, 768})},
      {"largest of columns", [](const Arrays& in) { return one(max(in[0], 0)); }, {{2048, 1536}}, {{8192, 3072}}},
      {"sums of the middle", [](const Arrays& in) { return one(sum(in[0], 1)); }, {{32, 128, 512}}, {{64, 512, 512}}},
      {"vector and matrix",
       [](const Arrays& in) { return one(sum(in[0] * in[1], 1)); },
       {{2048, 1024}, {1024}},
       {{16384, 1024}, {1024}}},
      {"matmul of a row",
       [](const Arrays& in) { return one(matmul(in[0], transpose(in[1]))); },
       {{1, 2048}, {2048, 2048}},
       {{1, 4096}, {8192, 4096}}},
      {"cumulative sums", [](const Arrays& in) { return one(cumsum(in[0], 1)); }, {{2048, 1024}}, {{8192, 2048}}},
  };
  return all;
}

/// Returns the groups of rows that a function becomes, with their schedules.
std::vector<compiler::TuneItem> items_of(const Kernel& k, bool gpu) {
  std::vector<graph::Type> types;
  for (const Shape& s : gpu ? k.gpu : k.cpu) types.push_back({s, float32});
  const compiler::Source source{transforms::graph_of(k.function, types).graph, {}, {}};
  compiler::Policy policy;
  policy.libraries = false;  // a matmul of a row is a kernel of the compiler's, too
  target::Target& target = compiler::default_target();
  const compiler::PassContext cx{source, target, policy};
  compiler::Compilation c;
  for (const compiler::Pass& pass : compiler::passes()) {
    if (std::string_view(pass.name) == "tune") break;
    if (pass.applies(target.machine(), policy)) compiler::run_pass(pass, c, cx);
  }
  const compiler::LowerContext lower{
      c.ir, c.grouping, c.ordering.buffer_owner, c.ordering.has_buffer, c.ordering.streamed, target};
  std::vector<compiler::TuneItem> items =
      compiler::search_items(lower, c.grouping, c.ordering.order, policy, most_schedules);
  std::erase_if(items, [](const compiler::TuneItem& item) { return item.candidates.size() < 2; });
  return items;
}

/// Returns the positions of the rules' candidate and of the fastest others.
std::vector<size_t> fastest(const compiler::TuneResult& result) {
  std::vector<size_t> order;
  for (size_t k = 1; k < result.times.size(); ++k)
    if (result.times[k].dropped.empty()) order.push_back(k);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return result.times[a].median < result.times[b].median; });
  order.resize(std::min(order.size(), finalists));
  order.insert(order.begin(), 0);
  return order;
}

/// Searches the schedules of one group and prints what it found. Returns the rules' time / the best one's, or 0 where
/// nothing could be timed.
double search(const BenchOptions& o, const char* name, const compiler::TuneItem& item) {
  target::Target& target = compiler::default_target();
  const compiler::TuneResult all = compiler::measure({item}, target, first_round)[0];
  if (all.times.empty()) return 0;
  const auto dropped =
      std::count_if(all.times.begin(), all.times.end(), [](const auto& t) { return !t.dropped.empty(); });
  compiler::TuneItem last = item;
  last.candidates.clear();
  for (const size_t k : fastest(all)) last.candidates.push_back(item.candidates[k]);
  const compiler::TuneResult result = compiler::measure({last}, target, second_round)[0];
  if (result.times.empty()) return 0;
  size_t best = 0;
  for (size_t k = 1; k < result.times.size(); ++k)
    if (result.times[k].dropped.empty() && result.times[k].median < result.times[best].median) best = k;
  const double rules = result.times[0].median, least = result.times[best].median;
  Row("schedules", o)
      .text("kernel", name)
      .text("group", item.name)
      .whole("schedules", static_cast<int64_t>(item.candidates.size()))
      .whole("dropped", dropped)
      .number("rules_ms", 1e3 * rules)
      .number("best_ms", 1e3 * least)
      .number("rules_by_best", rules / least)
      .text("best", to_string(last.candidates[best].variant))
      .print();
  return rules / least;
}

}  // namespace

void bench_schedules(const BenchOptions& o) {
  const bool gpu = default_device().type == Device::gpu;
  std::vector<double> ratios;
  for (const Kernel& k : kernels()) {
    if (!o.only.empty() && o.only != k.name) continue;
    for (const compiler::TuneItem& item : items_of(k, gpu))
      if (const double ratio = search(o, k.name, item); ratio > 0) ratios.push_back(ratio);
  }
  if (ratios.empty()) throw UsageError("--only names no kernel of bench schedules that has schedules");
  double logs = 0;
  for (const double r : ratios) logs += std::log(r);
  const auto near = std::count_if(ratios.begin(), ratios.end(), [](double r) { return r <= 1.02; });
  Row("schedules_all", o)
      .whole("kernels", static_cast<int64_t>(ratios.size()))
      .number("geometric_mean", std::exp(logs / static_cast<double>(ratios.size())))
      .number("largest", *std::max_element(ratios.begin(), ratios.end()))
      .whole("within_2_percent", near)
      .print();
}

}  // namespace weft::tool
