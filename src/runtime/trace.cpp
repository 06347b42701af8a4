#include "runtime/trace.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace weft::runtime {

namespace {

std::atomic<bool> profiling_on{false};
std::mutex profile_mutex;

std::map<std::string, ProfileEntry>& entries() {
  static auto& map = *new std::map<std::string, ProfileEntry>;  // may be used by threads that outlive main
  return map;
}

}  // namespace

Counters& counters() {
  static auto& instance = *new Counters;
  return instance;
}

void set_profiling(bool on) { profiling_on = on; }
bool profiling() { return profiling_on.load(std::memory_order_relaxed); }

void profile(const std::string& name, double ms) {
  std::lock_guard lock(profile_mutex);
  ProfileEntry& entry = entries()[name];
  entry.name = name;
  ++entry.calls;
  entry.ms += ms;
}

std::vector<ProfileEntry> profile_report() {
  std::lock_guard lock(profile_mutex);
  std::vector<ProfileEntry> report;
  for (const auto& [name, entry] : entries()) report.push_back(entry);
  entries().clear();
  std::sort(report.begin(), report.end(), [](const ProfileEntry& a, const ProfileEntry& b) { return a.ms > b.ms; });
  return report;
}

}  // namespace weft::runtime
