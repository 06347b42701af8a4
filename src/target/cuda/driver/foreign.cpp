// The order of a device's work with streams of others: by events, so that the host does not wait.
#include <fmt/format.h>

#include "base/error.h"
#include "target/cuda/driver/memory.h"

namespace weft::target::cuda {
namespace {

/// Makes a context current while it lives. The thread may be another library's, which expects to find its own again.
class CurrentContext {
 public:
  explicit CurrentContext(const Context& context) {
    driver().ctx_get_current(&before_);
    context.make_current();
  }
  ~CurrentContext() {
    if (before_) driver().ctx_set_current(before_);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  ContextHandle before_ = nullptr;
};

/// Throws where work of a stream is being captured: a wait for it would make Weft's stream part of the graph.
void require_running(const Context& context, StreamHandle stream) {
  CaptureStatus status = CaptureStatus::none;
  const int result = driver().stream_is_capturing(stream, &status);
  if (result == success && status == CaptureStatus::none) return;
  if (result != success && result < error_capture_unsupported)
    check_result(result, "cuStreamIsCapturing", context.name());
  throw_failure("interop", "a stream of " + context.name() +
                               " is being captured into a graph: Weft's work runs in a stream of its own, which is no "
                               "part of it; share memory outside of the capture, or launch kernels into the stream "
                               "(KernelFunction::launch)");
}

}  // namespace

EventHandle CudaMemory::crossing() {
  if (!crossing_)
    check_result(driver().event_create(&crossing_, event_disable_timing), "cuEventCreate", context_.name());
  return crossing_;
}

void* CudaMemory::entry() {
  std::lock_guard lock(order());
  const CurrentContext current(context_);
  if (!entry_) check_result(driver().stream_create(&entry_, stream_non_blocking), "cuStreamCreate", context_.name());
  return entry_;
}

void CudaMemory::follow(void* stream) {
  std::lock_guard lock(order());
  const CurrentContext current(context_);
  const auto other = static_cast<StreamHandle>(stream);
  require_running(context_, other);
  check_result(driver().event_record(crossing(), other), "cuEventRecord", context_.name());
  check_result(driver().stream_wait_event(context_.stream(), crossing(), 0), "cuStreamWaitEvent", context_.name());
}

void CudaMemory::lead(void* stream) {
  std::lock_guard lock(order());
  const CurrentContext current(context_);
  const auto other = static_cast<StreamHandle>(stream);
  require_running(context_, other);
  check_result(driver().event_record(crossing(), context_.stream()), "cuEventRecord", context_.name());
  check_result(driver().stream_wait_event(other, crossing(), 0), "cuStreamWaitEvent", context_.name());
}

std::function<void()> CudaMemory::mark() {
  std::lock_guard lock(order());
  const CurrentContext current(context_);
  EventHandle event = nullptr;
  check_result(driver().event_create(&event, event_disable_timing | event_blocking_sync), "cuEventCreate",
               context_.name());
  check_result(driver().event_record(event, context_.stream()), "cuEventRecord", context_.name());
  return [this, event] {
    const CurrentContext waiting(context_);
    const int result = driver().event_synchronize(event);
    driver().event_destroy(event);
    check_result(result, "cuEventSynchronize", context_.name());
  };
}

}  // namespace weft::target::cuda
