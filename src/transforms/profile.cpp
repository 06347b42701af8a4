// weft/profile.h: tables of kernels, from the steps of programs and, where they ran, from a recorded timeline.
#include "weft/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <ostream>
#include <string_view>

#include "base/error.h"
#include "compiler/program.h"
#include "compiler/program/measured_rates.h"
#include "compiler/program/step_times.h"
#include "runtime/trace.h"
#include "transforms/compiled.h"
#include "weft/device.h"

namespace weft {

namespace {

using compiler::Prediction;
using compiler::Program;
using target::Rates;

KernelRow row_of(const compiler::StepInfo& step, const Prediction& time, double launches) {
  KernelRow row;
  row.name = step.name, row.what = step.what, row.kind = step.kind, row.groups = step.segments;
  row.launches = launches, row.bytes = launches * step.bytes, row.flops = launches * step.flops;
  row.predicted_ms = 1e3 * launches * time.seconds, row.floor_ms = 1e3 * launches * time.floor;
  return row;
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Every run of a step in a timeline.
struct StepRuns {
  double first;  // when it first ran
  std::vector<double> ms;
};
using StepKey = std::pair<int64_t, int>;  // program and step

/// Calls `run` until nothing is prepared any more, then `runs` times, and returns what ran.
std::map<StepKey, StepRuns> record(const std::function<void()>& run, int runs) {
  run();
  const bool traced = runtime::recording();
  if (!traced) runtime::start_recording();
  const auto repeat = [&](int times) {
    for (int k = 0; k < times; ++k) run();
    synchronize();
  };
  repeat(2);  // a device captures its graphs again, with timestamps
  const double start = runtime::record_time();
  repeat(runs);
  const runtime::Timeline timeline = traced ? runtime::recorded() : runtime::stop_recording();
  std::map<StepKey, StepRuns> out;
  for (const runtime::Slice& s : timeline.slices) {
    if (s.step < 0 || s.start < start || std::string_view(s.kind) == "nested") continue;  // nested: its own steps count
    StepRuns& step = out.try_emplace({s.program, s.step}, StepRuns{s.start, {}}).first->second;
    step.first = std::min(step.first, s.start);
    step.ms.push_back(s.length / 1e3);
  }
  return out;
}

std::vector<KernelRow> rows_of(std::map<StepKey, StepRuns>& steps, int runs, const Rates& rates) {
  struct Known {
    std::shared_ptr<const Program> program;
    std::vector<Prediction> times;
  };
  std::map<int64_t, Known> programs;
  std::vector<std::pair<double, KernelRow>> found;
  for (auto& [key, step] : steps) {
    const auto [at, fresh] = programs.try_emplace(key.first);
    if (fresh && (at->second.program = compiler::find_program(key.first)))
      at->second.times = at->second.program->predict(rates);
    if (!at->second.program) continue;  // nobody holds it any more
    const auto k = static_cast<size_t>(key.second);
    const double launches = static_cast<double>(step.ms.size()) / runs;
    KernelRow row = row_of(at->second.program->steps()[k], at->second.times[k], launches);
    row.ms = launches * median(step.ms);
    found.emplace_back(step.first, std::move(row));
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<KernelRow> rows;
  for (auto& [when, row] : found) rows.push_back(std::move(row));
  return rows;
}

/// Returns whether a row is clearly faster than the peaks allow, which then were measured on a busy machine.
bool beats_peaks(const std::vector<KernelRow>& rows) {
  constexpr double clearly = 1.05;
  return std::any_of(rows.begin(), rows.end(), [](const KernelRow& row) { return row.of_peak() > clearly; });
}

/// Returns "12.3 MB": three digits and a unit of 1000.
std::string amount(double value, const char* unit) {
  static constexpr const char* prefixes[] = {"", "k", "M", "G", "T"};
  size_t k = 0;
  while (value >= 999.5 && k + 1 < std::size(prefixes)) value /= 1000, ++k;
  const int digits = k == 0 || value >= 99.95 ? 0 : value < 9.995 ? 2 : 1;
  return fmt::format("{:.{}f} {}{}", value, digits, prefixes[k], unit);
}

template <class Field>
double total(const std::vector<KernelRow>& rows, Field field) {
  double sum = 0;
  for (const KernelRow& row : rows) sum += row.*field;
  return sum;
}

}  // namespace

double KernelTable::ms() const { return total(rows, &KernelRow::ms); }
double KernelTable::predicted_ms() const { return total(rows, &KernelRow::predicted_ms); }
double KernelTable::floor_ms() const { return total(rows, &KernelRow::floor_ms); }

KernelTable KernelTable::by_work() const {
  std::map<std::string, KernelRow> by_name;
  for (const KernelRow& row : rows) {
    const std::string label = row.kind == "kernel" && !row.what.empty() ? row.what : row.name;
    const std::string key = row.groups > 1 ? fmt::format("{} (of {} groups)", label, row.groups) : label;
    const auto [at, fresh] = by_name.try_emplace(key, row);
    if (fresh) continue;
    KernelRow& all = at->second;
    all.launches += row.launches, all.bytes += row.bytes, all.flops += row.flops;
    all.predicted_ms += row.predicted_ms, all.floor_ms += row.floor_ms, all.ms += row.ms;
  }
  KernelTable out;
  out.peaks = peaks;
  for (auto& [key, row] : by_name) out.rows.push_back(std::move(row));
  std::stable_sort(out.rows.begin(), out.rows.end(), [](const KernelRow& a, const KernelRow& b) {
    return std::pair(a.ms, a.predicted_ms) > std::pair(b.ms, b.predicted_ms);
  });
  return out;
}

std::string KernelTable::to_string(size_t most) const {
  const double all = ms();
  const auto rate = [](double work, double ms) { return ms > 0 ? work / ms / 1e6 : 0; };
  std::string out = all > 0 ? fmt::format("{:.4f} ms in {} rows, ", all, rows.size())
                            : fmt::format("{} rows, not measured, ", rows.size());
  out += fmt::format("{:.4f} ms predicted, {:.4f} ms at the machine's peaks ({})\n", predicted_ms(), floor_ms(), peaks);
  out += fmt::format("{:>9} {:>9} {:>6} {:>7} {:>7} {:>10} {:>11} {:>7} {:>9}  {}\n", "ms", "predicted", "share",
                     "of peak", "calls", "moved", "computed", "GB/s", "GFLOP/s", "what");
  for (size_t k = 0; k < std::min(most, rows.size()); ++k) {
    const KernelRow& row = rows[k];
    const std::string name = row.what.empty() ? row.name : row.name + ": " + row.what;
    const bool measured = row.ms > 0;
    const auto shown = [&](const std::string& text) { return measured ? text : "-"; };
    out += fmt::format("{:>9} {:9.4f} {:>6} {:>7} {:7g} {:>10} {:>11} {:>7} {:>9}  {}{}\n",
                       shown(fmt::format("{:.4f}", row.ms)), row.predicted_ms,
                       shown(fmt::format("{:.1f} %", 100 * row.ms / all)),
                       shown(fmt::format("{:.0f} %", 100 * row.of_peak())), row.launches, amount(row.bytes, "B"),
                       amount(row.flops, "FLOP"), shown(fmt::format("{:.1f}", rate(row.bytes, row.ms))),
                       shown(fmt::format("{:.1f}", rate(row.flops, row.ms))), name,
                       row.groups > 1 ? fmt::format(" (of {} groups)", row.groups) : "");
  }
  if (rows.size() > most) out += fmt::format("and {} rows more\n", rows.size() - most);
  return out;
}

std::ostream& operator<<(std::ostream& os, const KernelTable& table) { return os << table.to_string(); }

KernelTable explain(const ArrayFunction& fun, const std::vector<array>& arguments) {
  const Rates rates = compiler::machine_rates(compiler::default_target());
  KernelTable table;
  table.peaks = target::to_string(rates);
  const auto program = transforms::program_for(fun, arguments);
  if (!program) return table;
  const std::vector<Prediction> times = program->predict(rates);
  for (size_t k = 0; k < times.size(); ++k) table.rows.push_back(row_of(program->steps()[k], times[k], 1));
  return table;
}

KernelTable profile(const std::function<void()>& run, int runs) {
  if (!run) throw_invalid("profile", "there is no function: it is a null pointer");
  if (runs < 1) throw_invalid("profile", fmt::format("{} runs cannot be measured: at least 1", runs));
  static std::atomic<bool> measured_again = false;  // what beats fresh peaks is a matter of the model of caches
  target::Target& target = compiler::default_target();
  Rates rates = compiler::machine_rates(target);
  std::map<StepKey, StepRuns> steps = record(run, runs);
  KernelTable table;
  table.rows = rows_of(steps, runs, rates);
  if (beats_peaks(table.rows) && !measured_again.exchange(true)) {
    rates = compiler::machine_rates(target, true);
    table.rows = rows_of(steps, runs, rates);
  }
  table.peaks = target::to_string(rates);
  return table;
}

KernelTable profile(const ArrayFunction& fun, const std::vector<array>& arguments, int runs) {
  if (!fun) throw_invalid("profile", "there is no function: it is a null pointer");
  return profile([&] { eval(fun(arguments)); }, runs);
}

}  // namespace weft
