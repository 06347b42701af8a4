// The caching allocator of host memory. Requests are rounded up to size classes (at most 1/16 is lost above 1 KiB). A
// freed block stays in its class for the next request of about its size; the blocks that were unused longest are
// returned to the system when the cache or the process exceeds its limit.
#include "runtime/buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(address, size) (static_cast<void>(address), static_cast<void>(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) (static_cast<void>(address), static_cast<void>(size))
#endif

namespace weft::runtime {
namespace {

constexpr size_t page = 4096, huge_page = size_t{2} << 20;
constexpr size_t largest = size_t{1} << 47;  // what a user-space address can span
constexpr int linear_classes = 16;           // 64, 128, … 1024; then sixteen steps to each doubling
constexpr int num_classes = linear_classes + 16 * 38;

/// Class 0 holds 64 bytes.
int class_of(size_t bytes) {
  if (bytes <= 1024) return bytes == 0 ? 0 : static_cast<int>((bytes - 1) / 64);
  const int log = std::bit_width(bytes - 1) - 1;  // 2^log < bytes <= 2^(log+1)
  const int step = static_cast<int>((bytes - 1 - (size_t{1} << log)) >> (log - 4));
  return linear_classes + (log - 10) * 16 + step;
}

size_t class_bytes(int c) {
  if (c < linear_classes) return static_cast<size_t>(c + 1) * 64;
  const int log = 10 + (c - linear_classes) / 16, step = (c - linear_classes) % 16;
  return (size_t{1} << log) + (static_cast<size_t>(step + 1) << (log - 4));
}

/// Allocates a large block directly from the kernel, aligned for huge pages and returned when freed.
void* system_allocate(size_t bytes) {
  if (bytes < huge_page) {
    void* p = nullptr;
    return posix_memalign(&p, bytes >= page ? page : 64, bytes) == 0 ? p : nullptr;
  }
  const size_t length = (bytes + page - 1) / page * page;
  void* raw = mmap(nullptr, length + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(raw);
  const uintptr_t aligned = (begin + huge_page - 1) / huge_page * huge_page;
  if (aligned > begin) munmap(raw, aligned - begin);
  const uintptr_t tail = begin + length + huge_page - (aligned + length);
  if (tail > 0) munmap(reinterpret_cast<void*>(aligned + length), tail);
  void* p = reinterpret_cast<void*>(aligned);
  madvise(p, length, MADV_HUGEPAGE);  // advice only
  return p;
}

void system_free(void* p, size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(p, bytes);
  if (bytes < huge_page) {
    std::free(p);
  } else {
    munmap(p, (bytes + page - 1) / page * page);
  }
}

/// Returns physical memory, or the control group's limit.
size_t physical_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  size_t bytes = pages > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(sysconf(_SC_PAGESIZE)) : size_t{16} << 30;
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    size_t limit = 0;
    if (std::ifstream in(path); in >> limit && limit > 0)
      bytes = std::min(bytes, limit);  // "max" is no number: no limit
  }
  return bytes;
}

std::string readable(size_t bytes) {
  if (bytes < 10240) return fmt::format("{} B", bytes);
  if (bytes < (size_t{10} << 20)) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  if (bytes < (size_t{10} << 30)) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 1048576);
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / 1073741824);
}

class Allocator {
 public:
  /// Never destroyed: static arrays may free their memory at the very end of the process.
  static Allocator& get() {
    static Allocator* instance = new Allocator;
    return *instance;
  }

  BufferRef allocate(size_t bytes) {
    if (bytes > largest)
      throw_failure("alloc", fmt::format("cannot allocate {}: more than an address space holds", readable(bytes)));
    const int wanted = class_of(bytes);
    Block block = reuse(wanted);
    if (!block.data) block = fresh(bytes, wanted);
    ASAN_POISON_MEMORY_REGION(block.data, class_bytes(block.size_class));
    ASAN_UNPOISON_MEMORY_REGION(block.data, bytes);
    try {
      return std::make_shared<Buffer>(block.data, bytes,
                                      [c = block.size_class](void* p) { Allocator::get().release(p, c); });
    } catch (...) {
      release(block.data, block.size_class);
      throw;
    }
  }

  void clear() { give_back(evict_until(0)); }

  size_t set_cache_limit(size_t bytes) {
    std::vector<Block> victims;
    size_t previous;
    {
      std::lock_guard lock(mutex_);
      previous = std::exchange(cache_limit_, bytes);
      victims = evict_locked(bytes);
    }
    give_back(victims);
    return previous;
  }

  size_t set_memory_limit(size_t bytes) {
    std::lock_guard lock(mutex_);
    return std::exchange(memory_limit_, bytes);
  }

  size_t memory_limit() {
    std::lock_guard lock(mutex_);
    return memory_limit_;
  }

  std::atomic<size_t> active{0}, peak{0}, cached{0};

 private:
  struct Block {
    void* data = nullptr;
    int size_class = 0;
    uint64_t freed = 0;  // when it was freed, counted in frees
  };

  Allocator() : cache_limit_(physical_memory() / 4), memory_limit_(physical_memory()) {}

  void count_active(size_t bytes) {  // under the lock
    const size_t now = active.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (now > peak.load(std::memory_order_relaxed)) peak.store(now, std::memory_order_relaxed);
  }

  /// Returns the block freed last in the smallest class that fits and wastes less than half, or two pages.
  Block reuse(int wanted) {
    const size_t need = class_bytes(wanted), most = std::max(2 * need - 1, need + 2 * page);
    std::lock_guard lock(mutex_);
    for (int c = wanted; c < num_classes && class_bytes(c) <= most; ++c) {
      auto& list = free_[static_cast<size_t>(c)];
      if (list.empty()) continue;
      const Block block = list.back();
      list.pop_back();
      cached.fetch_sub(class_bytes(c), std::memory_order_relaxed);
      count_active(class_bytes(c));
      return block;
    }
    return {};
  }

  Block fresh(size_t bytes, int wanted) {
    const size_t need = class_bytes(wanted);
    std::vector<Block> victims;
    {
      std::lock_guard lock(mutex_);
      const size_t held = active.load(std::memory_order_relaxed);
      if (memory_limit_ != 0 && (need > memory_limit_ || held > memory_limit_ - need)) throw_limit(bytes, held);
      if (memory_limit_ != 0) victims = evict_locked(memory_limit_ - need - held);
      count_active(need);
    }
    give_back(victims);
    void* data = system_allocate(need);
    if (!data) {  // out of memory: retry after freeing the cache
      clear();
      data = system_allocate(need);
    }
    if (!data) {
      const size_t held = active.fetch_sub(need, std::memory_order_relaxed) - need;
      throw_failure("alloc",
                    fmt::format("the system has no memory for {} ({} in live buffers); use a smaller batch or model",
                                readable(bytes), readable(held)));
    }
    return {data, wanted, 0};
  }

  [[noreturn]] void throw_limit(size_t bytes, size_t held) const {
    throw_failure("alloc", fmt::format("cannot allocate {}: {} are in live buffers and the memory limit is "
                                       "{}; use a smaller batch or model, or raise the limit",
                                       readable(bytes), readable(held), readable(memory_limit_)));
  }

  void release(void* p, int c) {
    const size_t bytes = class_bytes(c);
    ASAN_POISON_MEMORY_REGION(p, bytes);
    std::vector<Block> victims;
    {
      std::lock_guard lock(mutex_);
      free_[static_cast<size_t>(c)].push_back({p, c, ++frees_});
      active.fetch_sub(bytes, std::memory_order_relaxed);
      cached.fetch_add(bytes, std::memory_order_relaxed);
      if (cached.load(std::memory_order_relaxed) > cache_limit_) victims = evict_locked(cache_limit_);
    }
    give_back(victims);
  }

  std::vector<Block> evict_until(size_t bytes) {
    std::lock_guard lock(mutex_);
    return evict_locked(bytes);
  }

  /// Removes the blocks unused longest from the cache until at most `bytes` are left. The front of each class is its
  /// oldest block.
  std::vector<Block> evict_locked(size_t bytes) {
    std::vector<Block> victims;
    while (cached.load(std::memory_order_relaxed) > bytes) {
      std::deque<Block>* oldest = nullptr;
      for (auto& list : free_) {
        if (!list.empty() && (!oldest || list.front().freed < oldest->front().freed)) oldest = &list;
      }
      if (!oldest) break;
      victims.push_back(oldest->front());
      oldest->pop_front();
      cached.fetch_sub(class_bytes(victims.back().size_class), std::memory_order_relaxed);
    }
    return victims;
  }

  static void give_back(const std::vector<Block>& blocks) {  // outside the lock: munmap is slow
    for (const Block& block : blocks) system_free(block.data, class_bytes(block.size_class));
  }

  std::mutex mutex_;
  std::array<std::deque<Block>, num_classes> free_;
  uint64_t frees_ = 0;
  size_t cache_limit_, memory_limit_;
};

}  // namespace

BufferRef allocate(size_t bytes) { return Allocator::get().allocate(bytes); }

size_t active_memory() { return Allocator::get().active.load(std::memory_order_relaxed); }
size_t peak_memory() { return Allocator::get().peak.load(std::memory_order_relaxed); }
void reset_peak_memory() { Allocator::get().peak.store(active_memory(), std::memory_order_relaxed); }
size_t cache_memory() { return Allocator::get().cached.load(std::memory_order_relaxed); }
size_t set_memory_limit(size_t bytes) { return Allocator::get().set_memory_limit(bytes); }
size_t memory_limit() { return Allocator::get().memory_limit(); }
size_t set_cache_limit(size_t bytes) { return Allocator::get().set_cache_limit(bytes); }
void clear_cache() { Allocator::get().clear(); }

}  // namespace weft::runtime
