#pragma once
// Orders the groups, and decides which results take over the buffer of a value that they replace.
#include <string>
#include <vector>

#include "compiler/ir/grouping.h"

namespace weft::compiler {

/// An update that cannot be made in place: the whole buffer is copied after all groups.
struct Copy {
  NodeId from, to;
  int output;  // of the graph
};

struct Ordering {
  std::vector<GroupId> order;                          // groups
  IndexedVector<GroupId, std::vector<GroupId>> after;  // for each group, the groups that must run before it
  IndexedVector<NodeId, NodeId> buffer_owner;  // by node: the node whose buffer it lies in (itself, an updated input, a
                                               // scatter's operand, or a value that it reads last)
  NodeFlags has_buffer;                        // by node: a root that needs memory
  NodeFlags streamed;  // by node: a large result that no step reads again: it is stored with streaming stores
  std::vector<Copy> last;
  IndexedVector<GroupId, NodeId> scatter_source;  // by group: the operand to copy into the result first, or -1
};

/// Orders the groups. With `reuse`, large results of maps and rows may take over the buffer of a value that they read
/// last.
Ordering order(const Ir& ir, const Grouping& grouping, const std::vector<Update>& updates, const Policy& policy,
               bool reuse = true);

/// Lists the groups in the order in which they run, with what each waits for, and which nodes lie in whose memory.
std::string print(const Ir& ir, const Grouping& grouping, const Ordering& ordering);

}  // namespace weft::compiler
