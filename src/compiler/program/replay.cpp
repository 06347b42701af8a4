#include "compiler/program/replay.h"

#include <algorithm>

#include "runtime/trace.h"

namespace weft::compiler {

namespace {

constexpr size_t most_entries = 8;

}  // namespace

void GraphCache::run(runtime::Accelerator& device, const Key& key, const std::function<void()>& give, bool at_once) {
  std::lock_guard lock(mutex_);
  auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == key; });
  if (found == entries_.end()) {
    if (!at_once) give();
    entries_.push_front({key, nullptr});
    if (entries_.size() > most_entries) entries_.pop_back();
    if (!at_once) return;
    found = entries_.begin();
  }
  entries_.splice(entries_.begin(), entries_, found);
  if (!found->graph) {
    device.begin_capture();
    try {
      give();
    } catch (...) {
      device.abandon_capture();
      throw;
    }
    found->graph = device.end_capture();
  }
  found->graph->run();
  ++runtime::counters().graph_launches;
}

runtime::BufferRef GraphCache::arena(runtime::Accelerator& device, int64_t bytes) {
  std::lock_guard lock(mutex_);
  if (!arena_) arena_ = runtime::allocate_on(&device, static_cast<size_t>(bytes));
  return arena_;
}

}  // namespace weft::compiler
