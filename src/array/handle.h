#pragma once
// What compiled functions must know about a handle other than its value: whether its data is shared.
#include "graph/node.h"
#include "weft/array.h"

namespace weft {

/// array's friend.
class arrays {
 public:
  /// Returns whether this handle is the only owner of its value's `storage`: no other handle, node or storage shares
  /// it, so it may be overwritten.
  static bool sole_owner(const array& a, const graph::Storage& storage);
};

}  // namespace weft
