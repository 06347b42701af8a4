// Rules of all groups: which roots each computes, in which order, what it reads, and the strides of results.
#include "compiler/fusion/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "compiler/fusion/group_check.h"
#include "compiler/region/kv_append.h"

namespace weft::compiler {

using graph::Op;

void GroupCheck::fail(std::string_view rule, NodeId node) const {
  static constexpr const char* kinds[] = {"rows", "dot", "cumulative", "scatter", "call", "attention"};
  throw_internal("verify", fmt::format("{}: group {} ({}), {}", rule, g, kinds[static_cast<int>(group().kind)],
                                       node >= 0 && node < ir.size() ? print(ir, node) : fmt::format("%{}", node)));
}

namespace {

/// Returns whether readers compute the operator's value inline.
bool is_inlined(const IrNode& n) {
  return is_elementwise(n.op) || is_movement(n.op) || n.op == Op::gather || n.op == Op::random_bits ||
         n.op == Op::constant || n.op == Op::iota;
}

class GroupingVerifier {
 public:
  GroupingVerifier(const Ir& ir, const Grouping& grouping) : ir_(ir), grouping_(grouping), seen_(ir.nodes.size(), -1) {}

  void run() {
    check(grouping_.is_root.size() == ir_.nodes.size() && grouping_.group_of.size() == ir_.nodes.size() &&
              grouping_.strides.size() == ir_.nodes.size(),
          "verify", "a grouping says something of each node");
    roots();
    outputs();
    for (GroupId g = 0; g < grouping_.groups.count(); ++g) group({ir_, grouping_, g});
  }

 private:
  [[noreturn]] void fail(std::string_view rule, NodeId node) const {
    throw_internal("verify", fmt::format("{}: {}", rule, print(ir_, node)));
  }

  void roots() const {
    IndexedVector<NodeId, int> made_by(ir_.nodes.size(), -1);
    for (GroupId g = 0; g < grouping_.groups.count(); ++g) {
      const GroupCheck c{ir_, grouping_, g};
      if (c.group().roots.empty()) throw_internal("verify", fmt::format("a group has roots: group {}", g));
      for (const Root& root : c.group().roots) {
        c.require(root.node >= 0 && root.node < ir_.size(), "a root exists", root.node);
        c.require(std::exchange(made_by[root.node], g) < 0, "a root is in one group", root.node);
        c.require(!is_leaf(ir_, root.node), "an input is no root", root.node);
      }
    }
    for (NodeId id = 0; id < ir_.size(); ++id) {
      const auto at = static_cast<size_t>(id);
      if (grouping_.is_root[at] != (made_by[at] >= 0)) fail("a root is in a group, and nothing else is", id);
      if (grouping_.group_of[at] != made_by[at]) fail("a root's group has it among its roots", id);
      if (!grouping_.is_root[at] && !is_leaf(ir_, id)) continue;
      if (grouping_.strides[at].size() != ir_[id].type.shape.size()) fail("an array has a stride for each axis", id);
      if (grouping_.is_root[at] && !is_dense(ir_[id].type.shape, grouping_.strides[at]))
        fail("a root's strides cover its elements once each, without holes but the padding of rows", id);
    }
  }

  /// Returns whether the strides number the elements from 0 without gaps, in some order of the axes. Rows may begin at
  /// multiples of 16 bytes at most.
  static constexpr int64_t most_padding = 16;  // elements, of one byte
  static bool is_dense(const Shape& shape, const Strides& strides) {
    if (volume(shape) == 0) return true;
    std::vector<std::pair<int64_t, int64_t>> axes;
    for (size_t k = 0; k < shape.size(); ++k)
      if (shape[k].bound() != 1) axes.emplace_back(strides[k], shape[k].bound());
    std::sort(axes.begin(), axes.end());
    int64_t expected = 1;
    for (size_t k = 0; k < axes.size(); ++k) {
      const int64_t stride = axes[k].first;
      const bool row_begins = k == 1 && axes[0].first == 1 && stride > expected && stride < expected + most_padding;
      if (stride != expected && !row_begins) return false;
      expected = stride * axes[k].second;
    }
    return true;
  }

  void outputs() const {
    for (const NodeId id : ir_.outputs)
      if (const NodeId node = output_node(ir_, id); !is_leaf(ir_, node) && !grouping_.is_root[node])
        fail("an output lies in memory", id);
  }

  void group(const GroupCheck& c) {
    kind(c);
    switch (c.group().kind) {
      case Group::Kind::rows: verify_rows(c); break;
      case Group::Kind::dot: verify_dot(c); break;
      case Group::Kind::call: verify_call(c); break;
      case Group::Kind::attention: verify_attention(c); break;
      case Group::Kind::scatter: verify_scatter(c); break;
      case Group::Kind::cumulative: break;
    }
    reads(c);
  }

  /// Requires that a group's roots fit its kind, and that roots of a rows group have one phase.
  void kind(const GroupCheck& c) const {
    const Group& group = c.group();
    for (const Root& root : group.roots) {
      const IrNode& n = ir_[root.node];
      const bool fits = group.kind == Group::Kind::rows         ? is_inlined(n) || n.op == Op::reduce
                        : group.kind == Group::Kind::cumulative ? n.op == Op::cumulative && group.roots.size() == 1
                        : group.kind == Group::Kind::scatter    ? writes_operand(n.op) && group.roots.size() == 1
                        : group.kind == Group::Kind::call       ? is_call(n.op) && !is_attention(n)
                                                                : true;  // a dot, attention: by their plans
      c.require(fits, "a group's kind fits its roots", root.node);
      c.require(group.kind != Group::Kind::rows || n.phase == ir_[group.roots[0].node].phase,
                "a group's roots are of one phase", root.node);
    }
  }

  /// Collects the roots and leaves that `from` is computed from.
  void collect(const GroupCheck& c, const std::vector<NodeId>& from, std::vector<NodeId>& found) {
    std::vector<NodeId> pending = from;
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      if (std::exchange(seen_[id], c.g) == c.g) continue;
      if (c.in_memory(id)) {
        found.push_back(id);
        continue;
      }
      c.require(is_inlined(ir_[id]), "what is no root can be computed where it is read", id);
      pending.insert(pending.end(), ir_[id].inputs.begin(), ir_[id].inputs.end());
    }
  }

  /// Requires that `reads` lists what the roots are computed from, in groups that come before.
  void reads(const GroupCheck& c) {
    const Group& group = c.group();
    std::vector<NodeId> expected, from;
    const bool by_nodes =
        group.kind == Group::Kind::rows || group.kind == Group::Kind::cumulative || group.kind == Group::Kind::scatter;
    if (by_nodes) {
      for (const Root& root : group.roots)
        from.insert(from.end(), ir_[root.node].inputs.begin(), ir_[root.node].inputs.end());
    } else if (group.kind == Group::Kind::attention && group.attention.cache >= 0) {
      from = ir_[group.attention.cache].inputs;
      from.push_back(ir_[group.roots[0].node].inputs[0]);
    } else {
      from = waited_for(c);
    }
    collect(c, from, expected);
    if (!by_nodes) {
      const std::vector<NodeId> planned = planned_reads(c);
      expected.insert(expected.end(), planned.begin(), planned.end());
    }
    const bool inside =
        std::any_of(expected.begin(), expected.end(), [&](NodeId id) { return grouping_.group_of[id] == c.g; });
    std::erase_if(expected, [&](NodeId id) { return grouping_.group_of[id] == c.g; });
    std::sort(expected.begin(), expected.end());
    expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
    compare(c, expected);
    for (const NodeId id : group.reads)
      c.require(grouping_.group_of[id] < c.g, "a group comes after what it reads", id);
    if (group.kind == Group::Kind::rows && inside) verify_alignment(c);
  }

  void compare(const GroupCheck& c, const std::vector<NodeId>& expected) const {
    const std::vector<NodeId>& reads = c.group().reads;
    for (size_t k = 0; k < reads.size(); ++k) {
      c.require(c.in_memory(reads[k]), "what a group reads lies in memory", reads[k]);
      c.require(k == 0 || reads[k - 1] < reads[k], "what a group reads is listed once, in order", reads[k]);
      c.require(std::binary_search(expected.begin(), expected.end(), reads[k]), "a group lists only what it reads",
                reads[k]);
    }
    for (const NodeId id : expected)
      c.require(std::binary_search(reads.begin(), reads.end(), id), "a group lists all that it reads", id);
  }

  const Ir& ir_;
  const Grouping& grouping_;
  IndexedVector<NodeId, int> seen_;  // by node: the last group whose walk visited it
};

}  // namespace

void verify(const Ir& ir, const Grouping& grouping) { GroupingVerifier(ir, grouping).run(); }

}  // namespace weft::compiler
