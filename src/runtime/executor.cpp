#include "runtime/executor.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "runtime/interrupt.h"
#include "runtime/trace.h"

namespace weft::runtime {
namespace {

constexpr size_t most_waiting = 1024;  // tasks; with more, `enqueue` waits, so that a loop cannot queue without bound

thread_local Executor* current = nullptr;  // the executor whose task this thread runs

struct CurrentScope {
  Executor* outer;
  explicit CurrentScope(Executor* executor) : outer(std::exchange(current, executor)) {}
  ~CurrentScope() { current = outer; }
};

}  // namespace

void Event::set(std::exception_ptr error) {
  std::lock_guard lock(mutex_);
  if (set_) return;
  set_ = true;
  error_ = std::move(error);
  changed_.notify_all();
}

bool Event::is_set() const {
  std::lock_guard lock(mutex_);
  return set_;
}

void Event::wait() const {
  Executor* const executor = current;
  const auto mark = [&](bool blocked) {
    if (!executor) return;
    std::lock_guard lock(executor->mutex_);
    executor->blocked_ = blocked;
    executor->done_.notify_all();
  };
  std::unique_lock lock(mutex_);
  if (!set_) {
    lock.unlock();
    mark(true);
    lock.lock();
    if (executor) changed_.wait(lock, [&] { return set_; });
    else wait_or_end(changed_, lock, [&] { return set_; });
    lock.unlock();
    mark(false);
    lock.lock();
  }
  if (error_) std::rethrow_exception(error_);
}

void Executor::start_worker() {  // under the lock
  if (worker_) return;
  worker_ = true;
  std::thread([this] { work(); }).detach();
}

void Executor::enqueue(Task task) {
  std::unique_lock lock(mutex_);
  if (!current) done_.wait(lock, [&] { return queue_.size() < most_waiting; });
  queue_.push_back(std::move(task));
  ++given_;
  ++counters().tasks_queued;
  start_worker();
  ready_.notify_all();
}

void Executor::throw_kept(std::unique_lock<std::mutex>& lock) {
  if (!kept_) return;
  std::exception_ptr error = std::exchange(kept_, nullptr);
  lock.unlock();
  std::rethrow_exception(error);
}

/// Makes the calling thread the one that runs a task, if the executor is idle. Under the lock.
bool Executor::claim() {
  if (busy_ || !queue_.empty()) return false;
  busy_ = true;
  ++given_;
  return true;
}

/// Ends the calling thread's task, of which `rest` is left to be done before what was queued meanwhile.
void Executor::release(std::exception_ptr error, Task rest) {
  std::lock_guard lock(mutex_);
  if (error && !kept_) kept_ = std::move(error);
  busy_ = false;
  if (rest) {
    queue_.push_front(std::move(rest));
    ++counters().tasks_queued;
  } else {
    ++finished_;
  }
  if (!queue_.empty()) {
    start_worker();
    ready_.notify_all();
  }
  done_.notify_all();
}

void Executor::do_here(const Task& task) {
  struct Finish {
    Executor& executor;
    ~Finish() { executor.release(nullptr, {}); }
  } finish{*this};
  CurrentScope scope(this);
  task();
}

bool Executor::start_here(const std::function<Task()>& start) {
  {
    std::lock_guard lock(mutex_);
    if (!claim()) return false;
  }
  Task rest;
  std::exception_ptr error;
  try {
    CurrentScope scope(this);
    rest = start();
  } catch (...) {
    error = std::current_exception();
  }
  release(std::move(error), std::move(rest));
  return true;
}

void Executor::run(const Task& task) {
  if (current == this) return task();  // part of the running task
  std::unique_lock lock(mutex_);
  throw_kept(lock);
  if (claim()) {
    lock.unlock();
    return do_here(task);
  }
  const auto done = std::make_shared<Event>();
  const auto began = std::make_shared<bool>(false);  // under the lock
  queue_.push_back([this, &task, done, began] {      // `task` outlives this: the caller waits, or takes it back
    std::exception_ptr error;
    {
      std::lock_guard here(mutex_);
      if (done->is_set()) return;
      *began = true;
    }
    try {
      task();
    } catch (...) {
      error = std::current_exception();
    }
    done->set(error);
  });
  ++given_;
  ++counters().tasks_queued;
  start_worker();
  ready_.notify_all();
  lock.unlock();
  try {
    done->wait();
  } catch (...) {
    if (done->is_set()) throw;  // the task's own
    lock.lock();
    if (!*began) {
      done->set();  // the worker finds that there is nothing to do
      throw;
    }
    lock.unlock();
    const MayEnd whole(false);
    done->wait();
    throw;
  }
  lock.lock();
  throw_kept(lock);  // of tasks given before
}

void Executor::wait() {
  if (current == this) return;
  std::unique_lock lock(mutex_);
  const uint64_t upto = given_;
  wait_or_end(done_, lock, [&] { return finished_ >= upto; });
  throw_kept(lock);
}

void Executor::work() {
  name_thread("executor");
  CurrentScope scope(this);
  std::unique_lock lock(mutex_);
  for (;;) {
    ready_.wait(lock, [&] { return stop_ || (!busy_ && !queue_.empty()); });
    if (stop_) break;
    busy_ = true;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      task();
    } catch (...) {
      error = std::current_exception();
    }
    task = nullptr;  // destroyed before the task counts as done
    lock.lock();
    if (error && !kept_) kept_ = std::move(error);
    busy_ = false;
    ++finished_;
    done_.notify_all();
  }
  worker_ = stop_ = false;
  done_.notify_all();
}

void Executor::stop() {
  std::unique_lock lock(mutex_);
  if (!worker_) return;
  stop_ = true;
  ready_.notify_all();
  done_.wait(lock, [&] { return !worker_; });
}

/// Never destroyed: workers may outlive main. At exit, queued tasks are dropped and running ones are waited for, except
/// those that wait for an event, which may never come.
class Registry {
 public:
  static Registry& get() {
    static Registry* instance = new Registry;
    static AtExit at_exit{*instance};
    return *instance;
  }

  Executor& at(int index) {
    std::lock_guard lock(mutex_);
    if (index < 0 || index >= static_cast<int>(executors_.size()))
      throw_invalid("stream", "there is no stream " + std::to_string(index));
    return *executors_[static_cast<size_t>(index)];
  }
  int add(int device) {
    std::lock_guard lock(mutex_);
    executors_.push_back(std::make_unique<Executor>(device));
    count_.store(static_cast<int>(executors_.size()), std::memory_order_release);
    return static_cast<int>(executors_.size()) - 1;
  }
  int count() const { return count_.load(std::memory_order_acquire); }

  void rest() {
    for (int k = 0; k < count(); ++k) at(k).wait();
    for (int k = 0; k < count(); ++k) at(k).stop();
  }

 private:
  struct AtExit {
    Registry& registry;
    ~AtExit() { registry.close(); }
  };
  Registry() { add(-1); }

  void close() {
    for (int k = 0; k < count(); ++k) {
      Executor& e = at(k);
      std::unique_lock lock(e.mutex_);
      std::deque<Executor::Task> dropped;
      dropped.swap(e.queue_);
      if (current != &e) e.done_.wait_for(lock, std::chrono::seconds(10), [&] { return !e.busy_ || e.blocked_; });
      lock.unlock();
    }
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Executor>> executors_;
  std::atomic<int> count_{0};
};

/// Executors stay where they are, so each thread remembers the one that it used last.
Executor& executor(int index) {
  struct Last {
    int index = -1;
    Executor* executor = nullptr;
  };
  thread_local Last last;
  if (last.index != index) last = {index, &Registry::get().at(index)};
  return *last.executor;
}
int new_executor(int device) { return Registry::get().add(device); }
int executor_device(int index) { return index == 0 ? -1 : executor(index).device_; }
int num_executors() { return Registry::get().count(); }
void rest_executors() { Registry::get().rest(); }

}  // namespace weft::runtime
