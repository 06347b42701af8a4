// The thread team: every index once, contiguous ranges, exceptions, nesting, several launching threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/threads.h"

using namespace weft::runtime;

namespace {
struct ThreadCount {
  int before = num_threads();
  explicit ThreadCount(int n) { set_num_threads(n); }
  ~ThreadCount() { set_num_threads(before); }
};
}  // namespace

TEST_CASE("parallel_for covers the range exactly once") {
  for (int threads : {1, 2, 3, 7}) {
    ThreadCount scope(threads);
    REQUIRE(num_threads() == threads);
    for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{5}, int64_t{6}, int64_t{7}, int64_t{8}, int64_t{1000},
                      int64_t{12345}}) {
      std::vector<int> hits(static_cast<size_t>(n), 0);
      std::atomic<int> ranges{0}, bad{0};
      parallel_for(n, [&](int64_t begin, int64_t end) {
        ++ranges;
        if (begin >= end || begin < 0 || end > n) ++bad;
        for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
      });
      CHECK(bad == 0);
      CHECK(ranges <= n);
      bool once = true;
      for (int h : hits) once = once && h == 1;
      CHECK_MESSAGE(once, "n = ", n, ", threads = ", threads);
    }
  }
}

TEST_CASE("a launch uses several threads where there are several") {
  ThreadCount scope(2);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  std::atomic<int> arrived{0};
  parallel_for(2, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();  // hangs unless two threads are here at once
    std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  CHECK(ids.size() == 2);
}

TEST_CASE("the first exception reaches the caller and the team goes on working") {
  ThreadCount scope(3);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> ran{0};
    std::string text;
    try {
      parallel_for(3, [&](int64_t begin, int64_t) {
        ++ran;
        if (begin >= 1) throw std::runtime_error("part " + std::to_string(begin));
      });
    } catch (const std::runtime_error& e) {
      text = e.what();
    }
    CHECK((text == "part 1" || text == "part 2"));
    CHECK(ran >= 1);  // what has not begun when a part fails is left out
  }
  std::atomic<int64_t> sum{0};
  parallel_for(100, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum += i;
  });
  CHECK(sum == 4950);
  set_num_threads(1);
  CHECK_THROWS_AS(parallel_for(5, [](int64_t, int64_t) { throw std::out_of_range("inline"); }), std::out_of_range);
}

TEST_CASE("a nested launch runs on the calling thread") {
  ThreadCount scope(4);
  std::atomic<int> calls{0}, elsewhere{0};
  parallel_for(4, [&](int64_t, int64_t) {
    const auto me = std::this_thread::get_id();
    parallel_for(10, [&](int64_t begin, int64_t end) {
      ++calls;
      if (std::this_thread::get_id() != me || begin != 0 || end != 10) ++elsewhere;
    });
  });
  CHECK(calls == 4);
  CHECK(elsewhere == 0);
  std::atomic<int> outer{0};
  parallel_for(4, [&](int64_t, int64_t) { ++outer; });
  CHECK(outer == 4);
}

TEST_CASE("several threads may launch at once") {
  ThreadCount scope(2);
  std::vector<std::thread> users;
  std::atomic<int64_t> total{0};
  for (int t = 0; t < 4; ++t) {
    users.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        std::atomic<int64_t> sum{0};
        parallel_for(64, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) sum += i;
        });
        total += sum;
      }
    });
  }
  for (auto& user : users) user.join();
  CHECK(total == 4 * 50 * (63 * 64 / 2));
}

TEST_CASE("set_num_threads keeps within sense") {
  ThreadCount scope(2);
  set_num_threads(0);
  CHECK(num_threads() == 1);
  set_num_threads(-3);
  CHECK(num_threads() == 1);
}

TEST_CASE("parallel_copy copies all of it and nothing else") {
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{1000}, size_t{256} << 10, (size_t{256} << 10) + 1, (size_t{3} << 20) + 77}) {
    std::vector<unsigned char> from(bytes), to(bytes + 2, 0xee);
    for (size_t i = 0; i < bytes; ++i) from[i] = static_cast<unsigned char>(i * 13 + (i >> 10));
    parallel_copy(to.data() + 1, from.data(), bytes);
    CHECK(to.front() == 0xee);
    CHECK(to.back() == 0xee);
    CHECK(std::equal(from.begin(), from.end(), to.begin() + 1));
  }
}
