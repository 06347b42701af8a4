#pragma once
// Memory of a device: reference-counted buffers from a caching allocator with limits and statistics.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace weft::runtime {

class Buffer {
 public:
  Buffer(void* data, size_t bytes, std::function<void(void*)> release) : data_(data), bytes_(bytes), release_(std::move(release)) {}
  ~Buffer() { if (release_) release_(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_;
  size_t bytes_;
  std::function<void(void*)> release_;
};
using BufferRef = std::shared_ptr<Buffer>;

/// 64-byte aligned, at least `bytes` long (never null, even for 0); large ones ask for huge pages. Throws std::runtime_error "[alloc] …" with what was asked,
/// what is held and the limit. Contents are undefined.
BufferRef allocate(size_t bytes);

size_t active_memory();  // bytes in live buffers
size_t peak_memory();
void reset_peak_memory();
size_t cache_memory();   // bytes kept for reuse
size_t set_memory_limit(size_t bytes);  // returns the previous one; 0: none
size_t memory_limit();
size_t set_cache_limit(size_t bytes);
void clear_cache();

}  // namespace weft::runtime
