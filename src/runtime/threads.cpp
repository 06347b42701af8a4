// The thread team. A launch is cut into chunks. Each thread takes the chunks of its own lane first, so that data stays
// in its cache between launches, then helps with the others. The caller never waits for a thread that has not begun: if
// other processes keep a thread from running, the others do its chunks instead of spinning at a barrier until it is
// scheduled.
#include "runtime/threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/trace.h"

#ifdef WEFT_OPENMP
#include <omp.h>
#endif

namespace weft::runtime {
namespace {

constexpr int max_threads = 1024;
constexpr int64_t chunks_per_lane = 4;
constexpr int spins_before_sleep = 2000;  // about 100 µs of pauses: longer than the gaps within a training step
constexpr int spins_before_yield = 200;

int processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));  // more processors than a cpu_set_t holds
}

int initial_threads() {
  // OMP_NUM_THREADS may be a list, one entry per nesting level; only the first level exists here.
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

void pause() { __builtin_ia32_pause(); }

using Body = std::function<void(int64_t, int64_t)>;

/// The chunks left in one lane, in one word: generation of the launch (32 bits), chunks (16), chunks taken (16). A
/// thread that has taken a chunk keeps the launch alive until it has counted the chunk as done, so the launch's
/// description may be read only after taking a chunk.
struct alignas(64) Lane {
  std::atomic<uint64_t> state{0};
};
uint64_t lane_state(uint64_t generation, int64_t chunks) {
  return generation << 32 | static_cast<uint64_t>(chunks) << 16;
}

class Team {
 public:
  static Team& get() {
    static Team team;
    return team;
  }
  static bool gone() { return gone_.load(std::memory_order_acquire); }

  ~Team() {
    gone_.store(true, std::memory_order_release);
    stop_.store(true);
    wake();
    for (std::thread& worker : workers_) worker.join();
  }

  /// Returns false if another thread's launch holds the team.
  bool run(int64_t n, int threads, const Body& body) {
    std::unique_lock owner(owner_, std::try_to_lock);
    if (!owner.owns_lock()) return false;
    while (static_cast<int>(workers_.size()) < threads - 1) {
      const int lane = static_cast<int>(workers_.size()) + 1;
      workers_.emplace_back([this, lane] { work(lane); });
    }
    const int64_t chunks = std::min(n, threads * chunks_per_lane);
    n_.store(n, std::memory_order_relaxed);
    chunks_.store(chunks, std::memory_order_relaxed);
    lanes_used_.store(threads, std::memory_order_relaxed);
    body_.store(&body, std::memory_order_relaxed);
    failed_.store(false, std::memory_order_relaxed);
    unfinished_.store(chunks, std::memory_order_relaxed);
    ++generation_;
    for (int lane = 0; lane < threads; ++lane) {
      const int64_t count = lane_begin(lane + 1, chunks, threads) - lane_begin(lane, chunks, threads);
      lanes_[lane].state.store(lane_state(generation_, count), std::memory_order_release);
    }
    current_.store(generation_, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) wake();
    take_part(0);
    for (int spins = 0; unfinished_.load(std::memory_order_acquire) > 0; ++spins)
      spins < spins_before_yield ? pause() : std::this_thread::yield();
    std::exception_ptr error = std::exchange(error_, nullptr);
    owner.unlock();
    if (error) std::rethrow_exception(error);
    return true;
  }

 private:
  /// The chunks of `lane` are lane·C/L … (lane+1)·C/L - 1.
  static int64_t lane_begin(int64_t lane, int64_t chunks, int64_t lanes) { return lane * chunks / lanes; }

  bool take_from(int lane) {
    uint64_t seen = lanes_[lane].state.load(std::memory_order_acquire);
    do {
      if ((seen & 0xffff) >= (seen >> 16 & 0xffff)) return false;
    } while (!lanes_[lane].state.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel,
                                                       std::memory_order_acquire));
    const int64_t n = n_.load(std::memory_order_relaxed), chunks = chunks_.load(std::memory_order_relaxed);
    const int64_t chunk =
        lane_begin(lane, chunks, lanes_used_.load(std::memory_order_relaxed)) + static_cast<int64_t>(seen & 0xffff);
    run_chunk(chunk * n / chunks, (chunk + 1) * n / chunks, *body_.load(std::memory_order_relaxed));
    return true;
  }

  void run_chunk(int64_t begin, int64_t end, const Body& body) noexcept {
    if (begin < end && !failed_.load(std::memory_order_relaxed)) {
      BodyScope scope;
      try {
        body(begin, end);
      } catch (...) {
        if (!failed_.exchange(true, std::memory_order_acq_rel)) error_ = std::current_exception();
      }
    }
  }

  /// Runs chunks; returns whether there were any left. They are counted as done all at once: the counter's cache line
  /// is then moved between processors once a thread and not once a chunk.
  bool take_part(int own) {
    const int lanes = lanes_used_.load(std::memory_order_relaxed);
    int64_t done = 0;
    for (int k = 0; k < lanes; ++k)
      while (take_from((own + k) % lanes)) ++done;
    if (done > 0) unfinished_.fetch_sub(done, std::memory_order_acq_rel);
    return done > 0;
  }

  void take_part_recorded(int own) {
    const int launch = current_launch();
    const double start = record_time();
    if (take_part(own))
      record({.name = launch >= 0 ? launch : record_name("work shared by threads"),
              .kind = "part",
              .start = start,
              .length = record_time() - start});
  }

  void work(int lane) {
    name_thread("worker " + std::to_string(lane));
    uint64_t seen = 0;
    for (;;) {
      for (int spins = 0; current_.load(std::memory_order_acquire) == seen && spins < spins_before_sleep; ++spins)
        pause();
      if (current_.load(std::memory_order_acquire) == seen) sleep(seen);
      if (stop_.load()) return;
      seen = current_.load(std::memory_order_acquire);
      recording() ? take_part_recorded(lane) : static_cast<void>(take_part(lane));
    }
  }

  void sleep(uint64_t seen) {
    const uint32_t epoch = epoch_.load(std::memory_order_seq_cst);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    // A launch published before this load is seen here; one published later sees the sleeper and wakes it.
    if (current_.load(std::memory_order_seq_cst) == seen && !stop_.load())
      epoch_.wait(epoch, std::memory_order_seq_cst);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }

  void wake() {
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    epoch_.notify_all();
  }

  static inline std::atomic<bool> gone_{false};
  std::mutex owner_;  // held by the launching thread
  std::vector<std::thread> workers_;
  std::unique_ptr<Lane[]> lanes_{new Lane[max_threads]};
  uint64_t generation_ = 0;
  std::exception_ptr error_;
  // Each group has a cache line of its own: workers that wait read the first one again and again, and what the
  // launching thread writes beside it would be fetched back each time.
  alignas(64) std::atomic<uint64_t> current_{0};
  alignas(64) std::atomic<int64_t> n_{0};
  std::atomic<int64_t> chunks_{0};
  std::atomic<int> lanes_used_{1};
  std::atomic<const Body*> body_{nullptr};
  std::atomic<bool> failed_{false}, stop_{false};
  alignas(64) std::atomic<int64_t> unfinished_{0};
  alignas(64) std::atomic<uint32_t> epoch_{0};
  std::atomic<int> sleepers_{0};
};

}  // namespace

int num_threads() { return wanted_threads().load(std::memory_order_relaxed); }

void set_num_threads(int n) { wanted_threads().store(std::clamp(n, 1, max_threads), std::memory_order_relaxed); }

void parallel_for(int64_t n, const Body& body) {
  if (n <= 0) return;
  const int threads = static_cast<int>(std::min<int64_t>(n, num_threads()));
  if (!in_body && threads > 1 && !Team::gone() && Team::get().run(n, threads, body)) return;
  const bool outer = std::exchange(in_body, true);
  struct Restore {
    bool to;
    ~Restore() { in_body = to; }
  } restore{outer};
  body(0, n);
}

void parallel_copy(void* to, const void* from, size_t bytes) {
  constexpr size_t part = size_t{256} << 10;
  if (bytes <= part) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return;
  }
  parallel_for(static_cast<int64_t>((bytes + part - 1) / part), [&](int64_t begin, int64_t end) {
    const size_t first = static_cast<size_t>(begin) * part;
    std::memcpy(static_cast<char*>(to) + first, static_cast<const char*>(from) + first,
                std::min(static_cast<size_t>(end) * part, bytes) - first);
  });
}

LibraryScope::LibraryScope() {
#ifdef WEFT_OPENMP
  before_ = omp_get_max_threads();
  if (before_ != 1) omp_set_num_threads(1);
#endif
}

LibraryScope::~LibraryScope() {
#ifdef WEFT_OPENMP
  if (before_ != 1) omp_set_num_threads(before_);
#endif
}

}  // namespace weft::runtime
