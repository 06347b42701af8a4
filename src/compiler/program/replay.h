#pragma once
// Runs of a program that a device has captured. A device takes longer to be given a hundred launches than to do
// many of them; a run with the addresses of an earlier one is given as a whole.
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/buffer.h"
#include "runtime/device.h"

namespace weft::compiler {

class GraphCache {
 public:
  /// Everything that a run depends on: addresses of inputs, results and arena, and symbols.
  using Key = std::vector<int64_t>;

  /// Does `give` once more, or what it gave to the device earlier under this key. The first run under a key is done as
  /// it is, the second is captured: keys that never come again cost nothing; `at_once` writes the first down. The
  /// caller holds device.order().
  void run(runtime::Accelerator& device, const Key& key, const std::function<void()>& give, bool at_once = false);
  /// Memory between the steps, the same at every run: runs of a device follow each other.
  runtime::BufferRef arena(runtime::Accelerator& device, int64_t bytes);

 private:
  struct Entry {
    Key key;
    std::shared_ptr<const runtime::CapturedGraph> graph;  // null after the first run
  };
  std::mutex mutex_;
  std::list<Entry> entries_;  // the last used first
  runtime::BufferRef arena_;
};

}  // namespace weft::compiler
