#pragma once
// A device's memory: blocks from the driver, kept for reuse, and copies to and from the host in the order of the
// context's stream.
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/device.h"
#include "runtime/foreign.h"
#include "runtime/peer.h"
#include "runtime/staging.h"
#include "target/cuda/driver/context.h"
#include "target/cuda/driver/timestamps.h"

namespace weft::target::cuda {

/// Pinned memory that copies go through, so that the device reads it while the host continues. Larger copies run
/// concurrently with the device's work: a stream of their own copies into a ring on the device, and the device's stream
/// copies from there to the destination. So a batch arrives while the preceding step runs. The caller holds the
/// device's order().
class PinnedStaging {
 public:
  explicit PinnedStaging(Context& context);
  ~PinnedStaging();
  PinnedStaging(const PinnedStaging&) = delete;
  PinnedStaging& operator=(const PinnedStaging&) = delete;
  /// Copies to the device in stream order. `from` may be changed when it returns.
  void to_device(DevicePtr to, const void* from, size_t bytes);
  /// Copies to the host and waits, only for work that was given before. At most `most_small` bytes.
  void to_host(void* to, DevicePtr from, size_t bytes);
  /// Copies from a device that this one does not reach, through the pinned memory. Only later work of both devices
  /// waits for it.
  void from_device(DevicePtr to, const Context& other, DevicePtr from, size_t bytes);
  static constexpr size_t most_small = size_t{1} << 20;

 private:
  struct Piece {
    size_t offset, slot;  // its position in the ring; the index of its event
  };
  Piece take(size_t bytes);
  bool lands_beside();
  Context& context_;
  runtime::StagingRing ring_;
  char* memory_ = nullptr;
  std::vector<EventHandle> events_;  // recorded after each piece in flight, by slot
  StreamHandle beside_ = nullptr;    // of large copies; made for the first one
  DevicePtr landing_ = 0;
  std::vector<EventHandle> landed_;
  bool no_landing_ = false;  // the device had no memory for it
};

class CudaMemory final : public runtime::Accelerator, public runtime::Peer, public runtime::ForeignOrder {
 public:
  explicit CudaMemory(Context& context) : context_(context), clock_(context) {}
  std::string name() const override { return "cuda:" + std::to_string(context_.ordinal()); }
  void* allocate(size_t bytes) override;
  size_t block_bytes(size_t bytes) const override;
  void release(void* data, size_t bytes) noexcept override;
  void to_device(void* to, const void* from, size_t bytes) override;
  void to_host(void* to, const void* from, size_t bytes) override;
  void copy(void* to, const void* from, size_t bytes) override;
  bool reaches(const runtime::Accelerator& device) const override;
  bool copy_from(runtime::Accelerator& device, void* to, const void* from, size_t bytes) override;
  void synchronize() override;
  void begin_capture() override;
  std::shared_ptr<const runtime::CapturedGraph> end_capture() override;
  void abandon_capture() noexcept override;
  std::unique_ptr<runtime::Timestamps> timestamps(size_t count) override {
    return make_timestamps(context_, clock_, count);
  }
  runtime::DeviceMemory memory() const override;
  void reset_peak() override;
  size_t set_limit(size_t bytes) override;
  size_t set_cache_limit(size_t bytes) override;
  void clear_cache() override;
  // foreign.cpp
  void* entry() override;
  void follow(void* stream) override;
  void lead(void* stream) override;
  std::function<void()> mark() override;
  bool capturing() const override { return context_.is_capturing(); }

 private:
  PinnedStaging& staging();
  EventHandle crossing();  // recorded where work passes between the device's stream and another one
  void* reuse(size_t bytes);
  bool over_limit(size_t bytes) const;
  void trim(size_t keep);  // frees cached blocks until at most `keep` bytes are left
  [[noreturn]] void throw_out_of_memory(size_t bytes) const;

  Context& context_;
  EventClock clock_;
  std::unique_ptr<PinnedStaging> staging_;  // made for the first copy
  StreamHandle entry_ = nullptr;
  EventHandle crossing_ = nullptr;
  mutable std::mutex mutex_;
  std::multimap<size_t, void*> free_;         // by size
  std::unordered_map<void*, size_t> blocks_;  // the bytes of every block
  size_t active_ = 0, peak_ = 0, cached_ = 0, limit_ = 0, cache_limit_ = SIZE_MAX;
};

}  // namespace weft::target::cuda
