// The thread team. With WEFT_OPENMP this is the one file that enters libgomp; without it a pool of
// std::thread keeps the same contract, in terms that thread sanitizers understand. Both hand out static
// contiguous ranges and allocate nothing per call.
#include "runtime/threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <thread>

#ifdef WEFT_OPENMP
#include <omp.h>
#else
#include <condition_variable>
#include <mutex>
#include <vector>
#endif

namespace weft::runtime {
namespace {

constexpr int max_threads = 4096;

int processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(
      1, static_cast<int>(std::thread::hardware_concurrency()));  // more processors than a cpu_set_t holds
}

int initial_threads() {
  // OMP_NUM_THREADS may be a list, one number for each level of nesting: there is one level here.
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    char* end = nullptr;
    const long n = std::strtol(text, &end, 10);
    if (end != text && n >= 1) return static_cast<int>(std::min<long>(n, max_threads));
  }
  return processors();
}

std::atomic<int>& wanted_threads() {
  static std::atomic<int> n{initial_threads()};
  return n;
}

thread_local bool in_body = false;

struct BodyScope {
  BodyScope() { in_body = true; }
  ~BodyScope() { in_body = false; }
};

/// The first exception of a launch; the others are dropped.
class FirstError {
 public:
  void keep() noexcept {
    if (!taken_.exchange(true, std::memory_order_acq_rel)) error_ = std::current_exception();
  }
  void rethrow() {  // after the team has joined
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic<bool> taken_{false};
  std::exception_ptr error_;
};

using Body = std::function<void(int64_t, int64_t)>;

/// Part `index` of `parts` of [0, n); the first n % parts ranges are one longer.
void run_part(int64_t n, int index, int parts, const Body& body, FirstError& error) noexcept {
  const int64_t each = n / parts, rest = n % parts;
  const int64_t begin = index * each + std::min<int64_t>(index, rest);
  const int64_t end = begin + each + (index < rest ? 1 : 0);
  if (begin == end) return;
  BodyScope scope;
  try {
    body(begin, end);
  } catch (...) {
    error.keep();
  }
}

#ifdef WEFT_OPENMP

void run_team(int64_t n, int threads, const Body& body) {
  FirstError error;
  // Always the whole team: libgomp ends the threads that a smaller one leaves out and starts them anew for
  // the next launch.
#pragma omp parallel num_threads(threads) default(shared)
  run_part(n, omp_get_thread_num(), omp_get_num_threads(), body, error);
  error.rethrow();
}

#else

/// Workers wait for a new generation; the caller does part 0 itself and waits until the others are done.
class Pool {
 public:
  static Pool& get() {
    static Pool pool;
    return pool;
  }
  static bool gone() { return gone_.load(std::memory_order_acquire); }

  ~Pool() {
    gone_.store(true, std::memory_order_release);
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  /// False where another thread's launch holds the team.
  bool run(int64_t n, int threads, const Body& body) {
    std::unique_lock owner(owner_, std::try_to_lock);
    if (!owner.owns_lock()) return false;
    while (static_cast<int>(workers_.size()) < threads - 1) {
      const int index = static_cast<int>(workers_.size()) + 1;
      workers_.emplace_back([this, index, seen = generation_] { work(index, seen); });
    }
    FirstError error;
    {
      std::lock_guard lock(mutex_);
      n_ = n, parts_ = threads, body_ = &body, error_ = &error, pending_ = threads - 1;
      ++generation_;
    }
    wake_.notify_all();
    run_part(n, 0, threads, body, error);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return pending_ == 0; });
    lock.unlock();
    owner.unlock();
    error.rethrow();
    return true;
  }

 private:
  void work(int index, uint64_t seen) {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_) return;
      seen = generation_;
      if (index >= parts_) continue;  // the launch uses a smaller team
      const int64_t n = n_;
      const int parts = parts_;
      const Body* body = body_;
      FirstError* error = error_;
      lock.unlock();
      run_part(n, index, parts, *body, *error);
      lock.lock();
      if (--pending_ == 0) done_.notify_one();
    }
  }

  static inline std::atomic<bool> gone_{false};
  std::mutex owner_;  // held by the launching thread
  std::mutex mutex_;  // the fields of the launch
  std::condition_variable wake_, done_;
  std::vector<std::thread> workers_;
  uint64_t generation_ = 0;
  int64_t n_ = 0;
  int parts_ = 1, pending_ = 0;
  const Body* body_ = nullptr;
  FirstError* error_ = nullptr;
  bool stop_ = false;
};

void run_team(int64_t n, int threads, const Body& body) {
  if (!Pool::gone() && Pool::get().run(n, threads, body)) return;
  BodyScope scope;
  body(0, n);
}

#endif

}  // namespace

int num_threads() { return wanted_threads().load(std::memory_order_relaxed); }

void set_num_threads(int n) {
  wanted_threads().store(std::clamp(n, 1, max_threads), std::memory_order_relaxed);
}

void parallel_for(int64_t n, const Body& body) {
  if (n <= 0) return;
  const int threads = num_threads();
  if (in_body) {
    body(0, n);
  } else if (n == 1 || threads == 1) {
    BodyScope scope;
    body(0, n);
  } else {
    run_team(n, threads, body);
  }
}

int library_threads() {
  int n = in_body ? 1 : num_threads();
#ifdef WEFT_OPENMP
  n = std::min(n, omp_get_thread_limit());
  if (omp_get_max_threads() != n) omp_set_num_threads(n);
#endif
  return n;
}

}  // namespace weft::runtime
