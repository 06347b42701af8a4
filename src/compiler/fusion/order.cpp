#include "compiler/fusion/order.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "compiler/schedule/overwrite.h"
#include "graph/control/control.h"

namespace weft::compiler {

using graph::Op;

namespace {

class Orderer {
 public:
  Orderer(const Ir& ir, const Grouping& grouping, const std::vector<Update>& updates, const Policy& policy)
      : ir_(ir), grouping_(grouping), updates_(updates), policy_(policy), readers_(ir.nodes.size()), touched_(ir) {}

  Ordering run(bool reuse);

 private:
  void dependences();
  void memory();
  void update(const Update& update);
  void begin_overlays();
  void begin_overlay(const Group& group, const Overlay& overlay);
  bool passes_on(const Group& group, NodeId node, NodeId lent) const;
  void overwrite();
  NodeId overwritten_by(GroupId g, NodeId node, const NodeFlags& taken);
  void streams();
  bool in_place(NodeId output, NodeId input);
  bool same_address(const Group& group, NodeId output, NodeId input);
  void precede(GroupId first, GroupId second);
  bool reaches(GroupId from, GroupId to);
  void sort();

  const Ir& ir_;
  const Grouping& grouping_;
  const std::vector<Update>& updates_;
  const Policy& policy_;
  Ordering out_;
  IndexedVector<NodeId, std::vector<GroupId>> readers_;      // by node: groups that read it
  NodeCounts escapes_;                                       // by node: how many outputs lie in its buffer
  IndexedVector<GroupId, std::set<GroupId>> before_, next_;  // by group
  GroupId last_backward_;             // the largest id of a group that precedes one of a smaller id
  IndexedVector<GroupId, int> seen_;  // by group: the last search that visited it
  int searches_ = 0;
  TouchedGroups touched_;
};

void Orderer::dependences() {
  size_t count = grouping_.groups.size();
  before_.resize(count);
  next_.resize(count);
  seen_.resize(count);
  for (size_t g = 0; g < count; ++g)
    for (NodeId node : grouping_.groups[g].reads) {
      readers_[node].push_back(static_cast<int>(g));
      GroupId producer = grouping_.group_of[node];
      if (producer < 0) continue;
      precede(producer, static_cast<int>(g));
    }
}

void Orderer::precede(GroupId first, GroupId second) {
  before_[second].insert(first);
  next_[first].insert(second);
  if (first > second) last_backward_ = std::max(last_backward_, first);
}

void Orderer::memory() {
  out_.buffer_owner.resize(ir_.nodes.size());
  std::iota(out_.buffer_owner.begin(), out_.buffer_owner.end(), 0);
  out_.has_buffer.assign(ir_.nodes.size(), false);
  for (const Group& group : grouping_.groups)
    for (NodeId node : group.reads) out_.has_buffer[node] = true;
  for (const Group& group : grouping_.groups)
    if (group.kind != Group::Kind::rows)
      for (const Root& root : group.roots) out_.has_buffer[root.node] = true;
  escapes_ = escapes(ir_);
  for (NodeId id : ir_.outputs) out_.has_buffer[output_node(ir_, id)] = true;
}

/// Returns whether a path leads from one group to another. Producers have smaller ids than consumers, so only edges
/// that `precede` added descend: groups with ids beyond `to` and `last_backward_` need no visit.
bool Orderer::reaches(GroupId from, GroupId to) {
  const GroupId last = std::max(to, last_backward_);
  std::vector<GroupId> pending{from};
  ++searches_;
  while (!pending.empty()) {
    const GroupId g = pending.back();
    pending.pop_back();
    if (g == to) return true;
    for (const int next : next_[g]) {
      if (next > last) break;
      if (std::exchange(seen_[next], searches_) != searches_) pending.push_back(next);
    }
  }
  return false;
}

/// Returns whether a group reads each element of `input` only at the index at which it stores `output`.
bool Orderer::same_address(const Group& group, NodeId output, NodeId input) {
  for (const Overlay& overlay : overlays(ir_, grouping_, group))
    if (overlay.result == output) return overlay.operand == input && may_take_over(ir_, grouping_, group, overlay);
  if (group.kind == Group::Kind::call) {  // a loop updates its carry in the buffers of its results from the start
    const CallPlan& call = group.call;
    const auto at = static_cast<size_t>(ir_[output].output);
    if (!call.control || call.op == Op::cond || at >= static_cast<size_t>(call.control->carry)) return false;
    return call.operands[static_cast<size_t>(call.control->constants) + at] == input &&
           std::count(call.operands.begin(), call.operands.end(), input) == 1;
  }
  if (group.kind == Group::Kind::dot) return output == group.roots[0].node && group.dot.may_overwrite(input);
  return group.kind == Group::Kind::rows && may_overwrite(ir_, grouping_, group, input, output, touched_);
}

/// Returns whether the output may be stored in the buffer of an input: layouts match, no other reader of the input
/// depends on the output's group, and that group reads it at the same index alone.
bool Orderer::in_place(NodeId output, NodeId input) {
  GroupId g = grouping_.group_of[output];
  const graph::Type &to = ir_[input].type, &from = ir_[output].type;
  const Strides &strides = grouping_.strides[output], &given = grouping_.strides[input];
  if (g < 0 || !policy_.update_in_place || from.dtype != to.dtype || out_.buffer_owner[output] != output) return false;
  const bool reshaped = from.shape != to.shape;  // as many elements in the same order
  if (reshaped && (!is_static(from.shape) || !is_static(to.shape) || volume(from.shape) != volume(to.shape) ||
                   !is_row_major(from.shape, strides) || !is_row_major(to.shape, given)))
    return false;
  if (!reshaped && strides != given) return false;
  for (GroupId reader : readers_[input])
    if (reader != g && reaches(g, reader)) return false;
  bool read_here = std::count(readers_[input].begin(), readers_[input].end(), g) > 0;
  return !read_here || (!reshaped && same_address(grouping_.groups[g], output, input));
}

/// Stores an updated input's new value in place, or adds a copy at the end unless the update is optional.
void Orderer::update(const Update& update) {
  int output = ir_.outputs[static_cast<size_t>(update.output)], input = ir_.inputs[static_cast<size_t>(update.input)];
  if (output == input) return;
  // If another output is the old value, the input keeps that until the end, when both are copied.
  const NodeId node = output_node(ir_, output);
  const bool itself = node == input;
  const bool passed_on = escapes_[input] > (itself ? 1 : 0);
  if (!passed_on && !itself && in_place(node, input)) {
    GroupId g = grouping_.group_of[node];
    out_.buffer_owner[node] = input;
    for (GroupId reader : readers_[input])
      if (reader != g) precede(reader, g);
  } else if (!update.optional) {
    out_.last.push_back({node, input, update.output});
  }
}

/// Lets each overlay write into its operand's buffer if nothing else reads that; otherwise the operand is copied first.
void Orderer::begin_overlays() {
  out_.copied_from.assign(ir_.nodes.size(), -1);
  for (const Group& group : grouping_.groups)
    for (const Overlay& overlay : overlays(ir_, grouping_, group)) begin_overlay(group, overlay);
}

/// Returns whether a kernel's result may take over a buffer that several values have lain in, the last one its operand.
bool Orderer::passes_on(const Group& group, NodeId node, NodeId lent) const {
  const auto row_major = [&](NodeId id) { return is_row_major(ir_[id].type.shape, grouping_.strides[id]); };
  if (group.kind != Group::Kind::call || escapes_[lent] > 0 || !row_major(node)) return false;
  for (NodeId id = 0; id < ir_.size(); ++id)
    if (out_.buffer_owner[id] == lent && !row_major(id)) return false;
  return true;
}

void Orderer::begin_overlay(const Group& group, const Overlay& overlay) {
  const auto& [node, value, operand] = overlay;
  if (out_.buffer_owner[node] == operand) return;
  const NodeId lent = out_.buffer_owner[operand];  // another one where the operand has taken over its own operand's
  const bool only_reader = readers_[operand].size() == 1 && !is_leaf(ir_, lent) && escapes_[operand] == 0 &&
                           (lent == operand || passes_on(group, node, lent));
  if (only_reader && out_.buffer_owner[node] == node && may_take_over(ir_, grouping_, group, overlay)) {
    // The result takes the operand's buffer. If the result is an output, the operand is computed in the output's
    // buffer instead.
    if (escapes_[node] == 0) out_.buffer_owner[node] = lent;
    else if (lent == operand) out_.buffer_owner[operand] = node;
    else std::replace(out_.buffer_owner.begin(), out_.buffer_owner.end(), lent, node);
  } else {
    const bool plain = operand != value || is_row_major(ir_[operand].type.shape, grouping_.strides[operand]);
    check(plain, "order", "an operand that is copied is not row-major");
    out_.copied_from[node] = operand;
  }
}

/// Returns an operand of group g whose buffer root `node` may take over, or -1: it is no input or output, it has the
/// same type and strides, and no other reader depends on g.
NodeId Orderer::overwritten_by(GroupId g, NodeId node, const NodeFlags& taken) {
  for (NodeId operand : grouping_.groups[g].reads) {
    const auto at = static_cast<size_t>(operand);
    const GroupId producer = grouping_.group_of[at];
    if (producer < 0 || taken[at] || escapes_[at] > 0 || !(ir_[operand].type == ir_[node].type) ||
        grouping_.strides[at] != grouping_.strides[node])
      continue;
    const auto& readers = readers_[at];
    if (std::any_of(readers.begin(), readers.end(), [&](GroupId reader) { return reader != g && reaches(g, reader); }))
      continue;
    if (same_address(grouping_.groups[g], node, operand)) return operand;
  }
  return -1;
}

/// Stores large results of rows groups over arrays that are read for the last time: the gradient of logits over the
/// logits.
void Orderer::overwrite() {
  constexpr int64_t least_bytes = int64_t{1} << 20;
  NodeFlags taken(ir_.nodes.size());  // already shares its buffer with another node
  for (NodeId id = 0; id < ir_.size(); ++id)
    if (const NodeId owner = out_.buffer_owner[id]; owner != id) taken[id] = taken[owner] = true;
  for (const NodeId operand : out_.copied_from)
    if (operand >= 0) taken[operand] = true;
  for (GroupId g = 0; g < grouping_.groups.count(); ++g) {
    if (grouping_.groups[g].kind != Group::Kind::rows) continue;
    for (const Root& root : grouping_.groups[g].roots) {
      const auto at = static_cast<size_t>(root.node);
      if (root.kind != RootKind::full || !out_.has_buffer[at] || taken[at] || escapes_[at] > 0 ||
          volume(ir_[root.node].type.shape) * ir_[root.node].type.dtype.size() < least_bytes)
        continue;
      const NodeId operand = overwritten_by(g, root.node, taken);
      if (operand < 0) continue;
      out_.buffer_owner[at] = operand;
      taken[at] = taken[operand] = true;
      for (GroupId reader : readers_[operand]) {
        if (reader != g) precede(reader, g);
      }
    }
  }
}

/// Marks results for streaming stores, which avoid reading the cache line that they overwrite: a third of a copy's
/// traffic. This pays if nothing reads the result before it would have left the caches. An update in place has read its
/// lines already.
void Orderer::streams() {
  constexpr int64_t least_bytes = int64_t{16} << 20;
  out_.streamed.assign(ir_.nodes.size(), false);
  NodeFlags used(ir_.nodes.size(), false);
  for (const IrNode& node : ir_.nodes)
    for (NodeId input : node.inputs) used[input] = true;
  for (const Group& group : grouping_.groups)
    for (const Root& root : group.roots) {
      auto at = static_cast<size_t>(root.node);
      int64_t bytes = volume(ir_[root.node].type.shape) * ir_[root.node].type.dtype.size();
      const bool stores = group.kind == Group::Kind::rows || (group.kind == Group::Kind::call && group.call.kernel);
      out_.streamed[at] = stores && out_.buffer_owner[at] == root.node && !used[at] && bytes >= least_bytes;
    }
}

/// Sorts the groups topologically. Of the groups that are ready, the one with the first root in the graph runs next.
void Orderer::sort() {
  size_t count = grouping_.groups.size();
  IndexedVector<GroupId, size_t> waiting(count);
  std::set<std::pair<int, GroupId>> ready;
  auto make_ready = [&](GroupId g) {
    int first = ir_.size();
    for (const Root& root : grouping_.groups[g].roots) first = std::min(first, int{root.node});
    ready.insert({first, static_cast<int>(g)});
  };
  for (size_t g = 0; g < count; ++g) {
    waiting[g] = before_[g].size();
    if (waiting[g] == 0) make_ready(g);
    out_.after.emplace_back(before_[g].begin(), before_[g].end());
  }
  while (!ready.empty()) {
    GroupId g = ready.begin()->second;
    ready.erase(ready.begin());
    out_.order.push_back(g);
    for (int next : next_[g])
      if (--waiting[next] == 0) make_ready(static_cast<size_t>(next));
  }
  check(out_.order.size() == count, "order", "groups wait for each other");
}

Ordering Orderer::run(bool reuse) {
  dependences();
  memory();
  for (const Update& u : updates_) update(u);
  begin_overlays();
  if (reuse && policy_.update_in_place) overwrite();
  streams();
  sort();
  return std::move(out_);
}

}  // namespace

Ordering order(const Ir& ir, const Grouping& grouping, const std::vector<Update>& updates, const Policy& policy,
               bool reuse) {
  return Orderer(ir, grouping, updates, policy).run(reuse);
}

std::string print(const Ir& ir, const Grouping& grouping, const Ordering& ordering) {
  std::string text;
  for (const GroupId g : ordering.order) {
    const auto at = static_cast<size_t>(g);
    text += fmt::format("group {} makes", g);
    for (const Root& root : grouping.groups[at].roots) {
      const auto node = static_cast<size_t>(root.node);
      text += fmt::format(" %{}", root.node);
      if (!ordering.has_buffer[node]) text += " in registers";
      if (ordering.buffer_owner[node] != root.node)
        text += fmt::format(" in the memory of %{}", ordering.buffer_owner[node]);
      if (ordering.streamed[node]) text += " by streaming stores";
    }
    if (!ordering.after[at].empty()) text += fmt::format(" after groups {}", fmt::join(ordering.after[at], ", "));
    for (const Root& root : grouping.groups[at].roots)
      if (const NodeId from = ordering.copied_from[root.node]; from >= 0)
        text += fmt::format(", %{} is copied first", from);
    text += "\n";
  }
  for (const Copy& c : ordering.last) text += fmt::format("copy %{} to %{} at the end\n", c.from, c.to);
  return text + fmt::format("{} nodes, {} groups\n", ir.size(), grouping.groups.size());
}

}  // namespace weft::compiler
