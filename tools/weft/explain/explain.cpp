// Measures a program's steps and prints them.
#include "tools/weft/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "runtime/trace.h"

namespace weft::tool {

namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

struct Totals {
  double bytes = 0, flops = 0, floor_ms = 0, predicted_ms = 0;
  std::map<std::string, int> kinds;
};

Totals totals_of(const Explained& e, const std::vector<compiler::Prediction>& times) {
  Totals t;
  const auto& steps = e.program->steps();
  for (size_t k = 0; k < steps.size(); ++k) {
    t.bytes += steps[k].bytes, t.flops += steps[k].flops, t.floor_ms += 1e3 * times[k].floor,
        t.predicted_ms += 1e3 * times[k].seconds;
    ++t.kinds[steps[k].kind];
  }
  return t;
}

/// Returns bytes as "12.3 MB": three digits and a unit of 1000.
std::string amount(double value, const char* unit) {
  static constexpr const char* prefixes[] = {"", "k", "M", "G", "T"};
  size_t k = 0;
  while (value >= 999.5 && k + 1 < std::size(prefixes)) value /= 1000, ++k;
  return fmt::format("{:.{}f} {}{}", value,
                     value < 9.995 && k > 0   ? 2
                     : value < 99.95 && k > 0 ? 1
                                              : 0,
                     prefixes[k], unit);
}

/// Returns the lines of a stage that begin so.
std::vector<std::string> lines_of(const compiler::Program& program, const char* stage, std::string_view begin) {
  std::istringstream text(program.print(stage));
  std::vector<std::string> out;
  for (std::string line; std::getline(text, line);)
    if (line.starts_with(begin)) out.push_back(line);
  return out;
}

/// Returns what the tuner says of users' kernels with configurations: a line for each.
std::vector<std::string> configurations(const compiler::Program& program) {
  return lines_of(program, "tune", "kernel ");
}

/// Returns the steps of each group: a line for each.
std::vector<std::string> schedules(const compiler::Program& program) {
  return lines_of(program, "schedules", "group ");
}

double rate(double work, double ms) { return ms > 0 ? work / ms / 1e6 : 0; }  // in 1e9 a second

}  // namespace

Explained explain_program(const std::string& title, int runs, const std::function<void()>& first,
                          const std::function<void()>& again) {
  Explained e;
  e.title = title;
  {
    const compiler::BuildRecord record(true);
    first();
    for (const auto& program : record.programs())
      if (!e.program || program->steps().size() > e.program->steps().size()) e.program = program;
  }
  if (!e.program) throw std::runtime_error(title + ": nothing was compiled: the function computes nothing");
  again();
  runtime::start_recording();
  for (int k = 0; k < runs; ++k) again();
  const runtime::Timeline timeline = runtime::stop_recording();
  std::vector<std::vector<double>> times(e.program->steps().size());
  for (const runtime::Slice& s : timeline.slices)
    if (s.program == e.program->number() && s.step >= 0) times[static_cast<size_t>(s.step)].push_back(s.length / 1e3);
  std::vector<double> sums;
  for (size_t run = 0; !times.empty() && run < times[0].size(); ++run) {
    double sum = 0;
    for (const auto& of_step : times) sum += of_step.at(run);
    sums.push_back(sum);
  }
  if (!times.empty() && sums.empty())
    throw std::runtime_error(title + ": a second call ran another program than the first");
  for (auto& of_step : times) e.step_ms.push_back(median(std::move(of_step)));
  e.run_ms = median(sums);
  return e;
}

std::string explained_text(const Explained& e, const target::Rates& rates, const std::vector<std::string>& show) {
  const std::vector<compiler::Prediction> times = e.program->predict(rates);
  const Totals t = totals_of(e, times);
  const compiler::Stats& stats = e.program->stats();
  const auto& steps = e.program->steps();
  std::string out = fmt::format("{}\n", e.title);
  out += fmt::format("  {} steps: {} kernel launches, {} library calls, {} copies\n", steps.size(), stats.launches,
                     stats.library_calls, stats.copies);
  out += fmt::format(
      "  moves {} and computes {}; takes {:.3f} ms, {:.3f} ms predicted, {:.3f} ms at the machine's peaks: {:.0f} "
      "%\n",
      amount(t.bytes, "B"), amount(t.flops, "FLOP"), e.run_ms, t.predicted_ms, t.floor_ms,
      e.run_ms > 0 ? 100 * t.floor_ms / e.run_ms : 0.0);
  out += fmt::format(
      "  memory: {} planned for what lives within a run, {} of it alive at once; {} with what is read and returned\n",
      amount(static_cast<double>(stats.arena_bytes), "B"), amount(static_cast<double>(stats.live_bytes), "B"),
      amount(static_cast<double>(stats.peak_bytes), "B"));
  out += fmt::format("  built in {:.1f} ms: simplify {:.1f}, group {:.1f}, lower {:.1f}, compile {:.1f}\n",
                     stats.simplify_ms + stats.group_ms + stats.lower_ms + stats.compile_ms, stats.simplify_ms,
                     stats.group_ms, stats.lower_ms, stats.compile_ms);
  for (const std::string& line : configurations(*e.program)) out += "  " + line + "\n";
  out += "\n  schedules\n";
  for (const std::string& line : schedules(*e.program)) out += "  " + line + "\n";
  for (const std::string& stage : show) out += fmt::format("\n  {}\n{}", stage, e.program->print(stage));
  out += fmt::format("\n  {:>4} {:7} {:>9} {:>9} {:>10} {:>11} {:>7} {:>9} {:>7}  {}\n", "step", "kind", "ms",
                     "predicted", "moved", "computed", "GB/s", "GFLOP/s", "of peak", "what");
  for (size_t k = 0; k < steps.size(); ++k) {
    const compiler::StepInfo& s = steps[k];
    const double ms = e.step_ms[k];
    out += fmt::format("  {:4} {:7} {:9.4f} {:9.4f} {:>10} {:>11} {:7.1f} {:9.1f} {:5.0f} %  {}{}: {}\n", k, s.kind, ms,
                       1e3 * times[k].seconds, amount(s.bytes, "B"), amount(s.flops, "FLOP"), rate(s.bytes, ms),
                       rate(s.flops, ms), ms > 0 ? 1e5 * times[k].floor / ms : 0.0, s.name,
                       s.segments > 1 ? fmt::format(" of {} groups", s.segments) : "", s.what);
  }
  return out;
}

std::string explained_json(const Explained& e, const target::Rates& rates, const std::vector<std::string>& show) {
  const std::vector<compiler::Prediction> times = e.program->predict(rates);
  const Totals t = totals_of(e, times);
  const compiler::Stats& stats = e.program->stats();
  nlohmann::ordered_json out;
  out["title"] = e.title;
  out["ms"] = e.run_ms, out["predicted_ms"] = t.predicted_ms, out["floor_ms"] = t.floor_ms;
  out["bytes"] = t.bytes, out["flops"] = t.flops;
  out["arena_bytes"] = stats.arena_bytes, out["live_bytes"] = stats.live_bytes, out["peak_bytes"] = stats.peak_bytes;
  out["launches"] = stats.launches, out["library_calls"] = stats.library_calls, out["copies"] = stats.copies;
  out["build_ms"] = {{"simplify", stats.simplify_ms},
                     {"group", stats.group_ms},
                     {"lower", stats.lower_ms},
                     {"compile", stats.compile_ms}};
  out["peaks"] = {{"copy_GBps", rates.memory() / 1e9},
                  {"gflops_f32", rates.peak(Arithmetic::f32) / 1e9},
                  {"gflops_half", rates.peak(Arithmetic::f16) / 1e9}};
  if (const auto lines = configurations(*e.program); !lines.empty()) out["configurations"] = lines;
  out["schedules"] = schedules(*e.program);
  for (const std::string& stage : show) out[stage] = e.program->print(stage);
  out["steps"] = nlohmann::ordered_json::array();
  const auto& steps = e.program->steps();
  for (size_t k = 0; k < steps.size(); ++k) {
    const compiler::StepInfo& s = steps[k];
    const double ms = e.step_ms[k];
    out["steps"].push_back({{"kind", s.kind},
                            {"name", s.name},
                            {"what", s.what},
                            {"groups", s.segments},
                            {"ms", ms},
                            {"predicted_ms", 1e3 * times[k].seconds},
                            {"bytes", s.bytes},
                            {"flops", s.flops},
                            {"GBps", rate(s.bytes, ms)},
                            {"gflops", rate(s.flops, ms)},
                            {"fraction_of_peak", ms > 0 ? 1e3 * times[k].floor / ms : 0.0}});
  }
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace weft::tool
