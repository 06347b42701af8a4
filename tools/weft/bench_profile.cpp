// The profile that follows a training step's figure.
#include <fmt/format.h>

#include <map>
#include <string_view>

#include "bench_support.h"
#include "peaks.h"
#include "runtime/trace.h"

namespace weft::tool {

void print_profile(int64_t runs, const std::function<void()>& f) {
  struct Entry {
    double ms = 0, floor_ms = 0;
    int64_t calls = 0;
  };
  const Peaks& peaks = machine_peaks();
  const bool traced = runtime::recording();
  if (!traced) runtime::start_recording();
  const double start = runtime::record_time();
  for (int64_t i = 0; i < runs; ++i) f();
  const runtime::Timeline timeline = traced ? runtime::recorded() : runtime::stop_recording();
  std::map<std::string, Entry> by_name;
  double total = 0, floor = 0;
  for (const runtime::Slice& s : timeline.slices) {
    if (s.step < 0 || s.start < start || std::string_view(s.kind) == "nested") continue;  // control flow: its steps are counted
    Entry& e = by_name[timeline.names[static_cast<size_t>(s.name)]];
    e.ms += s.length / 1e3, e.floor_ms += 1e3 * floor_seconds(peaks, s.bytes, s.flops, s.half), ++e.calls;
    total += s.length / 1e3, floor += 1e3 * floor_seconds(peaks, s.bytes, s.flops, s.half);
  }
  std::vector<std::pair<std::string, Entry>> report(by_name.begin(), by_name.end());
  std::sort(report.begin(), report.end(), [](const auto& a, const auto& b) { return a.second.ms > b.second.ms; });
  fmt::print("{:9.3f} ms a run in {} kinds of steps; {:.3f} ms at the machine's peaks ({})\n", total / static_cast<double>(runs), report.size(), floor / static_cast<double>(runs),
             to_string(peaks));
  for (size_t i = 0; i < std::min<size_t>(report.size(), 40); ++i) {
    const auto& [name, e] = report[i];
    fmt::print("{:9.3f} ms {:5.1f} % {:4}x {:5.0f} % of peak  {}\n", e.ms / static_cast<double>(runs), 100 * e.ms / total, e.calls / runs, 100 * e.floor_ms / e.ms, name);
  }
}

}  // namespace weft::tool
