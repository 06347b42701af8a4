// All work of a device runs on one stream, so a freed block can be reused at once by later work.
#include "target/cuda/driver/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "runtime/threads.h"
#include "runtime/trace.h"

namespace weft::target::cuda {

namespace {

constexpr size_t grain = 512, large = size_t{2} << 20;

size_t rounded(size_t bytes) {
  const size_t to = bytes >= large ? large : grain;
  return std::max(grain, (bytes + to - 1) / to * to);
}

DevicePtr address(const void* p) { return reinterpret_cast<DevicePtr>(p); }
double gib(size_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

}  // namespace

/// Returns the smallest free block that is not much too large, else null. Of blocks of equal size it takes the one
/// freed last, so that repeated runs of a program get the same addresses.
void* CudaMemory::reuse(size_t bytes) {
  const size_t most = bytes < large ? 2 * bytes : bytes + bytes / 4 + large;
  const auto smallest = free_.lower_bound(bytes);
  if (smallest == free_.end() || smallest->first > most) return nullptr;
  const auto found = std::prev(free_.upper_bound(smallest->first));
  void* data = found->second;
  cached_ -= found->first;
  free_.erase(found);
  return data;
}

bool CudaMemory::over_limit(size_t bytes) const { return limit_ != 0 && active_ + cached_ + bytes > limit_; }

void CudaMemory::trim(size_t keep) {
  if (cached_ > keep && driver().ctx_set_current(context_.handle()) != success) return;
  while (cached_ > keep && !free_.empty()) {
    const auto biggest = std::prev(free_.end());
    driver().mem_free(address(biggest->second));
    blocks_.erase(biggest->second);
    cached_ -= biggest->first;
    free_.erase(biggest);
  }
}

void CudaMemory::throw_out_of_memory(size_t bytes) const {
  size_t free = 0, total = 0;
  context_.memory(&free, &total);
  throw_failure("alloc", fmt::format("cannot allocate {:.3f} GiB on {}: {:.3f} GiB are in live buffers, {:.3f} GiB of "
                                     "{:.1f} GiB are free{}; use a smaller batch or model, or "
                                     "let go of arrays that are no longer needed",
                                     gib(bytes), context_.name(), gib(active_), gib(free), gib(total),
                                     limit_ ? fmt::format(", the limit is {:.3f} GiB", gib(limit_)) : ""));
}

size_t CudaMemory::block_bytes(size_t bytes) const { return rounded(bytes); }

void* CudaMemory::allocate(size_t bytes) {
  const size_t size = rounded(bytes);
  std::lock_guard lock(mutex_);
  context_.make_current();
  void* data = reuse(size);
  if (!data) {
    if (over_limit(size)) trim(limit_ > active_ + size ? limit_ - active_ - size : 0);
    if (over_limit(size)) throw_out_of_memory(bytes);
    const runtime::Span span("compiler", "device memory is allocated");
    DevicePtr block = 0;
    int result = driver().mem_alloc(&block, size);
    if (result == error_out_of_memory && cached_ > 0) {
      context_.synchronize();
      trim(0);
      result = driver().mem_alloc(&block, size);
    }
    if (result == error_out_of_memory) throw_out_of_memory(bytes);
    check_result(result, "cuMemAlloc", fmt::format("{} bytes on {}", size, context_.name()));
    data = reinterpret_cast<void*>(block);
    blocks_.emplace(data, size);
  }
  active_ += blocks_.at(data);
  peak_ = std::max(peak_, active_);
  return data;
}

void CudaMemory::release(void* data, size_t) noexcept {
  std::lock_guard lock(mutex_);
  const auto found = blocks_.find(data);
  if (found == blocks_.end()) return;
  active_ -= found->second;
  cached_ += found->second;
  free_.emplace(found->second, data);
  if (cached_ > cache_limit_) trim(cache_limit_);
}

namespace {

constexpr size_t staging_bytes = size_t{32} << 20, largest_piece = size_t{4} << 20, most_pieces = 64;
constexpr size_t least_beside = size_t{1}
                                << 20;  // bytes from which a concurrent transfer is worth a second copy on the device

}  // namespace

PinnedStaging::PinnedStaging(Context& context)
    : context_(context), ring_(staging_bytes, most_pieces), events_(most_pieces) {
  void* memory = nullptr;
  check_result(driver().mem_alloc_host(&memory, staging_bytes), "cuMemAllocHost",
               fmt::format("{} bytes of pinned memory for copies", staging_bytes));
  memory_ = static_cast<char*>(memory);
  for (EventHandle& event : events_) check_result(driver().event_create(&event, event_disable_timing), "cuEventCreate");
}

PinnedStaging::~PinnedStaging() {
  if (driver().ctx_set_current(context_.handle()) != success) return;
  for (const auto* events : {&events_, &landed_})
    for (EventHandle event : *events)
      if (event) driver().event_destroy(event);
  if (beside_) driver().stream_destroy(beside_);
  if (landing_) driver().mem_free(landing_);
  if (memory_) driver().mem_free_host(memory_);
}

PinnedStaging::Piece PinnedStaging::take(size_t bytes) {
  const auto event_of = [&](int64_t number) { return events_[static_cast<size_t>(number) % most_pieces]; };
  const runtime::StagingRing::Piece piece = ring_.take(
      bytes, [&](int64_t number) { check_result(driver().event_synchronize(event_of(number)), "cuEventSynchronize"); });
  return {piece.offset, static_cast<size_t>(piece.number) % most_pieces};
}

bool PinnedStaging::lands_beside() {
  if (landing_ || no_landing_) return !no_landing_;
  no_landing_ = driver().mem_alloc(&landing_, staging_bytes) != success;
  if (no_landing_) return landing_ = 0, false;
  check_result(driver().stream_create(&beside_, stream_non_blocking), "cuStreamCreate");
  landed_.resize(most_pieces);
  for (EventHandle& event : landed_) check_result(driver().event_create(&event, event_disable_timing), "cuEventCreate");
  return true;
}

void PinnedStaging::to_device(DevicePtr to, const void* from, size_t bytes) {
  const bool beside = bytes >= least_beside && lands_beside();
  for (size_t done = 0; done < bytes;) {
    const size_t now = std::min(bytes - done, largest_piece);
    const Piece piece = take(now);
    char* const memory = memory_ + piece.offset;
    runtime::parallel_copy(memory, static_cast<const char*>(from) + done, now);
    const DevicePtr lands = beside ? landing_ + piece.offset : to + done;
    check_result(driver().memcpy_htod_async(lands, memory, now, beside ? beside_ : context_.stream()),
                 "cuMemcpyHtoDAsync", fmt::format("{} bytes", bytes));
    if (beside) {
      check_result(driver().event_record(landed_[piece.slot], beside_), "cuEventRecord");
      check_result(driver().stream_wait_event(context_.stream(), landed_[piece.slot], 0), "cuStreamWaitEvent");
      check_result(driver().memcpy_dtod_async(to + done, lands, now, context_.stream()), "cuMemcpyDtoDAsync",
                   fmt::format("{} bytes", bytes));
    }
    check_result(driver().event_record(events_[piece.slot], context_.stream()), "cuEventRecord");
    done += now;
  }
}

void PinnedStaging::to_host(void* to, DevicePtr from, size_t bytes) {
  const Piece piece = take(bytes);
  char* const memory = memory_ + piece.offset;
  check_result(driver().memcpy_dtoh_async(memory, from, bytes, context_.stream()), "cuMemcpyDtoHAsync",
               fmt::format("{} bytes", bytes));
  check_result(driver().event_record(events_[piece.slot], context_.stream()), "cuEventRecord");
  check_result(driver().event_synchronize(events_[piece.slot]), "cuEventSynchronize", "a copy to the host");
  std::memcpy(to, memory, bytes);
}

void PinnedStaging::from_device(DevicePtr to, const Context& other, DevicePtr from, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const size_t now = std::min(bytes - done, largest_piece);
    const Piece piece = take(now);
    char* const memory = memory_ + piece.offset;
    other.make_current();
    check_result(driver().memcpy_dtoh_async(memory, from + done, now, other.stream()), "cuMemcpyDtoHAsync",
                 fmt::format("{} bytes from {} for {}", bytes, other.name(), context_.name()));
    context_.follow(other);
    check_result(driver().memcpy_htod_async(to + done, memory, now, context_.stream()), "cuMemcpyHtoDAsync",
                 fmt::format("{} bytes from {} to {}", bytes, other.name(), context_.name()));
    check_result(driver().event_record(events_[piece.slot], context_.stream()), "cuEventRecord");
    done += now;
  }
}

void CudaMemory::to_device(void* to, const void* from, size_t bytes) {
  std::lock_guard lock(order());
  context_.make_current();
  staging().to_device(address(to), from, bytes);
}

PinnedStaging& CudaMemory::staging() {
  if (!staging_) staging_ = std::make_unique<PinnedStaging>(context_);
  return *staging_;
}

void CudaMemory::to_host(void* to, const void* from, size_t bytes) {
  std::lock_guard lock(order());
  context_.make_current();
  if (bytes <= PinnedStaging::most_small) return staging().to_host(to, address(from), bytes);
  check_result(driver().memcpy_dtoh_async(to, address(from), bytes, context_.stream()), "cuMemcpyDtoHAsync",
               fmt::format("{} bytes on {}", bytes, context_.name()));
  ++runtime::counters().device_waits;
  context_.synchronize(true);
}

void CudaMemory::copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  std::lock_guard lock(order());
  context_.make_current();
  check_result(driver().memcpy_dtod_async(address(to), address(from), bytes, context_.stream()), "cuMemcpyDtoDAsync",
               fmt::format("{} bytes on {}", bytes, context_.name()));
}

bool CudaMemory::reaches(const runtime::Accelerator& device) const {
  const auto* other = dynamic_cast<const CudaMemory*>(&device);
  return other && context_.reaches(other->context_);
}

/// Copies from another device. The copy follows the other device's earlier work, and its later work follows the copy.
bool CudaMemory::copy_from(runtime::Accelerator& device, void* to, const void* from, size_t bytes) {
  const auto* other = dynamic_cast<const CudaMemory*>(&device);
  if (!other) return false;
  std::lock_guard lock(order());
  if (context_.reaches(other->context_)) {
    context_.follow(other->context_);
    check_result(driver().memcpy_peer_async(address(to), context_.handle(), address(from), other->context_.handle(),
                                            bytes, context_.stream()),
                 "cuMemcpyPeerAsync",
                 fmt::format("{} bytes from {} to {}", bytes, other->context_.name(), context_.name()));
    other->context_.follow(context_);
  } else {
    context_.make_current();
    staging().from_device(address(to), other->context_, address(from), bytes);
  }
  return true;
}

void CudaMemory::synchronize() {
  std::lock_guard lock(order());
  context_.make_current();
  ++runtime::counters().device_waits;
  context_.synchronize();
}

namespace {

/// An instantiated CUDA graph.
class CudaGraph final : public runtime::CapturedGraph {
 public:
  CudaGraph(Context& context, GraphExecHandle exec) : context_(context), exec_(exec) {}
  ~CudaGraph() override {
    context_.make_current();
    driver().graph_exec_destroy(exec_);
  }
  void run() const override {
    context_.make_current();
    check_result(driver().graph_launch(exec_, context_.stream()), "cuGraphLaunch", context_.name());
  }

 private:
  Context& context_;
  GraphExecHandle exec_;
};

}  // namespace

void CudaMemory::begin_capture() {
  context_.make_current();
  check_result(driver().stream_begin_capture(context_.stream(), CaptureMode::thread_local_), "cuStreamBeginCapture");
  context_.set_capturing(true);
}

std::shared_ptr<const runtime::CapturedGraph> CudaMemory::end_capture() {
  context_.set_capturing(false);
  GraphHandle graph = nullptr;
  check_result(driver().stream_end_capture(context_.stream(), &graph), "cuStreamEndCapture");
  GraphExecHandle exec = nullptr;
  const int result = driver().graph_instantiate(&exec, graph, 0);
  driver().graph_destroy(graph);
  check_result(result, "cuGraphInstantiate");
  return std::make_shared<CudaGraph>(context_, exec);
}

void CudaMemory::abandon_capture() noexcept {
  context_.set_capturing(false);
  GraphHandle graph = nullptr;
  driver().stream_end_capture(context_.stream(), &graph);
  if (graph) driver().graph_destroy(graph);
}

runtime::DeviceMemory CudaMemory::memory() const {
  std::lock_guard lock(mutex_);
  return {active_, peak_, cached_, limit_ ? limit_ : static_cast<size_t>(context_.info().memory_bytes)};
}

void CudaMemory::reset_peak() {
  std::lock_guard lock(mutex_);
  peak_ = active_;
}

size_t CudaMemory::set_limit(size_t bytes) {
  std::lock_guard lock(mutex_);
  return std::exchange(limit_, bytes);
}

size_t CudaMemory::set_cache_limit(size_t bytes) {
  std::lock_guard lock(mutex_);
  context_.make_current();
  trim(bytes);
  return std::exchange(cache_limit_, bytes);
}

void CudaMemory::clear_cache() {
  std::lock_guard lock(mutex_);
  context_.make_current();
  context_.synchronize();
  trim(0);
}

}  // namespace weft::target::cuda
