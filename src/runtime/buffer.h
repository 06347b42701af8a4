#pragma once
// Reference-counted buffers; on the host from a caching allocator with limits and statistics. Contents may have several
// replicas at once: reading them on a device that has none copies them there.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace weft::runtime {

class Accelerator;

class Buffer {
 public:
  Buffer(void* data, size_t bytes, std::function<void(void*)> release)
      : data_(data), bytes_(bytes), release_(std::move(release)) {}
  /// Allocates on the device only; host memory is allocated when the host first reads.
  Buffer(Accelerator& device, size_t bytes);
  /// Memory of others on a device (null: the host), which is given back by `release`.
  struct Borrowed {
    Accelerator* device;
    void* data;
    size_t bytes;
    std::function<void(void*)> release;
  };
  explicit Buffer(Borrowed memory);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  /// Returns host memory with valid contents; waits for a device that has the only replica.
  void* data() const { return replicas_.load(std::memory_order_acquire) ? on_host() : data_; }
  /// Returns memory on a device (null: the host) with valid contents.
  void* on(Accelerator* device) const;
  /// Returns whether a device (null: the host) has valid contents, so that `on` neither copies nor waits.
  bool is_on(Accelerator* device) const;
  /// Declares that work on `device` (null: the host) overwrites the contents: all other replicas become stale.
  void overwritten_on(Accelerator* device) const;
  size_t bytes() const { return bytes_; }
  /// Returns whether the memory is that of others, which nobody overwrites.
  bool is_borrowed() const { return borrowed_; }

 private:
  struct Replicas;
  void* on_host() const;
  void* host(Replicas& replicas) const;
  Replicas& replicas() const;

  void* data_;
  size_t bytes_;
  std::function<void(void*)> release_;
  bool borrowed_ = false;
  mutable std::atomic<Replicas*> replicas_ = nullptr;  // other replicas; null while the contents are on the host alone
};
using BufferRef = std::shared_ptr<Buffer>;

/// Allocates at least `bytes` (never null, even for 0), aligned to 64; large blocks ask for huge pages. Throws
/// std::runtime_error "[alloc] …" with the request, the memory in use and the limit. Contents are undefined.
BufferRef allocate(size_t bytes);
/// Allocates on a device; null: on the host.
BufferRef allocate_on(Accelerator* device, size_t bytes);

size_t active_memory();  // bytes in live buffers
size_t peak_memory();
void reset_peak_memory();
size_t cache_memory();                  // bytes kept for reuse
size_t set_memory_limit(size_t bytes);  // returns the previous one; 0: none
size_t memory_limit();
size_t set_cache_limit(size_t bytes);
void clear_cache();

}  // namespace weft::runtime
