#pragma once
// Declarations that the verifiers of groups share. Private to verify*.cpp.
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/ir/grouping.h"

namespace weft::compiler {

/// The group to verify.
struct GroupCheck {
  const Ir& ir;
  const Grouping& grouping;
  GroupId g;

  const Group& group() const { return grouping.groups[g]; }
  [[noreturn]] void fail(std::string_view rule, NodeId node) const;
  void require(bool ok, std::string_view rule, NodeId node) const {
    if (!ok) fail(rule, node);
  }
  /// Returns whether `node` exists and is a root or an input.
  bool in_memory(NodeId node) const {
    return node >= 0 && node < ir.size() && (is_leaf(ir, node) || grouping.is_root[node]);
  }
};

/// Verifies the domain of a rows group, and its roots with their index expressions.
void verify_rows(const GroupCheck& check);
/// Verifies that a rows group reads each of its own roots at the point where it computes that root.
void verify_alignment(const GroupCheck& check);
void verify_dot(const GroupCheck& check);
void verify_call(const GroupCheck& check);
void verify_attention(const GroupCheck& check);
void verify_scatter(const GroupCheck& check);

/// Returns the nodes that the plan of a group says it reads, besides those that its inlined nodes read.
std::vector<NodeId> planned_reads(const GroupCheck& check);
/// Returns the nodes that the operands of a matmul wait for (graph::Op::depends). They may have no buffer.
std::vector<NodeId> waited_for(const GroupCheck& check);

/// A walk from the roots of a rows group to everything that they are computed from, with the index of each read.
class PointWalk {
 public:
  struct Read {
    NodeId root;  // position in the group of the root that reads
    NodeId node;
    std::vector<ix::Expr> index;  // in the walk's own context
    bool conditional;             // read through a concat, under a predicate, or at a data-dependent index
  };
  explicit PointWalk(const GroupCheck& check);
  const std::vector<Read>& reads() const { return reads_; }
  /// Returns whether two expressions of the walk's context are equal at every sampled point.
  bool same(ix::Expr a, ix::Expr b) const;
  bool same(const std::vector<ix::Expr>& a, const std::vector<ix::Expr>& b) const;
  /// Returns whether the element that is read is, at every sampled point, one of the two that a map stores for the two
  /// values of its last variable. A tile runs along that variable, has an even width, and is read before it is stored.
  bool in_pair(ix::Expr read, ix::Expr store);
  /// Returns an expression of the group in the walk's context.
  ix::Expr copy(ix::Expr e);
  std::vector<ix::Expr> copy(const std::vector<ix::Expr>& index);
  /// Returns the offset in elements of `node` at an index, by the strides of its buffer.
  ix::Expr offset(NodeId node, const std::vector<ix::Expr>& index);

 private:
  void walk(size_t root);
  std::vector<ix::Expr> operand_index(const Root& root);
  ix::Expr variable(int64_t min, int64_t max);

  const GroupCheck& check_;
  ix::Context cx_;
  std::unordered_map<const ix::Node*, ix::Expr> copies_;
  std::vector<int64_t> highest_;  // by variable of the context: its largest value
  std::vector<Read> reads_;
};

/// Returns values of the variables at sample point `number`, each between 0 and its entry of `highest`: all 0, then all
/// at their highest, then pseudo-random ones.
std::vector<int64_t> sample(size_t number, std::span<const int64_t> highest);
inline constexpr size_t samples = 12;

}  // namespace weft::compiler
