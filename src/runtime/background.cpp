#include "runtime/background.h"

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
  ~Crew() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
      jobs_.clear();
      wake_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
  }

  void add(std::function<void()> job) {
    std::lock_guard lock(mutex_);
    if (stop_) return;
    jobs_.push_back(std::move(job));
    if (jobs_.size() > idle_ && threads_.size() < static_cast<size_t>(num_threads())) threads_.emplace_back([this, number = threads_.size() + 1] { work(number); });
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
      } catch (...) {  // whoever needs it does it again, and sees what goes wrong
      }
      job = nullptr;  // what it holds is let go of without the lock
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

}  // namespace

void begin_in_background(std::function<void()> job) {
  static Crew crew;
  crew.add(std::move(job));
}

}  // namespace weft::runtime
