#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>

#include "runtime/background.h"
#include "runtime/threads.h"

using namespace weft::runtime;

namespace {

/// Counts what has been done, and waits for it.
class Tally {
 public:
  void add() {
    std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  bool reaches(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

}  // namespace

TEST_CASE("background: every job is done, whatever others throw") {
  Tally tally;
  for (int k = 0; k < 200; ++k)
    begin_in_background([&tally, k] {
      tally.add();
      if (k % 3 == 0) throw std::runtime_error("lost");
    });
  CHECK(tally.reaches(200));
}

TEST_CASE("background: jobs run beside each other, and beside the team") {
  const int before = num_threads();
  set_num_threads(3);
  Tally begun, ended;
  for (int k = 0; k < 2; ++k)
    begin_in_background([&] {
      begun.add();
      if (begun.reaches(2)) ended.add();  // each waits for the other
    });
  std::atomic<int64_t> sum{0};
  parallel_for(1000, [&](int64_t begin, int64_t end) { sum += end - begin; });
  CHECK(sum == 1000);
  CHECK(ended.reaches(2));
  set_num_threads(before);
}
