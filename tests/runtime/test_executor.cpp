// Executors: order within one, overlap of two, events across them, errors, and work done on the calling thread. Nothing
// here depends on time.
#include <doctest/doctest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/executor.h"
#include "runtime/interrupt.h"
#include "runtime/trace.h"

using namespace weft::runtime;

TEST_CASE("tasks are done one after the other, in order") {
  Executor& e = executor(new_executor());
  std::vector<int> seen;  // no lock: one task at a time
  for (int k = 0; k < 500; ++k) e.enqueue([&seen, k] { seen.push_back(k); });
  e.run([&] { seen.push_back(500); });
  REQUIRE(seen.size() == 501);
  for (int k = 0; k <= 500; ++k) CHECK(seen[static_cast<size_t>(k)] == k);
}

TEST_CASE("enqueue returns before the task is done; run on an idle executor uses the calling thread") {
  Executor& e = executor(new_executor());
  std::latch hold(1);
  std::atomic<bool> done{false};
  std::thread::id worker;
  e.enqueue([&] {
    hold.wait();
    worker = std::this_thread::get_id();
    done = true;
  });
  CHECK_FALSE(done.load());  // it cannot be: the latch is still up
  hold.count_down();
  e.wait();
  CHECK(done.load());
  CHECK(worker != std::this_thread::get_id());
  std::thread::id here;
  e.run([&] { here = std::this_thread::get_id(); });
  CHECK(here == std::this_thread::get_id());
  e.run([&] { e.run([&] { done = false; }); });  // from inside a task of its own: part of it
  CHECK_FALSE(done.load());
}

TEST_CASE("two executors overlap: each waits for the other in the middle of a task") {
  Executor &a = executor(new_executor()), &b = executor(new_executor());
  std::barrier meet(2);
  std::atomic<int> met{0};
  for (int k = 0; k < 20; ++k) {
    a.enqueue([&] { meet.arrive_and_wait(), ++met; });
    b.enqueue([&] { meet.arrive_and_wait(), ++met; });
  }
  a.wait();
  b.wait();
  CHECK(met.load() == 40);
}

TEST_CASE("events order tasks of different executors") {
  Executor &a = executor(new_executor()), &b = executor(new_executor());
  int value = 0;  // no lock: ordered by the events
  std::latch hold(1);
  for (int k = 0; k < 100; ++k) {
    const auto written = std::make_shared<Event>(), read = std::make_shared<Event>();
    a.enqueue([&, written, k] {
      if (k == 0) hold.wait();
      value = k;
      written->set();
    });
    b.enqueue([&, written, read, k] {
      written->wait();
      if (value != k) throw std::logic_error("out of order");
      read->set();
    });
    a.enqueue([read] { read->wait(); });
    if (k == 0) CHECK_FALSE(written->is_set());
    if (k == 0) hold.count_down();
  }
  CHECK_NOTHROW(a.wait());
  CHECK_NOTHROW(b.wait());
  CHECK(value == 99);
}

TEST_CASE("an exception is kept for the next wait, once; later tasks are done all the same") {
  Executor &a = executor(new_executor()), &b = executor(new_executor());
  std::atomic<int> later{0};
  const auto event = std::make_shared<Event>();
  a.enqueue([event] {
    event->set(std::make_exception_ptr(std::runtime_error("first")));
    throw std::runtime_error("first");
  });
  a.enqueue([] { throw std::runtime_error("second"); });
  a.enqueue([&] { ++later; });
  CHECK_THROWS_WITH_AS(a.wait(), "first", std::runtime_error);
  CHECK_NOTHROW(a.wait());
  CHECK(later == 1);
  b.enqueue([event] { event->wait(); });  // the error travels with the event
  CHECK_THROWS_WITH_AS(b.run([] {}), "first", std::runtime_error);
  CHECK_THROWS_WITH_AS(a.run([] { throw std::runtime_error("own"); }), "own", std::runtime_error);
  CHECK_NOTHROW(a.run([&] { ++later; }));
  CHECK(later == 2);
}

TEST_CASE("several threads run and enqueue on one executor") {
  Executor& e = executor(new_executor());
  int64_t sum = 0;  // no lock: one task at a time
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) {
        if (k % 3 == 0) e.enqueue([&] { ++sum; });
        else e.run([&] { ++sum; });
      }
    });
  for (std::thread& t : threads) t.join();
  e.wait();
  CHECK(sum == 800);
}

TEST_CASE("what a task holds is let go of before it counts as done") {
  Executor& e = executor(new_executor());
  auto held = std::make_shared<int>(1);
  std::weak_ptr<int> watch = held;
  e.enqueue([held = std::move(held)] { ++*held; });
  e.wait();
  CHECK(watch.expired());
}

TEST_CASE("start_here does on an idle executor what is brief, and queues the rest before all others") {
  Executor& e = executor(new_executor());
  const int64_t queued = counters().tasks_queued;
  std::thread::id here;
  CHECK(e.start_here([&]() -> Executor::Task {
    here = std::this_thread::get_id();
    return {};
  }));
  CHECK(here == std::this_thread::get_id());
  CHECK(counters().tasks_queued == queued);

  std::vector<int> seen;  // no lock: one task at a time
  CHECK(e.start_here([&]() -> Executor::Task {
    seen.push_back(0);
    e.enqueue([&] { seen.push_back(2); });  // given while the first one runs
    CHECK_FALSE(e.start_here([]() -> Executor::Task { return {}; }));
    return [&] { seen.push_back(1); };
  }));
  e.wait();
  CHECK(seen == std::vector<int>{0, 1, 2});
  CHECK(counters().tasks_queued == queued + 2);
}

TEST_CASE("start_here calls nothing while tasks are queued, and keeps an exception for the next wait") {
  Executor& e = executor(new_executor());
  std::latch hold(1);
  e.enqueue([&] { hold.wait(); });
  CHECK_FALSE(e.start_here([]() -> Executor::Task { throw std::logic_error("called"); }));
  hold.count_down();
  e.wait();
  CHECK(e.start_here([]() -> Executor::Task { throw std::runtime_error("brief"); }));
  CHECK(e.start_here([]() -> Executor::Task { throw std::runtime_error("second"); }));
  CHECK_THROWS_WITH_AS(e.wait(), "brief", std::runtime_error);
  CHECK_NOTHROW(e.wait());
}

TEST_CASE("threads that run, enqueue and start tasks on one executor take turns") {
  Executor& e = executor(new_executor());
  int64_t sum = 0;  // no lock: one task at a time
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 300; ++k) {
        const auto add = [&] { ++sum; };
        const auto start = [&]() -> Executor::Task {
          if (k % 2 == 0) return add;
          add();
          return {};
        };
        if ((k + t) % 3 == 0) e.run(add);
        else if ((k + t) % 3 == 1 || !e.start_here(start)) e.enqueue(add);
      }
    });
  for (std::thread& t : threads) t.join();
  e.wait();
  CHECK(sum == 1200);
}

TEST_CASE("executors rest and start again") {
  const int index = new_executor();
  CHECK(num_executors() == index + 1);
  int n = 0;
  executor(index).enqueue([&] { ++n; });
  rest_executors();
  CHECK(n == 1);
  executor(index).enqueue([&] { ++n; });
  executor(index).wait();
  CHECK(n == 2);
  CHECK_THROWS_AS(executor(index + 1), std::invalid_argument);
}

namespace {

struct Ended {};

/// Ends waits of the calling thread while it lives.
struct EndsWaits {
  EndsWaits() {
    set_interrupt_check([] { throw Ended(); });
  }
  ~EndsWaits() { set_interrupt_check(nullptr); }
};

}  // namespace

TEST_CASE("waits end where somebody asks for it; tasks go on, and one that waits to begin is taken back") {
  Executor& e = executor(new_executor());
  std::latch hold(1);
  std::atomic<bool> done{false};
  const auto event = std::make_shared<Event>();
  e.enqueue([&] {
    hold.wait();
    done = true;
    event->set();
  });
  bool ran = false;
  {
    const EndsWaits ends;
    CHECK_THROWS_AS(e.wait(), Ended);
    CHECK_THROWS_AS(event->wait(), Ended);
    CHECK_THROWS_AS(e.run([&] { ran = true; }), Ended);
  }
  CHECK_FALSE(done.load());
  hold.count_down();
  event->wait();
  e.wait();
  CHECK(done.load());
  CHECK_FALSE(ran);
  e.run([&] { ran = true; });
  CHECK(ran);
}

TEST_CASE("waits of work that may not end early last until it is done") {
  Executor& e = executor(new_executor());
  const EndsWaits ends;
  const MayEnd whole(false);
  std::atomic<bool> done{false};
  e.enqueue([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    done = true;
  });
  e.wait();
  CHECK(done.load());
}
