// The caching allocator: alignment, reuse, limits, statistics, several threads, memory that is freed at exit.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/buffer.h"

using namespace weft::runtime;

namespace {
constexpr size_t mib = size_t{1} << 20;

/// Freed after everything else: the allocator must still be there.
BufferRef late = allocate(3 * mib);

struct CacheLimit {
  size_t before;
  explicit CacheLimit(size_t bytes) : before(set_cache_limit(bytes)) {}
  ~CacheLimit() { set_cache_limit(before); }
};
struct MemoryLimit {
  size_t before;
  explicit MemoryLimit(size_t bytes) : before(set_memory_limit(bytes)) {}
  ~MemoryLimit() { set_memory_limit(before); }
};
bool aligned(const void* p, size_t to) { return reinterpret_cast<uintptr_t>(p) % to == 0; }
}  // namespace

TEST_CASE("buffers are aligned, writable and long enough") {
  for (size_t bytes :
       {size_t{0}, size_t{1}, size_t{64}, size_t{65}, size_t{1000}, size_t{1024}, size_t{1025}, size_t{4096},
        size_t{4097}, size_t{100000}, mib - 1, 2 * mib - 1, 2 * mib, 2 * mib + 1, 5 * mib + 77}) {
    const BufferRef b = allocate(bytes);
    REQUIRE(b->data() != nullptr);
    CHECK(b->bytes() >= bytes);
    CHECK(aligned(b->data(), bytes >= 2 * mib ? 2 * mib : bytes >= 4096 ? 4096 : 64));
    std::memset(b->data(), 0x5a, bytes);
  }
}

TEST_CASE("a freed block is used again for about its size") {
  clear_cache();
  CHECK(cache_memory() == 0);
  BufferRef a = allocate(mib);
  void* const p = a->data();
  a.reset();
  const size_t held = cache_memory();
  CHECK(held >= mib);
  CHECK(allocate(mib)->data() == p);            // the same size
  CHECK(allocate(mib - mib / 4)->data() == p);  // a little less
  CHECK(allocate(mib / 2 + 4096)->data() == p);
  const BufferRef small = allocate(mib / 4);  // a quarter: would waste three
  CHECK(small->data() != p);
  const BufferRef large = allocate(mib + mib / 2);
  CHECK(large->data() != p);
  CHECK(cache_memory() == held);
  clear_cache();
  CHECK(cache_memory() == 0);
}

TEST_CASE("statistics") {
  clear_cache();
  const size_t before = active_memory();
  reset_peak_memory();
  CHECK(peak_memory() == before);
  {
    const BufferRef a = allocate(mib), b = allocate(2 * mib);
    CHECK(active_memory() >= before + 3 * mib);
    CHECK(active_memory() <= before + 3 * mib + 3 * mib / 16);
    CHECK(peak_memory() == active_memory());
  }
  CHECK(active_memory() == before);
  CHECK(peak_memory() >= before + 3 * mib);
  CHECK(cache_memory() >= 3 * mib);
  reset_peak_memory();
  CHECK(peak_memory() == before);
}

TEST_CASE("the cache keeps to its limit and gives up the longest unused first") {
  clear_cache();
  CacheLimit limit(2 * mib);
  BufferRef a = allocate(mib), b = allocate(mib / 2), c = allocate(mib);
  void *pa = a->data(), *pb = b->data(), *pc = c->data();
  a.reset();
  b.reset();
  CHECK(cache_memory() >= mib + mib / 2);
  c.reset();  // over the limit: a goes, b and c stay
  CHECK(cache_memory() <= 2 * mib);
  b = allocate(mib / 2);
  CHECK(b->data() == pb);
  c = allocate(mib);
  CHECK(c->data() == pc);
  CHECK(cache_memory() == 0);
  static_cast<void>(pa);
  const BufferRef big = allocate(8 * mib);
  CHECK(cache_memory() <= 2 * mib);
  b.reset();
  CHECK(set_cache_limit(0) == 2 * mib);  // lowering it evicts at once
  CHECK(cache_memory() == 0);
}

TEST_CASE("over the memory limit an allocation throws and says the figures; the cache goes first") {
  clear_cache();
  MemoryLimit limit(active_memory() + 10 * mib);
  BufferRef a = allocate(6 * mib);
  a.reset();
  CHECK(cache_memory() >= 6 * mib);
  const BufferRef b = allocate(mib);
  BufferRef c = allocate(8 * mib);  // fits only where the cached 6 MiB are given back
  CHECK(cache_memory() < 2 * mib);
  const size_t active = active_memory();
  std::string text;
  try {
    allocate(5 * mib);
  } catch (const std::runtime_error& e) {
    text = e.what();
  }
  CHECK(text.rfind("[alloc] ", 0) == 0);
  CHECK(text.find("5120.0 KiB") != std::string::npos);
  CHECK(text.find("limit") != std::string::npos);
  CHECK(active_memory() == active);
  c.reset();
  CHECK_NOTHROW(allocate(5 * mib));
  CHECK_THROWS_AS(allocate(size_t{1} << 60), std::runtime_error);
  CHECK_THROWS_AS(allocate(~size_t{0}), std::runtime_error);
}

TEST_CASE("without a limit the system's refusal is an error too") {
  MemoryLimit limit(0);
  const size_t active = active_memory();
  CHECK_THROWS_AS(allocate(size_t{1} << 47), std::runtime_error);  // all of the address space
  CHECK(active_memory() == active);
}

TEST_CASE("several threads allocate, fill and free") {
  clear_cache();
  const size_t before = active_memory();
  CacheLimit limit(4 * mib);
  std::vector<std::thread> threads;
  std::atomic<int> spoilt{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<std::pair<BufferRef, size_t>> held;
      for (int i = 0; i < 2000; ++i) {
        if (held.size() < 8 && random() % 2) {
          const size_t bytes = 1 + random() % (random() % 16 == 0 ? 3 * mib : size_t{20000});
          held.emplace_back(allocate(bytes), bytes);
          auto* p = static_cast<unsigned char*>(held.back().first->data());
          p[0] = static_cast<unsigned char>(t);
          p[bytes - 1] = static_cast<unsigned char>(t);
        } else if (!held.empty()) {
          const size_t k = random() % held.size();
          const auto* p = static_cast<unsigned char*>(held[k].first->data());
          if (p[0] != t || p[held[k].second - 1] != t) ++spoilt;  // somebody else had the same block
          held.erase(held.begin() + static_cast<std::ptrdiff_t>(k));
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(spoilt == 0);
  CHECK(active_memory() == before);
  CHECK(cache_memory() <= 4 * mib);
}
