#include "runtime/trace.h"

#include <chrono>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace weft::runtime {

namespace {

using Clock = std::chrono::steady_clock;

struct Recorder {
  std::mutex mutex;
  Timeline timeline;
  std::unordered_map<std::string, int> numbers;  // of names
  std::atomic<Clock::time_point::rep> epoch{0};
  std::atomic<int64_t> generation{0};  // counts timelines
  std::atomic<int> launch{-1};
  std::map<std::string, int> tracks;  // of devices in this timeline
  std::vector<std::function<void()>> later;
};

Recorder& recorder() {
  static auto& instance = *new Recorder;  // may be used by threads that outlive main
  return instance;
}

thread_local std::string thread_name;
thread_local int thread_id = 0;
thread_local int64_t thread_generation = -1;

constexpr size_t most_slices = 4'000'000;

/// Records the slices of devices. Called without the lock, because recording takes it.
void settle_all() {
  std::vector<std::function<void()>> later;
  {
    std::lock_guard lock(recorder().mutex);
    later.swap(recorder().later);
  }
  for (const auto& settle : later) settle();
}

/// Returns whether a slice is part of this timeline and there is room; slices that began in an earlier timeline are
/// not. Needs the lock.
bool takes(Recorder& r, const Slice& slice) {
  if (!recording() || slice.start < 0 || slice.name >= static_cast<int>(r.timeline.names.size())) return false;
  if (r.timeline.slices.size() < most_slices) return true;
  ++r.timeline.dropped;
  return false;
}

/// Returns the calling thread's id in this timeline. Needs the lock.
int number_thread(Recorder& r) {
  if (thread_generation != r.generation) {
    thread_generation = r.generation;
    thread_id = static_cast<int>(r.timeline.threads.size());
    r.timeline.threads.push_back(!thread_name.empty() ? thread_name
                                 : thread_id == 0     ? "main"
                                                      : "thread " + std::to_string(thread_id));
  }
  return thread_id;
}

}  // namespace

Counters& counters() {
  static auto& instance = *new Counters;
  return instance;
}

void start_recording() {
  Recorder& r = recorder();
  std::lock_guard lock(r.mutex);
  r.timeline = {};
  r.numbers.clear();
  r.tracks.clear();
  r.later.clear();
  ++r.generation;
  r.launch = -1;
  r.epoch = Clock::now().time_since_epoch().count();
  detail::recording = true;
}

Timeline stop_recording() {
  settle_all();
  Recorder& r = recorder();
  std::lock_guard lock(r.mutex);
  detail::recording = false;
  ++r.generation;
  r.numbers.clear();
  return std::exchange(r.timeline, {});
}

Timeline recorded() {
  settle_all();
  Recorder& r = recorder();
  std::lock_guard lock(r.mutex);
  return r.timeline;
}

double record_time() {
  return std::chrono::duration<double, std::micro>(Clock::duration(Clock::now().time_since_epoch().count() -
                                                                   recorder().epoch.load(std::memory_order_relaxed)))
      .count();
}

double record_time(double steady_us) {
  return steady_us -
         std::chrono::duration<double, std::micro>(Clock::duration(recorder().epoch.load(std::memory_order_relaxed)))
             .count();
}

int record_name(const std::string& name) {
  Recorder& r = recorder();
  std::lock_guard lock(r.mutex);
  const auto [it, fresh] = r.numbers.try_emplace(name, static_cast<int>(r.timeline.names.size()));
  if (fresh) r.timeline.names.push_back(name);
  return it->second;
}

void record(Slice slice) {
  Recorder& r = recorder();
  std::lock_guard lock(r.mutex);
  if (!takes(r, slice)) return;
  slice.thread = number_thread(r);
  r.timeline.slices.push_back(slice);
}

void record_on(const std::string& track, Slice slice) {
  Recorder& r = recorder();
  std::lock_guard lock(r.mutex);
  if (!takes(r, slice)) return;
  const auto [it, fresh] = r.tracks.try_emplace(track, static_cast<int>(r.timeline.threads.size()));
  if (fresh) r.timeline.threads.push_back(track);
  slice.thread = it->second;
  r.timeline.slices.push_back(slice);
}

void record_later(std::function<void()> settle) {
  Recorder& r = recorder();
  std::lock_guard lock(r.mutex);
  if (recording()) r.later.push_back(std::move(settle));
}

void record_sample(const char* track, double value) {
  const double time = record_time();
  Recorder& r = recorder();
  std::lock_guard lock(r.mutex);
  if (recording()) r.timeline.samples.push_back({track, time, value});
}

void name_thread(const std::string& name) { thread_name = name; }

int set_current_launch(int name) { return recorder().launch.exchange(name, std::memory_order_relaxed); }
int current_launch() { return recorder().launch.load(std::memory_order_relaxed); }

Span::~Span() {
  if (!on_ || !recording()) return;
  const double end = record_time();
  record({.name = record_name(name_), .kind = kind_, .start = start_, .length = end - start_});
}

}  // namespace weft::runtime
