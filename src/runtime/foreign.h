#pragma once
// The order of a device's work with streams of others, and memory that passes between them: borrowed from them, or lent
// to them. No thread waits that holds a lock of its caller's (an interpreter's, say): what cannot be ordered at once is
// left to a thread of its own.
#include <functional>
#include <optional>

#include "runtime/buffer.h"
#include "runtime/device.h"

namespace weft::runtime {

/// An interface of devices whose work is ordered with streams that are not theirs. A stream is the driver's handle. All
/// throw std::runtime_error where the stream is being captured, or the driver fails.
class ForeignOrder {
 public:
  virtual ~ForeignOrder() = default;
  /// Returns a stream without work, for others to order theirs before: `follow` then orders the device's behind it.
  virtual void* entry() = 0;
  /// Makes later work of the device wait for what the stream holds now; the host does not wait.
  virtual void follow(void* stream) = 0;
  /// Makes later work of the stream wait for all work given to the device so far.
  virtual void lead(void* stream) = 0;
  /// Returns a function that waits on the host until all work given so far is done.
  virtual std::function<void()> mark() = 0;
  /// Returns whether the device's own work is being captured. The caller holds Accelerator::order().
  virtual bool capturing() const = 0;
};

/// Returns the interface of a device. Throws std::invalid_argument for one without it.
ForeignOrder& foreign_order(Accelerator& device);

/// Makes a buffer of memory that others own, on a device (null: the host). It is never overwritten. Its end gives the
/// memory back (below) and then calls `release`.
BufferRef borrow_memory(Accelerator* device, void* data, size_t bytes, std::optional<void*> stream,
                        std::function<void()> release);

/// Calls `release` when later work of `stream` follows the device's work so far; without a stream, once that work is
/// done. It is called at once, or later on another thread.
void give_back(Accelerator& device, std::optional<void*> stream, std::function<void()> release);
/// Calls `release` when the device's later work follows what `stream` holds now: at once, or later on another thread.
void take_back(Accelerator& device, void* stream, std::function<void()> release);

}  // namespace weft::runtime
