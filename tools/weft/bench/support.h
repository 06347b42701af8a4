#pragma once
// The common parts of the benchmarks of `weft bench`: options, lines of results, medians.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/trace.h"
#include "tools/weft/train/train_options.h"
#include "weft/compile.h"
#include "weft/dtype.h"

namespace weft::tool {

struct BenchOptions {
  std::string name, dtype = "f32", weights = "f32", residual = "f32", model = "nanogpt", trace, record;
  std::string only, sizes, write;  // of the table of workloads; of random graphs
  std::string ladder;
  int64_t seed = 0, count = 100;  // of random graphs
  int64_t reps = 0;
  bool json = false, profile = false, cpu_time = false;
  bool silent = false;  // rows are not printed: another benchmark runs this one
  MachineOptions machine;
};

/// Appends a line to the file of records (BenchOptions::record): what is measured from here on, by which command, on
/// which day, and with which flags the program was compiled. `scripts/figures add` reads it.
void record_command(const std::string& file);

/// One line of results, printed as JSON or as text, and written to the file of records as JSON.
class Row {
 public:
  /// `dtype`: where it is not that of the options.
  Row(const std::string& bench, const BenchOptions& o, const std::string& dtype = "");
  Row& text(const char* key, const std::string& value);
  Row& number(const char* key, double value);
  Row& whole(const char* key, int64_t value);
  void print() const;

 private:
  Row& add(const char* key, const std::string& json, const std::string& plain);
  bool json_, silent_;
  std::string record_, json_line_, line_;
};

/// Returns the seconds of a call of `f` by the clock, or of processor time of the calling thread.
inline double seconds_of(const std::function<void()>& f, bool cpu_time = false) {
  const auto now = [cpu_time] {
    timespec t{};
    clock_gettime(cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double start = now();
  f();
  return now() - start;
}

/// Returns the median milliseconds of `reps` calls of `f`, after two that are not counted.
inline double median_of(int64_t reps, const std::function<void()>& f, bool cpu_time = false) {
  for (int i = 0; i < 2; ++i) f();
  std::vector<double> times;
  for (int64_t i = 0; i < reps; ++i) times.push_back(seconds_of(f, cpu_time) * 1e3);
  std::sort(times.begin(), times.end());
  const size_t half = times.size() / 2;
  return times.size() % 2 ? times[half] : (times[half - 1] + times[half]) / 2;
}

/// Returns the median milliseconds of a run on a device over `reps` bursts of `burst` runs, which are issued in a row.
double device_ms(int64_t reps, int burst, const std::function<void()>& f);
constexpr int long_burst = 100;  // for runs shorter than a millisecond: the host's time to begin a burst and to see its
                                 // end, some 20 us, is a part of each run's time
/// Returns a function of arrays compiled for inputs, with `libraries` or without, whatever the policy says later.
ArrayFunction compiled_as(const ArrayFunction& f, const std::vector<array>& inputs, bool libraries);
/// Throws UsageError where the default device is none.
void need_gpu(const char* name);

inline int64_t reps_of(const BenchOptions& o, int64_t usual) { return o.reps > 0 ? o.reps : usual; }

struct Bench {
  const char* name;
  const char* what;
  void (*run)(const BenchOptions&);
};
std::span<const Bench> all_benches();

void bench_eager(const BenchOptions& o);
void bench_tensors(const BenchOptions& o);
void bench_memory(const BenchOptions& o);
void bench_trig(const BenchOptions& o);
void bench_dot(const BenchOptions& o);
void bench_user_kernels(const BenchOptions& o);
/// Times users' kernels on a GPU's tensor cores beside the fastest that the compiler finds.
void bench_tensor_cores(const BenchOptions& o);
void bench_tutorials(const BenchOptions& o);
void bench_ladder(const BenchOptions& o);
void bench_kernels(const BenchOptions& o);
void bench_cost(const BenchOptions& o);
void bench_schedules(const BenchOptions& o);
void bench_models(const BenchOptions& o);
void bench_operations(const BenchOptions& o);
void bench_random(const BenchOptions& o);
std::vector<std::string> kernel_bench_models();  // what its --model may be
void bench_gpu_memory(const BenchOptions& o);
void bench_gpu_rows(const BenchOptions& o);
void bench_gpu_long(const BenchOptions& o);
void bench_gpu_matmul(const BenchOptions& o);
void bench_gpu_products(const BenchOptions& o);
void bench_gpu_attention(const BenchOptions& o);
void bench_gpu_gpt2(const BenchOptions& o);
void bench_gpu_gpt2_medium(const BenchOptions& o);
void bench_gpu_gpt2_large(const BenchOptions& o);
void bench_gpu_gpt2_xl(const BenchOptions& o);
void bench_gpu_gpt2_small_batch(const BenchOptions& o);
void bench_gpu_mnist(const BenchOptions& o);
void bench_gpu_decode(const BenchOptions& o);
void bench_gpu_fft(const BenchOptions& o);
void bench_linalg(const BenchOptions& o);
void bench_gpu_sort(const BenchOptions& o);
void bench_gpu_scan(const BenchOptions& o);
void bench_gpu_scatter(const BenchOptions& o);
void bench_gpu_replay(const BenchOptions& o);

/// Prints the recorded time of the stages of compiling; stages are nested, and run on several threads.
void print_stages(const runtime::Timeline& timeline);
/// Prints the most expensive steps of `f`, each with its share of the time and of the device's peak.
void print_profile(int64_t runs, const std::function<void()>& f);

}  // namespace weft::tool
