#pragma once
// The addresses that a rows group touches at a point of its domain, and what the point costs.
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "compiler/ir/grouping.h"

namespace weft::compiler {

/// An address that a group loads from or stores to at a point of its domain.
struct Touch {
  NodeId node;
  ix::Expr offset;
  bool gathered;  // through an index that was itself loaded
};

/// A word of Threefry: how many words its key draws, and which of them it is.
struct Drawn {
  int64_t words;
  ix::Expr position;
};

/// Returns the index of a reduction root's operand at the group's point, with the inner variables at the reduced axes.
std::vector<ix::Expr> reduction_operand_index(const Ir& ir, Group& group, const Root& root);

/// Collects all addresses of a group and the cost of a point of its domain.
class AccessAnalysis {
 public:
  /// `with_rows`: includes roots that are computed once a row. `only`: a node, restricts the analysis to that root.
  /// `with_keys`: includes the keys of random numbers, which schedules ignore.
  AccessAnalysis(const Ir& ir, const Grouping& grouping, Group& group, bool with_rows = false, int only = -1,
                 bool with_keys = false);

  /// Returns whether a gathered variable in e changes along the lanes.
  bool gathered_on(ix::Expr e, std::span<const ix::Expr> lanes) const;

  std::vector<Touch> touches;
  std::vector<Drawn> drawn;
  std::vector<Touch> keys;  // both words of each random number's key, where they are loaded
  double flops = 0;

 private:
  using Pending = std::vector<std::pair<NodeId, int>>;  // nodes, each with the number of its index

  ix::Expr address(NodeId node, const std::vector<ix::Expr>& index);
  void walk(Pending pending, bool body, std::vector<Touch>& found);
  void step(NodeId id, const IrNode& n, int tuple, Pending& pending);
  void ask_for_key(const IrNode& n, const std::vector<ix::Expr>& at);

  const Ir& ir_;
  const Grouping& grouping_;
  Group& group_;
  const bool with_keys_;
  Pending pending_keys_;
  IndexTuples tuples_;
  std::set<const ix::Node*> gathered_;
  std::map<const ix::Node*, std::set<const ix::Node*>> depends_;
};

}  // namespace weft::compiler
