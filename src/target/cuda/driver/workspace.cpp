#include "target/cuda/driver/workspace.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "base/error.h"

namespace weft::target::cuda {

Workspace::Workspace(Context& context, size_t bytes) : context_(context), bytes_(bytes) {
  context.make_current();
  const int result = driver().mem_alloc(&address_, bytes);
  if (result == success) return;
  size_t free = 0, total = 0;
  if (driver().mem_get_info(&free, &total) != success) free = total = 0;
  check_result(result, "cuMemAlloc",
               fmt::format("{:.1f} MiB of scratch memory for library calls; {:.1f} of {:.1f} MiB are free",
                           static_cast<double>(bytes) / (1 << 20), static_cast<double>(free) / (1 << 20),
                           static_cast<double>(total) / (1 << 20)));
}

Workspace::~Workspace() {
  // cuMemFree waits for work that may still use the memory.
  if (address_ != 0 && driver().ctx_set_current(context_.handle()) == success) driver().mem_free(address_);
}

std::shared_ptr<const Workspace> shared_workspace(Context& context, size_t bytes) {
  static std::mutex mutex;
  static auto* largest = new std::map<int, std::weak_ptr<const Workspace>>;
  std::lock_guard lock(mutex);
  std::weak_ptr<const Workspace>& slot = (*largest)[context.ordinal()];
  if (auto held = slot.lock(); held && held->bytes() >= bytes) return held;
  const auto fresh = std::make_shared<const Workspace>(context, bytes);
  slot = fresh;
  return fresh;
}

}  // namespace weft::target::cuda
