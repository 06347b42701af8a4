// The profile that follows a training step's figure.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "runtime/trace.h"
#include "tools/weft/bench/profile.h"
#include "tools/weft/bench/support.h"
#include "weft/device.h"

namespace weft::tool {

void print_stages(const runtime::Timeline& timeline) {
  struct Stage {
    double ms = 0;
    int64_t times = 0;
  };
  std::map<std::string, Stage> stages;
  for (const runtime::Slice& s : timeline.slices) {
    if (std::string_view(s.kind) != "compiler") continue;
    Stage& stage = stages[timeline.names[static_cast<size_t>(s.name)]];
    stage.ms += s.length / 1e3, ++stage.times;
  }
  for (const auto& [name, stage] : stages) fmt::print("{:9.1f} ms {:4}x  {}\n", stage.ms, stage.times, name);
}

Profile profile(int64_t runs, const std::function<void()>& f) {
  const Peaks& peaks = machine_peaks();
  const bool traced = runtime::recording();
  if (!traced) runtime::start_recording();
  // On a device, the first runs with timestamps differ from the others: they are captured again.
  const auto run = [&](int64_t times) {
    for (int64_t i = 0; i < times; ++i) f();
    synchronize();
  };
  run(2);
  const double start = runtime::record_time();
  run(runs);
  const runtime::Timeline timeline = traced ? runtime::recorded() : runtime::stop_recording();
  std::map<std::string, ProfileEntry> by_name;
  Profile out;
  const double each = 1.0 / static_cast<double>(runs);
  for (const runtime::Slice& s : timeline.slices) {
    if (s.step < 0 || s.start < start || std::string_view(s.kind) == "nested")
      continue;  // control flow: its own steps are counted
    ProfileEntry& e = by_name[timeline.names[static_cast<size_t>(s.name)]];
    const double ms = each * s.length / 1e3, floor_ms = each * 1e3 * floor_seconds(peaks, s.bytes, s.flops, s.half);
    e.launches += each, e.ms += ms, e.floor_ms += floor_ms, e.bytes += each * s.bytes, e.flops += each * s.flops;
    out.ms += ms, out.floor_ms += floor_ms;
  }
  for (auto& [name, e] : by_name) {
    e.name = name;
    e.share = out.ms > 0 ? e.ms / out.ms : 0;
    out.entries.push_back(std::move(e));
  }
  std::sort(out.entries.begin(), out.entries.end(),
            [](const ProfileEntry& a, const ProfileEntry& b) { return a.ms > b.ms; });
  return out;
}

void print_profile(int64_t runs, const std::function<void()>& f) {
  const Profile p = profile(runs, f);
  fmt::print("{:9.3f} ms a run in {} kinds of steps; {:.3f} ms at the device's peaks ({})\n", p.ms, p.entries.size(),
             p.floor_ms, to_string(machine_peaks()));
  fmt::print("{:>9}    {:>5} {:>6} {:>8} {:>9} {:>7}  {}\n", "ms", "share", "calls", "GB/s", "TFLOP/s", "of peak",
             "what");
  for (size_t i = 0; i < std::min<size_t>(p.entries.size(), 40); ++i) {
    const ProfileEntry& e = p.entries[i];
    fmt::print("{:9.3f} ms {:5.1f} % {:5.0f}x {:7.1f} {:9.2f} {:5.0f} %  {}\n", e.ms, 100 * e.share, e.launches,
               e.gbs(), e.tflops(), 100 * e.of_peak(), e.name);
  }
}

}  // namespace weft::tool
