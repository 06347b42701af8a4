#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "runtime/threads.h"
#include "runtime/trace.h"

using namespace weft::runtime;

TEST_CASE("trace: nothing is kept while recording is off") {
  CHECK_FALSE(recording());
  { const Span span("compiler", "before"); }
  record_sample("memory", 1);
  start_recording();
  CHECK(recording());
  const Timeline t = stop_recording();
  CHECK(t.slices.empty());
  CHECK(t.samples.empty());
  CHECK_FALSE(recording());
}

TEST_CASE("trace: spans nest, names are kept once, samples have their times") {
  start_recording();
  for (int k = 0; k < 3; ++k) {
    const Span outer("program", "outer");
    const Span inner("kernel", "inner");
  }
  record_sample("memory", 42);
  CHECK(recorded().slices.size() == 6);
  const Timeline t = stop_recording();
  REQUIRE(t.slices.size() == 6);
  CHECK(t.names == std::vector<std::string>{"inner", "outer"});
  CHECK(t.threads.size() == 1);
  for (size_t k = 0; k < 6; k += 2) {
    const Slice &inner = t.slices[k], &outer = t.slices[k + 1];
    CHECK(std::string(inner.kind) == "kernel");
    CHECK(inner.start >= outer.start);
    CHECK(inner.start + inner.length <= outer.start + outer.length);
  }
  REQUIRE(t.samples.size() == 1);
  CHECK(t.samples[0].value == 42);
  CHECK(t.samples[0].time >= t.slices.back().start);
}

TEST_CASE("trace: what began in another timeline is left out") {
  start_recording();
  {
    const Span span("program", "old");
    stop_recording();
  }
  start_recording();
  record_name("new");
  record({.name = 7});
  CHECK(stop_recording().slices.empty());
}

TEST_CASE("trace: what a device did is settled before the timeline is handed out, and forgotten with its timeline") {
  int settled = 0;
  const auto later = [&] {
    ++settled;
    record_on("gpu", {.name = record_name("kernel"), .kind = "kernel", .start = 1, .length = 2});
  };
  record_later(later);  // nothing is recorded
  start_recording();
  record_later(later);
  start_recording();
  { const Span span("program", "host"); }
  record_later(later);
  record_later(later);
  const Timeline so_far = recorded(), t = stop_recording();
  CHECK(settled == 2);
  CHECK(so_far.slices.size() == 3);
  CHECK(t.threads == std::vector<std::string>{"main", "gpu"});
  REQUIRE(t.slices.size() == 3);
  CHECK(t.slices[2].thread == 1);
  CHECK(t.names[static_cast<size_t>(t.slices[2].name)] == "kernel");
}

TEST_CASE("trace: threads have their names, and the team's threads their shares of a launch") {
  const int before = num_threads();
  set_num_threads(2);
  start_recording();
  const int name = record_name("launch");
  set_current_launch(name);
  for (int round = 0; round < 2000; ++round) {  // until the second thread has come in time for once
    std::atomic<int> busy{0};
    parallel_for(64, [&](int64_t, int64_t) {
      for (int k = 0; k < 2000; ++k) ++busy;
    });
    const Timeline so_far = recorded();
    if (std::any_of(so_far.threads.begin(), so_far.threads.end(), [](const std::string& t) { return t == "worker 1"; }))
      break;
  }
  std::thread([] {
    name_thread("reader");
    const Span span("program", "read");
  }).join();
  const Timeline t = stop_recording();
  set_num_threads(before);
  CHECK(std::find(t.threads.begin(), t.threads.end(), "reader") != t.threads.end());
  const auto worker = std::find(t.threads.begin(), t.threads.end(), "worker 1");
  REQUIRE(worker != t.threads.end());
  const auto part = std::find_if(t.slices.begin(), t.slices.end(),
                                 [&](const Slice& s) { return s.thread == worker - t.threads.begin(); });
  REQUIRE(part != t.slices.end());
  CHECK(std::string(part->kind) == "part");
  CHECK(part->name == name);
}

TEST_CASE("trace: what threads share outside of launches has no launch's name") {
  const int before = num_threads();
  set_num_threads(2);
  start_recording();
  CHECK(current_launch() == -1);
  const int name = record_name("launch"), outer = set_current_launch(name);
  CHECK(outer == -1);
  CHECK(set_current_launch(outer) == name);
  bool shared = false;
  for (int round = 0; round < 2000 && !shared; ++round) {  // until the second thread has come in time for once
    std::atomic<int> busy{0};
    parallel_for(64, [&](int64_t, int64_t) {
      for (int k = 0; k < 2000; ++k) ++busy;
    });
    const Timeline t = recorded();
    for (const Slice& s : t.slices)
      if (std::string(s.kind) == "part") {
        CHECK(t.names[static_cast<size_t>(s.name)] == "work shared by threads");
        shared = true;
      }
  }
  CHECK(shared);
  stop_recording();
  set_num_threads(before);
}
