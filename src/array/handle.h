#pragma once
// What compiled functions must know about a handle beside its value: whether anybody else can see the data.
#include "weft/array.h"

namespace weft {

/// array's friend.
class arrays {
 public:
  /// True where this handle is the only way to the data: no other handle, node or storage shares it. The data may then
  /// be overwritten.
  static bool sole_owner(const array& a);
};

}  // namespace weft
