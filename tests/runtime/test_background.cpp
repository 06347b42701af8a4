#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

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

namespace {

/// Stands for the static objects of a library that a job opens: they are made after the threads that do the jobs, and
/// end before whatever is older.
struct Younger {
  ~Younger() { ended = true; }
  std::atomic<bool> ended{false};
};

/// A process that ends in the middle of a job, with 7 where the job still finds what it uses.
[[noreturn]] void end_within_a_job() {
  static std::atomic<bool> begun{false};
  begin_in_background([] {
    static Younger younger;
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    _exit(younger.ended ? 8 : 7);
  });
  while (!begun) std::this_thread::yield();
  std::exit(9);
}

}  // namespace

TEST_CASE("background: a process that ends waits for the jobs that have begun, before what they use ends") {
  if (std::getenv("WEFT_TEST_END_WITHIN_A_JOB")) end_within_a_job();
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const int status = std::system(
      ("WEFT_TEST_END_WITHIN_A_JOB=1 '" + self + "' --test-case='background: a process that ends waits*' >/dev/null")
          .c_str());
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
}
