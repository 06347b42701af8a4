// weft bench random: times random graphs, or writes them for bench/torch_random.py.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/program.h"
#include "tools/weft/bench/support.h"
#include "tools/weft/bench/workloads/random_graph.h"
#include "weft/compile.h"
#include "weft/device.h"
#include "weft/memory.h"
#include "weft/ops.h"

namespace weft::tool {

namespace {

/// Lengths of axes by device: matrices of some 10⁵ elements on a CPU, of 10⁶ to 10⁷ on a GPU. Not all are powers of
/// two.
RandomGraphSizes graph_sizes(const std::string& device) {
  if (device == "gpu") return {.lengths = {768, 1024, 1536, 2048, 3000, 4096}};
  if (device == "tiny") return {.lengths = {4, 6, 8, 12, 20}};
  return {.lengths = {128, 192, 256, 384, 500, 768}};
}

/// Returns what a result is compared by: the mean magnitude and 16 elements, evenly spread.
nlohmann::ordered_json summary(const array& result) {
  const auto n = static_cast<int64_t>(result.size());
  const array flat = reshape(result, {-1});
  std::vector<float> samples;
  const auto values = flat.to_vector<float>();
  for (int64_t i = 0; i < 16; ++i) samples.push_back(values[static_cast<size_t>(i * (n - 1) / 15)]);
  return {{"magnitude", mean(abs(flat)).item<float>()}, {"samples", samples}};
}

void write_graph(std::ofstream& out, const RandomGraph& graph, const std::vector<array>& results) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(to_json(graph));
  json["results"] = nlohmann::ordered_json::array();
  for (const array& result : results) json["results"].push_back(summary(result));
  out << json.dump() << "\n";
}

}  // namespace

void bench_random(const BenchOptions& o) {
  const bool gpu = default_device().type == Device::gpu;
  const RandomGraphSizes sizes = graph_sizes(!o.sizes.empty() ? o.sizes : gpu ? "gpu" : "cpu");
  std::ofstream out;
  if (!o.write.empty()) {
    out.open(o.write);
    if (!out) throw std::runtime_error(fmt::format("[bench] {} cannot be written", o.write));
  }
  for (int index = 0; index < o.count; ++index) {
    const RandomGraph graph = random_graph(static_cast<uint64_t>(o.seed), index, sizes);
    const std::vector<array> in = random_inputs(graph);
    eval(in);
    const ArrayFunction program =
        compile([&graph](const std::vector<array>& arrays) { return apply(graph, arrays); }, CompileOptions{});
    int64_t launches = 0;
    std::vector<array> results;
    double first = 0;
    {
      const compiler::BuildRecord record;
      first = seconds_of([&] {
        results = program(in);
        eval(results);
      });
      if (!record.programs().empty()) launches = record.programs().back()->stats().launches;
    }
    if (out.is_open()) {
      write_graph(out, graph, results);
      continue;
    }
    const auto run = [&] { eval(program(in)); };
    const double once = seconds_of(run) + 1e-9;
    const auto times = [once](double total, double most) { return std::clamp(total / once, 2.0, most); };
    const double ms = gpu ? device_ms(reps_of(o, 5), static_cast<int>(times(0.02, long_burst)), [&] { program(in); })
                          : median_of(reps_of(o, static_cast<int64_t>(times(0.5, 50))), run, o.cpu_time);
    Row("random", o, "float32")
        .text("name", graph.name)
        .number("ms", ms)
        .number("first_step_s", first)
        .whole("launches", launches)
        .print();
    clear_cache();
  }
}

}  // namespace weft::tool
