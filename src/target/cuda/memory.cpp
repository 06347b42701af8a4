// All work of a device goes through one stream, so a block that is free again may be used at once by whatever is given next.
#include "target/cuda/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

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

/// The smallest free block that is not much too large; of equal ones the last that was freed, so that programs which run again and again get the same addresses.
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
  throw_failure("alloc", fmt::format("cannot allocate {:.3f} GiB on {} ({}): {:.3f} GiB are in live buffers, {:.3f} GiB of {:.1f} GiB are free{}; use a smaller batch or model, or "
                                     "let go of arrays that are no longer needed",
                                     gib(bytes), name(), context_.info().name, gib(active_), gib(free), gib(total), limit_ ? fmt::format(", the limit is {:.3f} GiB", gib(limit_)) : ""));
}

void* CudaMemory::allocate(size_t bytes) {
  const size_t size = rounded(bytes);
  std::lock_guard lock(mutex_);
  context_.make_current();
  void* data = reuse(size);
  if (!data) {
    if (over_limit(size)) trim(limit_ > active_ + size ? limit_ - active_ - size : 0);
    if (over_limit(size)) throw_out_of_memory(bytes);
    DevicePtr block = 0;
    int result = driver().mem_alloc(&block, size);
    if (result == error_out_of_memory && cached_ > 0) {
      context_.synchronize();
      trim(0);
      result = driver().mem_alloc(&block, size);
    }
    if (result == error_out_of_memory) throw_out_of_memory(bytes);
    check(result, "cuMemAlloc", fmt::format("{} bytes", size));
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

void CudaMemory::to_device(void* to, const void* from, size_t bytes) {
  std::lock_guard lock(order());
  context_.make_current();
  check(driver().memcpy_htod_async(address(to), from, bytes, context_.stream()), "cuMemcpyHtoDAsync", fmt::format("{} bytes", bytes));
  // From pageable memory the driver has taken the bytes when the call returns only where they are few (64 KiB): otherwise they are waited for.
  if (bytes > (64 << 10)) context_.synchronize();
}

void CudaMemory::to_host(void* to, const void* from, size_t bytes) {
  std::lock_guard lock(order());
  context_.make_current();
  check(driver().memcpy_dtoh_async(to, address(from), bytes, context_.stream()), "cuMemcpyDtoHAsync", fmt::format("{} bytes", bytes));
  context_.synchronize();
}

void CudaMemory::copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  std::lock_guard lock(order());
  context_.make_current();
  check(driver().memcpy_dtod_async(address(to), address(from), bytes, context_.stream()), "cuMemcpyDtoDAsync", fmt::format("{} bytes", bytes));
}

void CudaMemory::synchronize() {
  std::lock_guard lock(order());
  context_.make_current();
  context_.synchronize();
}

namespace {

/// A CUDA graph, ready to be launched.
class GraphRecording final : public runtime::Recording {
 public:
  GraphRecording(Context& context, GraphExecHandle exec) : context_(context), exec_(exec) {}
  ~GraphRecording() override {
    context_.make_current();
    driver().graph_exec_destroy(exec_);
  }
  void run() const override {
    context_.make_current();
    check(driver().graph_launch(exec_, context_.stream()), "cuGraphLaunch");
  }

 private:
  Context& context_;
  GraphExecHandle exec_;
};

}  // namespace

void CudaMemory::begin_recording() {
  context_.make_current();
  check(driver().stream_begin_capture(context_.stream(), CaptureMode::thread_local_), "cuStreamBeginCapture");
}

std::shared_ptr<const runtime::Recording> CudaMemory::end_recording() {
  GraphHandle graph = nullptr;
  check(driver().stream_end_capture(context_.stream(), &graph), "cuStreamEndCapture");
  GraphExecHandle exec = nullptr;
  const int result = driver().graph_instantiate(&exec, graph, 0);
  driver().graph_destroy(graph);
  check(result, "cuGraphInstantiate");
  return std::make_shared<GraphRecording>(context_, exec);
}

void CudaMemory::abandon_recording() noexcept {
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
