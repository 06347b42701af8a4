#pragma once
// The result of fusion, which lowering reads: which nodes are stored or reduced (the roots), which roots one kernel
// computes (the groups), and the plan of each group that is a matmul, a call or an attention.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/index.h"
#include "compiler/ir/index_map.h"
#include "compiler/ir/ir.h"
#include "kernel/describe/desc.h"
#include "kernel/describe/epilogue.h"

namespace weft::target {
class LibraryCall;
}

namespace weft::compiler {

struct DomainVariable {
  ix::Expr var;
  Dim extent;
  bool inner = false;
};

/// Returns the number of points that the variables span, symbols at their bounds.
int64_t extent_of(std::span<const DomainVariable> vars);
bool all_static(std::span<const DomainVariable> vars);

enum class RootKind : uint8_t { reduce, full, row, column };

struct Root {
  NodeId node;
  RootKind kind;
  std::vector<ix::Expr> index;  // of this node's element at (row, inner); reductions and row maps: over row variables
                                // only; columns: (part, inner)
};

/// A node's buffer, from an element on.
struct OperandView {
  NodeId node;
  int64_t offset = 0;  // elements
};

/// How an operand of a dot is computed as it is loaded, from arrays that are roots or leaves. Empty: the operand lies
/// in memory as it is.
struct DotPrologue {
  kernel::Epilogue steps;
  std::vector<OperandView> operands;
  bool empty() const { return operands.empty(); }
};

/// A dot with its epilogue. `desc` is the product over bounds, without epilogue; C's dtype is that of the epilogue's
/// result. `symbols[k]` is the symbolic extent of batch axis k, then of m, n, k.
struct DotPlan {
  kernel::DotDesc desc;
  kernel::Epilogue epilogue;
  OperandView a, b;  // roots or leaves; of a prologue the largest of its arrays
  DotPrologue a_prologue, b_prologue;
  std::vector<OperandView> operands;  // of the epilogue: roots or leaves
  std::vector<NodeId> stored;         // roots of this group: the epilogue's further arrays
  NodeId sum;                         // the root that sums an operand, or rows of the result
  std::vector<Dim> extents;           // batch…, m, n, k as Dims
  // How a library is asked: the whole in a library's terms, and its operands but C (region/library_epilogue.h). Nothing
  // if a library's descriptor cannot say the epilogue.
  std::optional<kernel::DotDesc> asked;
  std::vector<OperandView> asked_operands;
  std::shared_ptr<const target::LibraryCall> library;  // its answer; null: generated code
  std::string to_string() const;                       // "dot f32 []x8x64x32 +bias gelu_tanh"
  /// Returns whether C may be stored in the buffer of `node`: it is an operand of the epilogue alone, read at the
  /// element that is stored; of a library the residual, which it reads first.
  bool may_overwrite(NodeId node) const;
  /// Returns the roots and leaves that the kernel reads, A and B first; some may be listed twice.
  std::vector<NodeId> reads() const;
};

/// A call as a descriptor, with the nodes in whose buffers its operands lie, row-major, and its results (-1 where one
/// is not read).
struct CallPlan {
  graph::Op op = graph::Op::call;
  std::shared_ptr<const graph::Control> control;       // of control flow
  std::shared_ptr<const graph::KernelProgram> kernel;  // of a user's kernel
  kernel::CallDesc desc;
  std::vector<NodeId> operands, results;
};

/// An array of attention: element (batch…, row, column) of it in the buffer of `node`. Without columns: the rows'
/// logsumexp.
struct AttentionOperand {
  NodeId node;  // root or leaf; -1: absent
  Dtype dtype = float32;
  int64_t offset = 0;  // elements
  std::vector<int64_t> batch;
  int64_t row = 0, column = 0;  // strides
};

/// Attention or its derivative: q [batch…, tq, width], k [batch…, tk, width], v [batch…, tk, value_width]. Results
/// without a reader are absent.
struct AttentionPlan {
  graph::AttentionRegion region;
  std::vector<int64_t> batch;  // extents
  Dim tq, tk;
  int64_t width = 0, value_width = 0;
  AttentionOperand q, k, v, mask, o, lse, g;
  AttentionOperand key;  // of dropout: two words a row
  size_t keyed = 0;      // the first batch axes, for each index of which the key has a row
  AttentionOperand dq, dk, dv;
  // Split-KV (schedule/splits.h): the number of splits and the keys of each; o and lse then have an entry for
  // each split. In the combination (`join`) q is absent, k are the splits' lse, v their o.
  int64_t splits = 0, split_keys = 0;
  bool join = false;
  NodeId cache;  // where the query appends its own key and value (region/kv_append.h), the scatter that appends them;
                 // q is absent then
};

/// A scatter that a routine computes (fusion/scatter_rows.h), with the nodes whose buffers hold the row indices and the
/// rows.
struct ScatterRows {
  kernel::CallDesc desc;
  NodeId ids, updates;
};

/// The index context behind a group's expressions. Through a const group it cannot be reached: nothing is added to it.
class OwnContext {
 public:
  OwnContext() = default;
  OwnContext(OwnContext&&) = default;
  OwnContext& operator=(OwnContext&&) = default;
  ix::Context& operator*() { return *cx_; }
  ix::Context* operator->() { return cx_.get(); }
  bool owns(ix::Expr e) const { return e->context == cx_.get(); }

 private:
  std::unique_ptr<ix::Context> cx_ = std::make_unique<ix::Context>();
};

struct Group {
  enum class Kind : uint8_t { rows, dot, cumulative, scatter, call, attention } kind = Kind::rows;
  OwnContext cx;
  std::vector<DomainVariable> domain;
  std::vector<ix::Expr> seed_index;  // the seed's element (for a reduction: its operand's) in domain variables
  std::string signature;             // groups of equal signature may be siblings
  std::vector<Root> roots;           // producers before consumers
  std::vector<NodeId> reads;         // roots of other groups and leaves, each once
  DotPlan dot;
  CallPlan call;
  AttentionPlan attention;
  std::optional<ScatterRows> scatter_rows;
  bool has_reduction() const;
  bool has_columns() const;
  /// The group over an index context of its own, for whoever makes further expressions.
  Group copy() const;
};

struct Grouping {
  IndexedVector<GroupId, Group> groups;     // in an order in which they can run
  NodeFlags is_root;                        // by node
  IndexedVector<NodeId, GroupId> group_of;  // by node; -1 for leaves and what is inlined
  NodeStrides strides;                      // by node: of roots and parameters
};

/// Returns the node in whose buffer an output lies: a reshape of a root or leaf shares its buffer.
NodeId output_node(const Ir& ir, NodeId output);
/// Returns by node how many outputs lie in its buffer.
NodeCounts escapes(const Ir& ir);

/// Returns whether a node is an input of the program: never inlined, never computed by a group.
inline bool is_leaf(const Ir& ir, NodeId node) { return ir[node].op == graph::Op::parameter; }

/// Lists the groups with their roots, as `weft explain --show groups` prints them.
std::string print(const Ir& ir, const Grouping& grouping);

}  // namespace weft::compiler
