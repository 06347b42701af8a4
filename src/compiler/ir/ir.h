#pragma once
// The compiler's own view of a graph: a flat list of primitive nodes with one result each (an operator with several is
// a node for each of them), inputs before users, equal nodes shared. Every pass reads one of these and returns another
// (or annotates it from outside); none is changed after it is built.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "compiler/ir/ids.h"
#include "compiler/program.h"
#include "graph/node.h"
#include "kernel/describe/desc.h"
#include "weft/schedule/steps.h"

namespace weft::compiler {

/// What steps say of where a value is computed (schedule/steps/values.h): as fusion chooses; in a kernel that none of
/// its readers is in, and stored; where it is read, whatever that costs.
enum class Compute : uint8_t { chosen, root, where_read };

struct IrNode {
  graph::Op op;
  std::vector<NodeId> inputs;
  graph::SharedAttrs attrs;
  graph::Type type;
  bool row_major = true;                  // of a parameter: how its data lies
  int output = 0;                         // which of the operator's results this node is
  std::vector<graph::Type> results = {};  // of an operator with several (a call, a reducer whose state has several
                                          // components): the types of all of them
  bool gemv = false;                      // a sum that was a GEMV (rewrite/gemv.h)
  bool scaled = false;  // of a GEMV: its vector is computed inside the kernel (a norm); of another reduction: it reads
                        // that vector alone, so it is the same for all rows of the matrix
  bool fused = false;   // an addition whose second term, a product, is not rounded before: a fused multiply-add
  bool sorted = false;  // of a scatter-add of rows: its ids are the values of a sort (rewrite/sort_scatter.h)
  bool materialized = false;  // stored, although it could be computed where it is read
  Compute compute = Compute::chosen;
  bool whole = false;  // of a reduction: passes do not split it, because steps have
  // A label of where the node came from: 0; one more for what a round of rematerialization places behind the busiest
  // step, copies and all else (fusion/rematerialize.h); one less than its reader's for the element that one_hot_sum
  // reads. Labels are compared for equality alone: roots of different phases never share a rows group. They carry no
  // order; when a group runs follows from what it reads and overwrites.
  int phase = 0;
};

/// A composite that was inlined: the value of node `result` is name(`input`). Passes that replace nodes carry it along
/// and drop it where one of the nodes goes, so that a function that a library has is known by its name.
struct InlinedRegion {
  std::string name;
  NodeId input, result;
};

/// A value with the steps of a user, which passes carry along as they do regions.
struct ScheduledValue {
  NodeId node;
  schedule::Steps steps;
};

struct Ir {
  IndexedVector<NodeId, IrNode> nodes;
  std::vector<NodeId> inputs;  // parameter nodes, in the order of the Program's inputs
  std::vector<NodeId> outputs;
  std::vector<InlinedRegion> regions;  // ascending by result (sort_regions)
  std::vector<ScheduledValue> scheduled;

  const IrNode& operator[](NodeId id) const { return nodes[id]; }
  int size() const { return static_cast<int>(nodes.size()); }
};

/// Converts a source graph: inlines composites except those for which `kept` holds, which become calls. Simplifies
/// nothing.
Ir import(const Source& source, const std::function<bool(const graph::Node&)>& kept = {});
/// Puts the inlined regions into the order of their results, so that those of a node are found by a search.
void sort_regions(Ir& ir);
/// Returns the inlined regions whose result is the node.
std::span<const InlinedRegion> regions_of(const Ir& ir, NodeId result);
/// Adds to `to` the inlined regions and the scheduled values of `from`, whose nodes `renamed` maps to those of `to`; -1
/// drops one.
void carry_labels(const Ir& from, Ir& to, const std::function<NodeId(NodeId)>& renamed);

/// Lists for each node the nodes that read it: each once, ascending.
class Users : public Lists<NodeId, NodeId> {
 public:
  explicit Users(const Ir& ir);
};
inline Users users(const Ir& ir) { return Users(ir); }
bool has_axis(const std::vector<int64_t>& axes, int64_t axis);
bool is_movement(graph::Op op);
bool is_elementwise(
    graph::Op op);           // one output element from the input elements at the same index; cast and bitcast included
bool is_call(graph::Op op);  // a routine on whole arrays: calls, composites that were kept, control flow
/// Returns whether the node is one of several results: of a call, or a component of a reducer's state.
bool has_results(const IrNode& node);
bool is_attention(const IrNode& node);  // one of those: softmax attention or its derivative, which become kernels
/// The two nodes that attention of one query over many keys is split into (schedule/splits.h), as
/// attrs.integers[0]; of `pieces`, their number and their keys follow.
enum class AttentionPart : int64_t { pieces = 1, join = 2 };
/// Returns a key that is equal for the results of one call, and only for those.
std::string call_key(const IrNode& node);
kernel::CallDesc call_desc(const graph::Attrs& attrs, std::span<const graph::Type> inputs,
                           std::span<const graph::Type> results, const Numerics& numerics);
bool writes_operand(graph::Op op);  // scatter, assign: the first operand with some elements replaced, in its own memory
                                    // where that is free
/// Returns the rank of a gather's or scatter's index arrays; 0 without index arrays.
size_t index_rank(const Ir& ir, NodeId node);
/// Drops the nodes that no output depends on; inputs stay.
Ir eliminate_dead_code(Ir ir);
std::string print(const Ir& ir);
std::string print(const Ir& ir, NodeId node);

using graph::hash;
/// Returns the key of a source, from operators, attributes, types, layouts and updates: equal for graphs that compile
/// to the same program.
Digest digest(const Source& source);
/// Returns the digest of a Source whose graph has the digest `graph`.
Digest source_digest(const Digest& graph, std::span<const Strides* const> layouts, std::span<const Update> updates);

}  // namespace weft::compiler
