#pragma once
// Streams of work on the host. An executor runs its tasks in the order given; executors run concurrently and
// synchronize by events. A task waits only for events of tasks given earlier (to any executor), so there is no
// deadlock.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

namespace weft::runtime {

/// What it takes to hand a task to a thread that sleeps: a call of the system, a switch of threads, and data that moves
/// to another core's cache. Work that takes less is better done where it is given.
inline constexpr double hand_over_seconds = 10e-6;

/// An event, set once: done, or failed with an exception.
class Event {
 public:
  void set(std::exception_ptr error = nullptr);
  bool is_set() const;
  /// Returns when the event is set; throws the exception that it was set with.
  void wait() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool set_ = false;
  std::exception_ptr error_;
};
using EventRef = std::shared_ptr<Event>;

class Executor {
 public:
  using Task = std::function<void()>;
  explicit Executor(int device = -1) : device_(device) {}
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Runs the task on the executor's own thread after all earlier ones, and returns at once (or, with very many tasks
  /// queued, when there is room). The first exception of such tasks is kept, and the next `run` or `wait` throws it.
  void enqueue(Task task);
  /// Calls `start` on the calling thread where nothing is queued or running, and queues the task that it returns,
  /// before all others, unless that is empty: work that is brief is done here, other work is handed over. An exception
  /// is kept as that of a queued task. Returns false, without a call, where the executor is not idle.
  bool start_here(const std::function<Task()>& start);
  /// Runs the task after all earlier ones and returns when it is done; on the calling thread if nothing is queued.
  /// Throws what the task throws.
  void run(const Task& task);
  /// Waits until all earlier tasks are done.
  void wait();

 private:
  friend class Registry;
  void work();
  void throw_kept(std::unique_lock<std::mutex>& lock);
  bool claim();
  void release(std::exception_ptr error, Task rest);
  void do_here(const Task& task);
  void start_worker();
  void stop();

  friend int executor_device(int index);
  const int device_;
  std::mutex mutex_;
  std::condition_variable ready_, done_;
  std::deque<Task> queue_;
  bool busy_ = false;     // the worker or a caller of `run` runs a task
  bool blocked_ = false;  // it waits for an event
  bool worker_ = false, stop_ = false;
  uint64_t given_ = 0, finished_ = 0;
  std::exception_ptr kept_;
  friend class Event;
};

/// Returns an executor. Executor 0 always exists and is the host's. Executors live until the process ends.
Executor& executor(int index);
/// Creates an executor and returns its index. `device`: the index of the device for which it issues work, or -1 for the
/// host.
int new_executor(int device = -1);
int executor_device(int index);
int num_executors();
/// Waits for all executors and ends their threads, which are started again when needed.
void rest_executors();

}  // namespace weft::runtime
