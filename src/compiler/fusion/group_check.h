#pragma once
// Declarations that the verifiers of groups share; private to verify*.cpp.
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
  /// Lies `node` in memory?
  bool in_memory(NodeId node) const {
    return node >= 0 && node < ir.size() && (is_leaf(ir, node) || grouping.is_root[node]);
  }
};

/// Domain, roots and their index expressions of a rows group.
void verify_rows(const GroupCheck& check);
/// In a rows group, each root that others of its roots read is read where it stands.
void verify_alignment(const GroupCheck& check);
void verify_dot(const GroupCheck& check);
void verify_call(const GroupCheck& check);
void verify_attention(const GroupCheck& check);
void verify_scatter(const GroupCheck& check);

/// What a group's plan says it reads beside what its inlined nodes do, ascending.
std::vector<NodeId> planned_reads(const GroupCheck& check);
/// What the views of a product's operands wait for (graph::Op::depends): nodes, in memory or not.
std::vector<NodeId> waited_for(const GroupCheck& check);

/// A walk from a rows group's roots to all that they are computed from, with the position of each read.
class PointWalk {
 public:
  struct Read {
    NodeId root;  // which computes it: its number in the group
    NodeId node;
    std::vector<ix::Expr> index;  // in the walk's own context
    bool conditional;             // of one of several, behind a predicate, or at an index that was itself read
  };
  explicit PointWalk(const GroupCheck& check);
  const std::vector<Read>& reads() const { return reads_; }
  /// Are two expressions of the walk's context equal, at every point that is tried?
  bool same(ix::Expr a, ix::Expr b) const;
  bool same(const std::vector<ix::Expr>& a, const std::vector<ix::Expr>& b) const;
  /// Is the element that is read, at every point that is tried, among the pair that a map stores there and at the other
  /// value of its last variable? A tile runs along that variable, is of even width, and is read before it is stored.
  bool in_pair(ix::Expr read, ix::Expr store);
  /// An expression of the group in the walk's context.
  ix::Expr copy(ix::Expr e);
  std::vector<ix::Expr> copy(const std::vector<ix::Expr>& index);
  /// The element of `node` at the index, by the strides of its memory.
  ix::Expr offset(NodeId node, const std::vector<ix::Expr>& index);

 private:
  void walk(size_t root);
  std::vector<ix::Expr> operand_index(const Root& root);
  ix::Expr variable(int64_t min, int64_t max);

  const GroupCheck& check_;
  ix::Context cx_;
  std::unordered_map<const ix::Node*, ix::Expr> copies_;
  std::vector<int64_t> highest_;  // by variable of the context
  std::vector<Read> reads_;
};

/// Values of `count` variables at which expressions are compared: both ends, then numbers that look random.
std::vector<int64_t> sample(size_t number, std::span<const int64_t> highest);
inline constexpr size_t samples = 12;

}  // namespace weft::compiler
