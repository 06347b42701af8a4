// Rules of the order: replays the groups in order on a model of memory that records which value each buffer holds.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/flat_set.h"
#include "compiler/fusion/group_check.h"
#include "compiler/fusion/memory_state.h"
#include "compiler/fusion/verify.h"
#include "compiler/region/dot_plan.h"
#include "compiler/region/kv_append.h"
#include "compiler/schedule/rows.h"
#include "graph/control/control.h"

namespace weft::compiler {

using graph::Op;

namespace {

class OrderVerifier {
 public:
  OrderVerifier(const Ir& ir, const Grouping& grouping, const Ordering& ordering, const std::vector<Update>& updates)
      : ir_(ir), grouping_(grouping), order_(ordering), updates_(updates) {}

  void run() {
    sizes();
    for (NodeId id = 0; id < ir_.size(); ++id) owner(id);
    stored();
    for (const GroupCheck& c : groups()) streamed(c);
    permutation();
    replay();
  }

 private:
  [[noreturn]] void fail(std::string_view rule, NodeId node) const {
    throw_internal("verify", fmt::format("{}: {}", rule,
                                         node >= 0 && node < ir_.size() ? print(ir_, node) : fmt::format("%{}", node)));
  }
  void require(bool ok, std::string_view rule, NodeId node) const {
    if (!ok) fail(rule, node);
  }
  bool in_memory(NodeId node) const {
    return node >= 0 && node < ir_.size() && (is_leaf(ir_, node) || grouping_.is_root[node]);
  }
  NodeId owner_of(NodeId node) const { return order_.buffer_owner[node]; }
  std::vector<GroupCheck> groups() const {
    std::vector<GroupCheck> out;
    for (GroupId g = 0; g < grouping_.groups.count(); ++g) out.push_back({ir_, grouping_, g});
    return out;
  }

  void sizes() const {
    const size_t nodes = ir_.nodes.size(), count = grouping_.groups.size();
    check(order_.buffer_owner.size() == nodes && order_.has_buffer.size() == nodes && order_.streamed.size() == nodes &&
              order_.after.size() == count && order_.copied_from.size() == nodes,
          "verify", "an ordering says something of each node and each group");
  }

  /// Requires that a value that takes over another's buffer fits in it.
  void owner(NodeId id) const {
    const int at = owner_of(id);
    require(at >= 0 && at < ir_.size(), "a node's memory belongs to a node", id);
    if (at == id) return;
    require(in_memory(id) && !is_leaf(ir_, id) && in_memory(at), "only a root takes over memory", id);
    require(owner_of(at) == at, "the owner of a buffer owns itself", id);
    const graph::Type &own = ir_[id].type, &lent = ir_[at].type;
    require(own.dtype == lent.dtype && volume(own.shape) == volume(lent.shape),
            "a result that reuses a buffer has its dtype and size", id);
    if (begun_from(id) == at || begun_from(at) == id) return;  // begin_with checks how these two lie
    const Strides &strides = grouping_.strides[id], &given = grouping_.strides[at];
    require(own.shape == lent.shape ? strides == given
                                    : is_row_major(own.shape, strides) && is_row_major(lent.shape, given),
            same_strides, id);
  }

  /// Returns the node whose buffer holds what an overlay begins as; -1 for other nodes.
  int begun_from(NodeId node) const {
    const GroupId g = grouping_.group_of[node];
    if (g < 0) return -1;
    for (const Overlay& overlay : overlays(ir_, grouping_, grouping_.groups[g]))
      if (overlay.result == node) return overlay.operand;
    return -1;
  }

  void stored() const {
    const auto require_stored = [&](NodeId node) {
      require(order_.has_buffer[node], "what others read has memory", node);
    };
    for (const Group& group : grouping_.groups) {
      for (const NodeId node : group.reads) require_stored(node);
      if (group.kind != Group::Kind::rows)
        for (const Root& root : group.roots) require_stored(root.node);
    }
    for (const NodeId id : ir_.outputs) require_stored(output_node(ir_, id));
    for (NodeId id = 0; id < ir_.size(); ++id)
      require(!order_.has_buffer[id] || in_memory(id), "only roots and inputs have memory", id);
  }

  /// Requires that only a result of a map or of a user's kernel, in its own buffer, that no group reads is written with
  /// streaming stores.
  void streamed(const GroupCheck& c) const {
    for (const Root& root : c.group().roots)
      if (order_.streamed[root.node])
        c.require((c.group().kind == Group::Kind::rows || c.group().call.kernel) && owner_of(root.node) == root.node,
                  "what is stored with streaming stores is a map's own result", root.node);
    for (const NodeId node : c.group().reads)
      c.require(!order_.streamed[node], "what is stored with streaming stores is read by no group", node);
  }

  void permutation() const {
    const auto count = grouping_.groups.count();
    IndexedVector<GroupId, int> position(grouping_.groups.size(), -1);
    for (size_t k = 0; k < order_.order.size(); ++k) {
      const GroupId g = order_.order[k];
      if (g < 0 || g >= count || std::exchange(position[g], static_cast<int>(k)) >= 0)
        throw_internal("verify", fmt::format("each group runs once: group {}", g));
    }
    for (GroupId g = 0; g < count; ++g) {
      const auto at = static_cast<size_t>(g);
      if (position[at] < 0) throw_internal("verify", fmt::format("each group runs once: group {}", g));
      const std::vector<GroupId>& after = order_.after[at];
      for (const int before : after)
        if (before < 0 || before >= count || position[before] > position[at])
          throw_internal("verify", fmt::format("a group runs after those it waits for: group {} after {}", g, before));
      for (const NodeId node : grouping_.groups[at].reads)
        if (const GroupId producer = grouping_.group_of[node]; producer >= 0)
          GroupCheck{ir_, grouping_, g}.require(std::find(after.begin(), after.end(), producer) != after.end(),
                                                "a group waits for those that make what it reads", node);
    }
  }

  /// Runs the groups in order on the model, and requires that each read finds its value.
  void replay() {
    MemoryState memory(ir_, order_.buffer_owner);
    for (const GroupId g : order_.order) {
      const GroupCheck c{ir_, grouping_, g};
      for (const NodeId node : c.group().reads)
        c.require(memory.holds(node), "an array is read after it was made and before it is overwritten", node);
      begin_with(c, memory);
      overwritten(c);
      for (const Root& root : c.group().roots)
        if (order_.has_buffer[root.node]) memory.write(root.node);
    }
    at_the_end(memory);
  }

  /// Requires that the buffers of a group's overlays hold their operands' values, computed there or copied. An operand
  /// may be a transposed or reshaped view if its elements lie as the result's do.
  void begin_with(const GroupCheck& c, MemoryState& memory) const {
    constexpr const char* rule = "a scatter begins with its operand in its memory";
    const std::vector<Overlay> all = overlays(ir_, grouping_, c.group());
    for (const Root& root : c.group().roots)
      c.require(order_.copied_from[root.node] < 0 ||
                    std::any_of(all.begin(), all.end(), [&](const Overlay& o) { return o.result == root.node; }),
                "only a scatter's operand is copied", order_.copied_from[root.node]);
    for (const auto& [node, value, operand] : all) {
      const NodeId source = order_.copied_from[node];
      c.require(lies_as(value, operand, node), same_strides, node);
      if (source >= 0) {
        c.require(source == operand && owner_of(source) != owner_of(node) && memory.holds(source), rule, node);
        memory.store(source, node);
      }
      c.require(memory.in_memory_of(node) == operand, rule, node);
    }
  }

  /// Returns whether the buffer of `from`, read with the layout of `to`, holds the value of `moved`, a view of `from`.
  bool lies_as(int moved, int from, int to) const {
    const Shape& shape = ir_[to].type.shape;
    if (volume(shape) == 0) return true;
    const auto view = strided_view(ir_, grouping_.strides, grouping_.is_root, moved);
    if (!view || view->node != from || view->offset != 0 || volume(ir_[from].type.shape) != volume(shape)) return false;
    const Strides& strides = grouping_.strides[to];
    for (size_t k = 0; k < shape.size(); ++k)
      if (shape[k].bound() != 1 && view->strides[k] != strides[k]) return false;
    return true;
  }

  /// Checks the roots of a group that are stored over what it reads.
  void overwritten(const GroupCheck& c) {
    const Group& group = c.group();
    std::vector<std::pair<NodeId, NodeId>> pairs;  // read, root
    for (const Root& root : group.roots) {
      const int at = owner_of(root.node);
      for (const NodeId node : group.reads) {
        if (owner_of(node) != at) continue;
        if (root.node == overlaid(group)) apart(c, node);
        else pairs.emplace_back(node, root.node);
      }
    }
    if (pairs.empty()) return;
    switch (group.kind) {
      case Group::Kind::rows: return rows(c, pairs);
      case Group::Kind::dot:
        for (const auto& [node, root] : pairs)
          c.require(root == group.roots[0].node && group.dot.may_overwrite(node), here, node);
        return;
      case Group::Kind::call:
        for (const auto& [node, root] : pairs) {
          if (group.call.kernel) in_out(c, node, root);
          else carry(c, node, root);
        }
        return;
      default: c.fail(here, pairs[0].first);
    }
  }

  /// Requires that the updates and indices of a scatter do not depend on what it overwrites.
  void apart(const GroupCheck& c, NodeId operand) const {
    const IrNode& n = ir_[overlaid(c.group())];
    std::vector<NodeId> pending(n.inputs.begin() + 1, n.inputs.end());
    if (c.group().kind == Group::Kind::attention)
      for (const size_t k : {size_t{0}, size_t{3}}) pending.push_back(ir_[c.group().roots[0].node].inputs[k]);
    FlatSet seen;
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      c.require(id != operand, here, operand);
      if (!seen.insert(static_cast<uint64_t>(id) + 1) || in_memory(id)) continue;
      pending.insert(pending.end(), ir_[id].inputs.begin(), ir_[id].inputs.end());
    }
  }

  /// Requires that a loop overwrites its carry alone.
  void carry(const GroupCheck& c, NodeId node, NodeId root) const {
    const CallPlan& call = c.group().call;
    const auto at = static_cast<size_t>(ir_[root].output);
    const bool is_carry = call.control && call.op != Op::cond && at < static_cast<size_t>(call.control->carry) &&
                          call.operands[static_cast<size_t>(call.control->constants) + at] == node;
    c.require(is_carry && std::count(call.operands.begin(), call.operands.end(), node) == 1, here, node);
  }

  /// Requires that a kernel overwrites its in-out arrays alone.
  void in_out(const GroupCheck& c, NodeId node, NodeId root) const {
    const std::vector<NodeId>& operands = c.group().call.operands;
    c.require(begun_from(root) == node && std::count(operands.begin(), operands.end(), node) == 1, here, node);
  }

  /// Requires that each element is overwritten by one point of the domain, and is read only there or in the same tile,
  /// by the root that overwrites it or, where that is no row map, by roots of no later pass.
  void rows(const GroupCheck& c, const std::vector<std::pair<NodeId, NodeId>>& pairs) {
    const Group& group = c.group();
    PointWalk walk(c);
    const std::vector<int> passes = root_passes(ir_, grouping_, group);
    for (const auto& [node, output] : pairs) {
      const auto at = static_cast<size_t>(std::find_if(group.roots.begin(), group.roots.end(),
                                                       [out = output](const Root& r) { return r.node == out; }) -
                                          group.roots.begin());
      c.require(stored_once(c, group.roots[at]), "what a group overwrites is stored by one point of its domain", node);
      const ix::Expr store = walk.offset(output, walk.copy(group.roots[at].index));
      for (const PointWalk::Read& read : walk.reads()) {
        if (read.node != node) continue;
        const ix::Expr offset = walk.offset(node, read.index);
        c.require(walk.same(offset, store) || walk.in_pair(offset, store), here, node);
        const auto reader = static_cast<size_t>(read.root);
        if (!group.has_reduction() || reader == at) continue;
        c.require(group.roots[at].kind != RootKind::row && group.roots[reader].kind != RootKind::row &&
                      passes[reader] <= passes[at],
                  here, node);
      }
    }
  }

  /// Returns whether different points of the root's domain store different elements.
  static bool stored_once(const GroupCheck& c, const Root& root) {
    const bool by_row = root.kind == RootKind::row || root.kind == RootKind::reduce;
    const std::vector<DomainVariable>& domain = c.group().domain;
    return std::all_of(domain.begin(), domain.end(), [&](const DomainVariable& v) {
      return v.extent == 1 || (by_row && v.inner) ||
             std::any_of(root.index.begin(), root.index.end(), [&](ix::Expr e) { return ix::depends_on(e, v.var); });
    });
  }

  /// Requires that copies at the end fit, and that updated inputs and outputs then hold their values.
  void at_the_end(MemoryState& memory) const {
    NodeFlags copied(ir_.outputs.size());
    for (const Copy& copy : order_.last) {
      require(in_memory(copy.from) && in_memory(copy.to) && is_leaf(ir_, copy.to), "an input is what is copied to",
              copy.to);
      require(ir_[copy.from].type.dtype == ir_[copy.to].type.dtype &&
                  volume(ir_[copy.from].type.shape) == volume(ir_[copy.to].type.shape),
              "what is copied at the end fits", copy.from);
      require(is_leaf(ir_, copy.from) || memory.holds(copy.from), "what is copied at the end is still there",
              copy.from);  // inputs are saved before the first group
      require(copy.output >= 0 && copy.output < static_cast<int>(ir_.outputs.size()), "a copy is an output's", copy.to);
      copied[copy.output] = true;
    }
    for (const Copy& copy : order_.last) memory.store(copy.from, copy.to);
    for (const Update& update : updates_) {
      const int output = ir_.outputs[static_cast<size_t>(update.output)],
                input = ir_.inputs[static_cast<size_t>(update.input)];
      require(output == input || update.optional || memory.in_memory_of(input) == output_node(ir_, output),
              "an updated input holds its new value at the end", input);
    }
    for (size_t k = 0; k < ir_.outputs.size(); ++k) {
      const NodeId node = output_node(ir_, ir_.outputs[k]);
      require(copied[k] || is_leaf(ir_, node) || memory.holds(node), "an output is still there at the end",
              ir_.outputs[k]);
    }
  }

  static constexpr const char* same_strides = "a result that reuses a buffer has its strides";
  static constexpr const char* here = "what a group overwrites is read only where it is overwritten";

  const Ir& ir_;
  const Grouping& grouping_;
  const Ordering& order_;
  const std::vector<Update>& updates_;
};

}  // namespace

void verify(const Ir& ir, const Grouping& grouping, const Ordering& ordering, const std::vector<Update>& updates) {
  OrderVerifier(ir, grouping, ordering, updates).run();
}

}  // namespace weft::compiler
