#pragma once
// Counters that are always on, and a timeline that is recorded on demand.
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/arithmetic.h"

namespace weft::runtime {

struct Counters {
  std::atomic<int64_t> traces{0};          // functions traced by compile()
  std::atomic<int64_t> programs_built{0};  // graphs that went through the compiler
  std::atomic<int64_t> programs_run{0};
  std::atomic<int64_t> kernel_launches{0};
  std::atomic<int64_t> library_calls{0};
  std::atomic<int64_t> copies{0};
  std::atomic<int64_t> to_device{0}, to_host{0};  // buffers that were copied between memories
  std::atomic<int64_t> between_devices{0};        // … of two devices
  std::atomic<int64_t> device_waits{0};           // times that the host waited for all work of a device
  std::atomic<int64_t> tasks_queued{0};           // handed to the thread of an executor
  std::atomic<int64_t> graph_launches{0};         // whole programs replayed by the device
};
Counters& counters();

/// An interval of time on one thread or device. Slices of a thread nest.
struct Slice {
  int name = 0;           // Timeline::names
  const char* kind = "";  // "kernel", "library", "copy", "program", "compiler", "part" (a thread's share of a launch)
  int thread = 0;         // Timeline::threads
  double start = 0, length = 0;                // microseconds since recording began
  double bytes = 0, flops = 0;                 // moved and computed; 0 if it does not apply
  Arithmetic arithmetic = Arithmetic::vector;  // of the matmul in it, which has a peak of its own
  int64_t program = 0;                         // of a step: which Program ran it (numbered from 1) …
  int step = -1;                               // … and where in it
};
/// The value of a quantity at one time.
struct Sample {
  const char* track;  // "memory"
  double time, value;
};
struct Timeline {
  std::vector<std::string> names, threads;
  std::vector<Slice> slices;  // in the order of their ends
  std::vector<Sample> samples;
  int64_t dropped = 0;  // slices past the limit of four million
};

namespace detail {
inline std::atomic<bool> recording{false};
}
/// Returns whether a timeline is being recorded: this flag is the only cost while it is not.
inline bool recording() { return detail::recording.load(std::memory_order_relaxed); }
void start_recording();  // anew
Timeline stop_recording();
Timeline recorded();  // the timeline so far; recording continues

double record_time();                                   // microseconds since recording began
int record_name(const std::string& name);               // its number in this timeline
double record_time(double steady_us);                   // the same of a moment of std::chrono::steady_clock
void record(Slice slice);                               // the calling thread's; `thread` is filled in
void record_on(const std::string& track, Slice slice);  // a device's: "cuda:0"
/// Registers `settle`, which records slices that are only known once a device has done its work. It is called before
/// the timeline is returned.
void record_later(std::function<void()> settle);
void record_sample(const char* track, double value);
void name_thread(const std::string& name);  // the calling thread; "main" is the first that records, others are numbered

/// Sets the current launch for the slices of the team's threads; -1: none, they share other work. Returns the previous
/// one.
int set_current_launch(int name);
int current_launch();

/// Records its own lifetime as a slice.
class Span {
 public:
  Span(const char* kind, const char* name)
      : on_(recording()), kind_(kind), name_(name), start_(on_ ? record_time() : 0) {}
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  bool on_;
  const char *kind_, *name_;
  double start_;
};

}  // namespace weft::runtime
