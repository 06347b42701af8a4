#pragma once
// Memory: reference-counted buffers, on the host from a caching allocator with limits and statistics. Their contents
// may lie in several places at once: who reads them on a device where they are not yet gets them copied there.
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
  /// Memory of the device alone; the host gets its own when it first looks.
  Buffer(Accelerator& device, size_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  /// On the host, with valid contents: waits for a device that has the only ones.
  void* data() const { return replicas_.load(std::memory_order_acquire) ? on_host() : data_; }
  /// On a device (null: the host), with valid contents.
  void* on(Accelerator* device) const;
  /// The contents are overwritten, or are about to be, by work on `device` (null: by the host): what lies elsewhere is
  /// stale from now on.
  void overwritten_on(Accelerator* device) const;
  size_t bytes() const { return bytes_; }

 private:
  struct Replicas;
  void* on_host() const;
  void* host(Replicas& replicas) const;
  Replicas& replicas() const;

  void* data_;
  size_t bytes_;
  std::function<void(void*)> release_;
  mutable std::atomic<Replicas*> replicas_ = nullptr;  // where else it lies; null while it is on the host alone
};
using BufferRef = std::shared_ptr<Buffer>;

/// 64-byte aligned, at least `bytes` long (never null, even for 0); large ones ask for huge pages. Throws
/// std::runtime_error "[alloc] …" with what was asked, what is held and the limit. Contents are undefined.
BufferRef allocate(size_t bytes);
/// On a device; null: as above.
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
