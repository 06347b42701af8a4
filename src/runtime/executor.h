#pragma once
// Streams of work on the host. An executor does its tasks one after the other, in the order in which they were given;
// executors run beside each other, and events order what must not. A task waits only for events of tasks that were
// given earlier (to whichever executor), so that no circle can arise.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

namespace weft::runtime {

/// Set once, and set from then on: done, or failed with an exception.
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

  /// Does the task after everything that was given before, on the executor's own thread, and returns at once (where a
  /// great many tasks are waiting, when there is room). The first exception of such tasks is kept for the next `run` or
  /// `wait`, which throws it.
  void enqueue(Task task);
  /// Does the task after everything that was given before and returns when it is done; on the calling thread where
  /// nothing is waiting. Throws what the task throws.
  void run(const Task& task);
  /// Returns when everything that was given before is done.
  void wait();

 private:
  friend class Registry;
  void work();
  void throw_kept(std::unique_lock<std::mutex>& lock);
  void do_here(const Task& task);
  void start_worker();
  void stop();

  friend int executor_device(int index);
  const int device_;
  std::mutex mutex_;
  std::condition_variable ready_, done_;
  std::deque<Task> queue_;
  bool busy_ = false;     // a task is being done, by the worker or by a caller of `run`
  bool blocked_ = false;  // it waits for an event
  bool worker_ = false, stop_ = false;
  uint64_t given_ = 0, finished_ = 0;
  std::exception_ptr kept_;
  friend class Event;
};

/// Executor 0 is there from the start, on the host. Executors live as long as the process.
Executor& executor(int index);
/// Its index. `device`: the number of the device for which it issues work, or -1 for the host.
int new_executor(int device = -1);
int executor_device(int index);
int num_executors();
/// Waits for all of them and ends their threads, which are started again when there is work.
void rest_executors();

}  // namespace weft::runtime
