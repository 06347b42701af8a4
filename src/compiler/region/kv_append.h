#pragma once
// Attention of one query whose last key and value have just been made: they are appended to the cache that holds those
// before them, and that is then read. The two are one launch: whoever computes a head makes its own row from what the
// row is made of, uses it as the last one, and enters it. Nobody has to wait for what others enter.
#include <vector>

#include "compiler/ir/grouping.h"

namespace weft::compiler {

/// The scatter that appends the row before which as many rows are seen as the region's number of keys says, less one;
/// where keys and values are views of its result, no others read that, and every element that it writes is in the own
/// row of some head. -1 elsewhere.
int kv_append(const Ir& ir, const Users& users, int attention);
/// The root of a group that is a scatter or an assignment onto what an operand holds, or -1.
inline int overlaid(const Group& group) {
  return group.kind == Group::Kind::scatter     ? group.roots[0].node
         : group.kind == Group::Kind::attention ? group.attention.cache
                                                : -1;
}

}  // namespace weft::compiler
