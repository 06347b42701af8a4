#pragma once
// Launches into a stream that the caller owns.
#include "target/target.h"

namespace weft::target {

/// What an Executable of a device implements beside its own interface. Executables of the host have no streams.
class ForeignLaunch {
 public:
  /// Puts the programs of a segment into a stream of the caller's, behind what is in it, and returns without waiting.
  /// `stream` is the device driver's handle (a CUstream; null: the default stream). It may be in the middle of a
  /// capture if the kernel was launched before: its code is then loaded. The caller orders this work against other
  /// streams.
  virtual void run_on(void* stream, const Segment& segment) const = 0;

 protected:
  ~ForeignLaunch() = default;
};

}  // namespace weft::target
