#include "runtime/background.h"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/threads.h"
#include "runtime/trace.h"

namespace weft::runtime {
namespace {

class Crew {
 public:
  ~Crew() { stop(); }

  /// Waits for the jobs that are running; no other job starts any more.
  void stop() {
    std::vector<std::thread> threads;
    std::deque<std::function<void()>> left;  // destroyed without the lock
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
      threads.swap(threads_);
      left.swap(jobs_);
      wake_.notify_all();
    }
    for (std::thread& thread : threads) thread.join();
  }

  void add(std::function<void()> job) {
    std::lock_guard lock(mutex_);
    if (stop_) return;
    jobs_.push_back(std::move(job));
    if (jobs_.size() > idle_ && threads_.size() < static_cast<size_t>(num_threads()))
      threads_.emplace_back([this, number = threads_.size() + 1] { work(number); });
    wake_.notify_one();
  }

 private:
  void work(size_t number) {
    name_thread("background " + std::to_string(number));
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
      --idle_;
      if (stop_) return;
      std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      try {
        job();
      } catch (...) {  // the caller that needs the result repeats the job and sees the error
      }
      job = nullptr;  // destroyed without the lock
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool stop_ = false;
};

Crew& crew() {
  static Crew instance;
  return instance;
}

/// Stops the threads while everything that their jobs use still exists. Libraries opened by jobs have static objects
/// younger than the threads, so those would be destroyed first; objects of the main thread are destroyed before any
/// static object (C++20, [basic.start.term]/2).
struct EndWithMainThread {
  EndWithMainThread() : main(getpid() == gettid()) {}
  ~EndWithMainThread() {
    if (main) crew().stop();
  }
  const bool main;
};
thread_local const EndWithMainThread end_with_main_thread;

/// Creates the main thread's object before any other thread begins a job, if the main thread loads this library.
[[maybe_unused]] const bool made = end_with_main_thread.main;

}  // namespace

void begin_in_background(std::function<void()> job) { crew().add(std::move(job)); }

}  // namespace weft::runtime
