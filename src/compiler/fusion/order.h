#pragma once
// Orders the groups and decides which results are stored in the buffer of a value that they replace.
#include <string>
#include <vector>

#include "compiler/ir/grouping.h"

namespace weft::compiler {

/// An update that is not made in place: after all groups, the buffer of `from` is copied to that of `to`.
struct Copy {
  NodeId from, to;
  int output;  // of the graph
};

struct Ordering {
  std::vector<GroupId> order;                          // a topological order
  IndexedVector<GroupId, std::vector<GroupId>> after;  // by group: those that must run before it
  IndexedVector<NodeId, NodeId> buffer_owner;  // by node: the node whose buffer it lies in (itself, an updated input, a
                                               // scatter's operand, or a value that it reads last)
  NodeFlags has_buffer;                        // by node: whether it is stored
  NodeFlags streamed;  // by node: a large result that no node reads again, written with streaming stores
  /// Copies after all groups.
  std::vector<Copy> last;
  IndexedVector<GroupId, NodeId> scatter_source;  // by group: the operand to copy into the result before it runs, or -1
};

/// Orders the groups. With `reuse`, large results of rows groups may be stored in the buffer of an operand that no
/// later group reads.
Ordering order(const Ir& ir, const Grouping& grouping, const std::vector<Update>& updates, const Policy& policy,
               bool reuse = true);

/// Prints the groups in the order in which they run, with what each waits for and which buffers it takes over.
std::string print(const Ir& ir, const Grouping& grouping, const Ordering& ordering);

}  // namespace weft::compiler
