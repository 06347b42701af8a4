#pragma once
// A device's memory: blocks from the driver, kept for reuse, and the copies to and from the host, in the order of the
// context's stream.
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/device.h"
#include "runtime/peer.h"
#include "runtime/staging.h"
#include "target/cuda/driver/context.h"
#include "target/cuda/driver/timestamps.h"

namespace weft::target::cuda {

/// Pinned memory that copies go through, so that the device reads it while the host continues. Larger copies run
/// concurrently with the device's work: on a stream of their own into a ring of the same size on the device, then into
/// their destination in stream order. A batch arrives while the step before it runs. The caller holds the device's
/// order().
class PinnedStaging {
 public:
  explicit PinnedStaging(Context& context);
  ~PinnedStaging();
  PinnedStaging(const PinnedStaging&) = delete;
  PinnedStaging& operator=(const PinnedStaging&) = delete;
  /// `from` has been read when it returns; the device gets it in the order of its work.
  void to_device(DevicePtr to, const void* from, size_t bytes);
  /// Waits for the work that was given before, and for none that is given meanwhile. At most `most_small` bytes.
  void to_host(void* to, DevicePtr from, size_t bytes);
  /// From a device that this one does not reach, by way of the same memory. Nothing waits for it but later work of
  /// both.
  void from_device(DevicePtr to, const Context& other, DevicePtr from, size_t bytes);
  static constexpr size_t most_small = size_t{1} << 20;

 private:
  struct Piece {
    size_t offset, slot;  // where it lies; which events are its own
  };
  Piece take(size_t bytes);
  bool lands_beside();
  Context& context_;
  runtime::StagingRing ring_;
  char* memory_ = nullptr;
  std::vector<EventHandle> events_;  // of the pieces that are on their way, by their numbers
  StreamHandle beside_ = nullptr;    // made for the first large copy
  DevicePtr landing_ = 0;
  std::vector<EventHandle> landed_;
  bool no_landing_ = false;  // there was no memory for it
};

class CudaMemory final : public runtime::Accelerator, public runtime::Peer {
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

 private:
  PinnedStaging& staging();
  void* reuse(size_t bytes);
  bool over_limit(size_t bytes) const;
  void trim(size_t keep);  // gives cached blocks back until at most so many bytes are left
  [[noreturn]] void throw_out_of_memory(size_t bytes) const;

  Context& context_;
  EventClock clock_;
  std::unique_ptr<PinnedStaging> staging_;  // made for the first copy
  mutable std::mutex mutex_;
  std::multimap<size_t, void*> free_;         // by size
  std::unordered_map<void*, size_t> blocks_;  // of every block, what the driver gave
  size_t active_ = 0, peak_ = 0, cached_ = 0, limit_ = 0, cache_limit_ = SIZE_MAX;
};

}  // namespace weft::target::cuda
