// weft/kernel_tuning.h: the configurations of a kernel become programs beside each other.
#include "weft/kernel_tuning.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>

#include "array/routines/kernel_traced.h"
#include "base/error.h"
#include "graph/calls/kernel_tuning.h"

namespace weft::k::detail {

namespace {

/// Returns the word of a configuration: its values, or its number where they have no text, and its launch options.
std::string word_of(const AnyConfig& c, size_t number) {
  std::string word = c.text.empty() ? fmt::format("#{}", number) : c.text;
  const std::pair<const char*, int> options[] = {
      {"warps", c.launch.warps},         {"stages", c.launch.stages},
      {"cluster", c.launch.cluster},     {"registers", c.launch.registers},
      {"ping_pong", c.launch.ping_pong}, {"iterations", static_cast<int>(c.launch.iterations)}};
  for (const auto& [name, value] : options)
    if (value > 0) word += fmt::format(";{}={}", name, value);
  if (!c.steps.empty()) word += ";" + schedule::to_string(c.steps);
  std::replace_if(
      word.begin(), word.end(), [](unsigned char ch) { return std::isspace(ch) != 0; }, '_');
  return word;
}

[[noreturn]] void refuse_tuning(const Definition& d, const std::string& what) {
  throw_invalid("kernel " + d.name, what);
}

void check_tuning(const Definition& d) {
  const Tuning& t = d.tuning;
  const auto number = [&](size_t array, const char* what) {
    if (array >= d.arrays.size())
      refuse_tuning(d, fmt::format("{} names array {}: it has {}, counted from 0", what, array, d.arrays.size()));
  };
  for (const ArrayReset& r : t.resets) number(r.array, "reset");
  for (const size_t k : t.restored.value_or(std::vector<size_t>{})) {
    number(k, "restore");
    if (d.arrays[k].use != Use::in_out)
      refuse_tuning(d, fmt::format("restore names array {}, which is not k::InOut: only those change", k));
  }
  if (t.options.compile_limit <= 0 || t.options.run_limit <= 0 || t.options.repetitions < 1)
    refuse_tuning(d, "tune_options: limits and repetitions must be positive");
}

/// Traces one configuration; `shapes`: those of the first one that could be traced, empty before.
graph::KernelCandidate candidate(const Definition& d, const std::vector<array>& inputs, const AnyConfig& config,
                                 std::string word, std::vector<Shape>& shapes) {
  graph::KernelCandidate out{std::move(word), nullptr};
  try {
    std::vector<Shape> own = array_shapes(d, inputs, config.value.get());
    if (shapes.empty()) shapes = own;
    if (own != shapes) {
      out.refused = "its results have other shapes than those of the configurations before it";
      return out;
    }
    out.program = traced(d, std::move(own), config).node;
    if (d.tuning.estimate) out.estimate = d.tuning.estimate(config, inputs);
  } catch (const std::invalid_argument& e) {
    out.refused = e.what();
  }
  return out;
}

/// Returns what stands for the shapes in keys: the user's integers, or the buckets of all extents.
std::vector<int64_t> shape_key(const Definition& d, const std::vector<array>& inputs,
                               const std::vector<Shape>& shapes) {
  if (d.tuning.key) return d.tuning.key(inputs);
  std::vector<int64_t> out;
  for (const Shape& shape : shapes)
    for (const Dim& extent : shape) out.push_back(graph::bucket_of(extent.bound()));
  return out;
}

}  // namespace

std::string config_number(int64_t value) { return std::to_string(value); }
std::string config_number(double value) { return fmt::format("{:g}", value); }

std::shared_ptr<const graph::KernelProgram> tuned_program(const Definition& d, const std::vector<array>& inputs) {
  check_tuning(d);
  const Tuning& t = d.tuning;
  const std::vector<AnyConfig> configs = t.prune ? t.prune(t.configs, inputs) : t.configs;
  if (configs.empty()) refuse_tuning(d, "prune has left no configuration: return one at least");
  graph::KernelTuning tuning;
  std::vector<Shape> shapes;
  std::set<std::string> words;
  for (size_t k = 0; k < configs.size(); ++k) {
    std::string word = word_of(configs[k], k);
    if (!words.insert(word).second) words.insert(word += fmt::format("#{}", k));
    tuning.candidates.push_back(candidate(d, inputs, configs[k], std::move(word), shapes));
  }
  const auto first = std::find_if(tuning.candidates.begin(), tuning.candidates.end(),
                                  [](const graph::KernelCandidate& c) { return c.program != nullptr; });
  if (first == tuning.candidates.end()) {
    std::string text = "no configuration works:";
    for (const graph::KernelCandidate& c : tuning.candidates) text += "\n  " + c.word + ": " + c.refused;
    refuse_tuning(d, text);
  }
  if (first->program->grid == 0) return first->program;  // nothing is launched
  tuning.shape_key = shape_key(d, inputs, shapes);
  tuning.keyed = static_cast<bool>(t.key);
  tuning.most_measured = t.most_measured;
  for (const ArrayReset& r : t.resets) tuning.resets.push_back({r.array, r.value});
  tuning.restored = t.restored;
  tuning.compile_limit = t.options.compile_limit, tuning.run_limit = t.options.run_limit;
  tuning.repetitions = static_cast<size_t>(t.options.repetitions);
  graph::KernelProgram out = *first->program;
  out.tuning = graph::kernel_tuning(std::move(tuning));
  return graph::kernel_program(std::move(out));
}

}  // namespace weft::k::detail
