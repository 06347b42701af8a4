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

/// A result that begins as one of its operands: a scatter, an assignment, a KV append, an in-out array of a user's
/// kernel. It lies in its operand's memory where that is free; else the operand is copied before its group runs.
struct Overlay {
  NodeId result;
  NodeId value;    // what it begins as
  NodeId operand;  // the root or leaf in whose buffer that lies
};
/// Returns the overlays among a group's roots (overlay.cpp).
std::vector<Overlay> overlays(const Ir& ir, const Grouping& grouping, const Group& group);
/// Returns whether the group reads the overlay's operand for nothing else than to begin with it.
bool may_take_over(const Ir& ir, const Grouping& grouping, const Group& group, const Overlay& overlay);

struct Ordering {
  std::vector<GroupId> order;                          // a topological order
  IndexedVector<GroupId, std::vector<GroupId>> after;  // by group: those that must run before it
  IndexedVector<NodeId, NodeId> buffer_owner;  // by node: the node whose buffer it lies in (itself, an updated input, a
                                               // scatter's operand, or a value that it reads last)
  NodeFlags has_buffer;                        // by node: whether it is stored
  NodeFlags streamed;  // by node: a large result that no node reads again, written with streaming stores
  /// Copies after all groups.
  std::vector<Copy> last;
  IndexedVector<NodeId, NodeId> copied_from;  // by node: the operand that is copied into its buffer before its group
                                              // runs, or -1
};

/// Orders the groups. With `reuse`, large results of rows groups may be stored in the buffer of an operand that no
/// later group reads.
Ordering order(const Ir& ir, const Grouping& grouping, const std::vector<Update>& updates, const Policy& policy,
               bool reuse = true);

/// Returns whether arrays are copied before the group runs: operands of overlays, also of those that nobody reads.
bool begins_with_copies(const Ordering& ordering, const Group& group);

/// Prints the groups in the order in which they run, with what each waits for and which buffers it takes over.
std::string print(const Ir& ir, const Grouping& grouping, const Ordering& ordering);

}  // namespace weft::compiler
