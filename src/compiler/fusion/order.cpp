#include "compiler/fusion/order.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "compiler/region/dot_plan.h"
#include "compiler/region/kv_append.h"
#include "compiler/schedule/overwrite.h"
#include "graph/control/control.h"

namespace weft::compiler {

using graph::Op;

namespace {

class Orderer {
 public:
  Orderer(const Ir& ir, const Grouping& grouping, const std::vector<Update>& updates, const Policy& policy)
      : ir_(ir), grouping_(grouping), updates_(updates), policy_(policy), readers_(ir.nodes.size()) {}

  Ordering run(bool reuse);

 private:
  void dependences();
  void memory();
  void update(const Update& update);
  void scatters();
  void overwrite();
  int overwritten_by(size_t g, int node, const std::vector<bool>& taken);
  void streams();
  bool in_place(int output, int input);
  bool same_address(const Group& group, int output, int input);
  int scatter_operand(int node) const {
    return memory_of(ir_, grouping_.strides, grouping_.is_root, ir_[node].inputs[0]);
  }
  void precede(int first, int second);
  bool reaches(int from, int to);
  void sort();

  const Ir& ir_;
  const Grouping& grouping_;
  const std::vector<Update>& updates_;
  const Policy& policy_;
  Ordering out_;
  std::vector<std::vector<int>> readers_;     // by node: groups that read it
  std::vector<int> escapes_;                  // by node: how many outputs lie in its memory
  std::vector<std::set<int>> before_, next_;  // by group
  int last_backward_ = -1;                    // the last group that comes before one of a smaller number
  std::vector<int> seen_;                     // by group: the search that last came by
  int searches_ = 0;
  TouchedGroups touched_;
};

void Orderer::dependences() {
  size_t count = grouping_.groups.size();
  before_.resize(count);
  next_.resize(count);
  seen_.resize(count);
  for (size_t g = 0; g < count; ++g)
    for (int node : grouping_.groups[g].reads) {
      readers_[static_cast<size_t>(node)].push_back(static_cast<int>(g));
      int producer = grouping_.group_of[static_cast<size_t>(node)];
      if (producer < 0) continue;
      precede(producer, static_cast<int>(g));
    }
}

void Orderer::precede(int first, int second) {
  before_[static_cast<size_t>(second)].insert(first);
  next_[static_cast<size_t>(first)].insert(second);
  if (first > second) last_backward_ = std::max(last_backward_, first);
}

void Orderer::memory() {
  out_.buffer_owner.resize(ir_.nodes.size());
  std::iota(out_.buffer_owner.begin(), out_.buffer_owner.end(), 0);
  out_.has_buffer.assign(ir_.nodes.size(), false);
  for (const Group& group : grouping_.groups)
    for (int node : group.reads) out_.has_buffer[static_cast<size_t>(node)] = true;
  for (const Group& group : grouping_.groups)
    if (group.kind != Group::Kind::rows)
      for (const Root& root : group.roots) out_.has_buffer[static_cast<size_t>(root.node)] = true;
  escapes_ = escapes(ir_);
  for (int id : ir_.outputs) out_.has_buffer[static_cast<size_t>(output_node(ir_, id))] = true;
}

/// Groups are numbered producers first, so that a path leads back to a smaller number only over what came to be since:
/// nothing behind both ends is looked at.
bool Orderer::reaches(int from, int to) {
  const int last = std::max(to, last_backward_);
  std::vector<int> pending{from};
  ++searches_;
  while (!pending.empty()) {
    const int g = pending.back();
    pending.pop_back();
    if (g == to) return true;
    for (const int next : next_[static_cast<size_t>(g)]) {
      if (next > last) break;
      if (std::exchange(seen_[static_cast<size_t>(next)], searches_) != searches_) pending.push_back(next);
    }
  }
  return false;
}

/// Checks that each element is read only at the index at which it is overwritten.
bool Orderer::same_address(const Group& group, int output, int input) {
  if (output == overlaid(group)) {
    const IrNode& n = ir_[output];
    if (scatter_operand(output) != input) return false;
    std::set<int> others;
    std::vector<int> pending(n.inputs.begin() + 1, n.inputs.end());
    if (group.kind == Group::Kind::attention)
      for (const size_t k : {size_t{0}, size_t{3}}) pending.push_back(ir_[group.roots[0].node].inputs[k]);
    while (!pending.empty()) {
      int id = pending.back();
      pending.pop_back();
      if (id == input) return false;
      if (!others.insert(id).second || grouping_.is_root[static_cast<size_t>(id)]) continue;
      pending.insert(pending.end(), ir_[id].inputs.begin(), ir_[id].inputs.end());
    }
    return true;
  }
  if (group.kind == Group::Kind::call) {  // a loop works on its carry in the memory of its results, and may begin there
    const CallPlan& call = group.call;
    const auto at = static_cast<size_t>(ir_[output].output);
    if (!call.control || call.op == Op::cond || at >= static_cast<size_t>(call.control->carry)) return false;
    return call.operands[static_cast<size_t>(call.control->constants) + at] == input &&
           std::count(call.operands.begin(), call.operands.end(), input) == 1;
  }
  if (group.kind == Group::Kind::dot)
    return output == group.roots[0].node && group.dot.residual == input && group.dot.a != input &&
           group.dot.b != input && group.dot.bias != input;
  return group.kind == Group::Kind::rows && may_overwrite(ir_, grouping_, group, input, output, touched_);
}

bool Orderer::in_place(int output, int input) {
  int g = grouping_.group_of[static_cast<size_t>(output)];
  const graph::Type &to = ir_[input].type, &from = ir_[output].type;
  const Strides &strides = grouping_.strides[static_cast<size_t>(output)],
                &given = grouping_.strides[static_cast<size_t>(input)];
  if (g < 0 || !policy_.update_in_place || from.dtype != to.dtype ||
      out_.buffer_owner[static_cast<size_t>(output)] != output)
    return false;
  const bool reshaped = from.shape != to.shape;  // as many elements in the same order
  if (reshaped && (!is_static(from.shape) || !is_static(to.shape) || volume(from.shape) != volume(to.shape) ||
                   !is_row_major(from.shape, strides) || !is_row_major(to.shape, given)))
    return false;
  if (!reshaped && strides != given) return false;
  for (int reader : readers_[static_cast<size_t>(input)])
    if (reader != g && reaches(g, reader)) return false;
  bool read_here =
      std::count(readers_[static_cast<size_t>(input)].begin(), readers_[static_cast<size_t>(input)].end(), g) > 0;
  return !read_here || (!reshaped && same_address(grouping_.groups[static_cast<size_t>(g)], output, input));
}

void Orderer::update(const Update& update) {
  int output = ir_.outputs[static_cast<size_t>(update.output)], input = ir_.inputs[static_cast<size_t>(update.input)];
  if (output == input) return;
  // Another output that is the old value needs a copy of its own: such an input is not overwritten before the end.
  const int node = output_node(ir_, output);
  const bool itself = node == input;
  const bool passed_on = escapes_[static_cast<size_t>(input)] > (itself ? 1 : 0);
  if (!passed_on && !itself && in_place(node, input)) {
    int g = grouping_.group_of[static_cast<size_t>(node)];
    out_.buffer_owner[static_cast<size_t>(node)] = input;
    for (int reader : readers_[static_cast<size_t>(input)])
      if (reader != g) precede(reader, g);
  } else {
    out_.last.push_back({node, input, update.output});
  }
}

/// A scatter works in the memory of its operand if nobody else reads that; otherwise the operand is copied first.
void Orderer::scatters() {
  out_.scatter_source.assign(grouping_.groups.size(), -1);
  for (size_t g = 0; g < grouping_.groups.size(); ++g) {
    const int node = overlaid(grouping_.groups[g]);
    if (node < 0) continue;
    const int operand = scatter_operand(node);
    if (out_.buffer_owner[static_cast<size_t>(node)] == operand) continue;
    const bool only_reader = readers_[static_cast<size_t>(operand)].size() == 1 && !is_leaf(ir_, operand) &&
                             out_.buffer_owner[static_cast<size_t>(operand)] == operand &&
                             escapes_[static_cast<size_t>(operand)] == 0;
    bool own = out_.buffer_owner[static_cast<size_t>(node)] == node;
    if (only_reader && own && same_address(grouping_.groups[g], node, operand)) {
      own = own && escapes_[static_cast<size_t>(node)] == 0;
      // The result's buffer is the operand's; where the result is an output, the operand is made in the output's
      // buffer.
      out_.buffer_owner[static_cast<size_t>(own ? node : operand)] = own ? operand : node;
    } else {
      bool plain = operand != ir_[node].inputs[0] ||
                   is_row_major(ir_[operand].type.shape, grouping_.strides[static_cast<size_t>(operand)]);
      check(plain, "order", "a scatter's operand is not row-major");
      out_.scatter_source[g] = operand;
    }
  }
}

/// An operand of a group whose memory its root `node` may take over: it lies in the run's own memory as the root does,
/// and everybody else reads it before. Or -1.
int Orderer::overwritten_by(size_t g, int node, const std::vector<bool>& taken) {
  for (int operand : grouping_.groups[g].reads) {
    const auto at = static_cast<size_t>(operand);
    const int producer = grouping_.group_of[at];
    if (producer < 0 || taken[at] || escapes_[at] > 0 || !(ir_[operand].type == ir_[node].type) ||
        grouping_.strides[at] != grouping_.strides[static_cast<size_t>(node)])
      continue;
    const auto& readers = readers_[at];
    if (std::any_of(readers.begin(), readers.end(),
                    [&](int reader) { return reader != static_cast<int>(g) && reaches(static_cast<int>(g), reader); }))
      continue;
    if (same_address(grouping_.groups[g], node, operand)) return operand;
  }
  return -1;
}

/// Large results of maps and rows lie where an array lay that nobody reads behind them: the gradient of logits where
/// the logits were.
void Orderer::overwrite() {
  constexpr int64_t least_bytes = int64_t{1} << 20;
  std::vector<bool> taken(ir_.nodes.size());  // shares its memory with another node already
  for (int id = 0; id < ir_.size(); ++id)
    if (const int owner = out_.buffer_owner[static_cast<size_t>(id)]; owner != id)
      taken[static_cast<size_t>(id)] = taken[static_cast<size_t>(owner)] = true;
  for (const int operand : out_.scatter_source)
    if (operand >= 0) taken[static_cast<size_t>(operand)] = true;
  for (size_t g = 0; g < grouping_.groups.size(); ++g) {
    if (grouping_.groups[g].kind != Group::Kind::rows) continue;
    for (const Root& root : grouping_.groups[g].roots) {
      const auto at = static_cast<size_t>(root.node);
      if (root.kind != RootKind::full || !out_.has_buffer[at] || taken[at] || escapes_[at] > 0 ||
          volume(ir_[root.node].type.shape) * ir_[root.node].type.dtype.size() < least_bytes)
        continue;
      const int operand = overwritten_by(g, root.node, taken);
      if (operand < 0) continue;
      out_.buffer_owner[at] = operand;
      taken[at] = taken[static_cast<size_t>(operand)] = true;
      for (int reader : readers_[static_cast<size_t>(operand)]) {
        if (reader != static_cast<int>(g)) precede(reader, static_cast<int>(g));
      }
    }
  }
}

/// A store with streaming stores saves reading the line that it overwrites, a third of a copy's traffic. It pays where
/// nobody looks at the result before it would have left the caches anyway; an update in place has read its lines
/// already.
void Orderer::streams() {
  constexpr int64_t least_bytes = int64_t{16} << 20;
  out_.streamed.assign(ir_.nodes.size(), false);
  std::vector<bool> used(ir_.nodes.size(), false);
  for (const IrNode& node : ir_.nodes)
    for (int input : node.inputs) used[static_cast<size_t>(input)] = true;
  for (const Group& group : grouping_.groups)
    for (const Root& root : group.roots) {
      auto at = static_cast<size_t>(root.node);
      int64_t bytes = volume(ir_[root.node].type.shape) * ir_[root.node].type.dtype.size();
      out_.streamed[at] =
          group.kind == Group::Kind::rows && out_.buffer_owner[at] == root.node && !used[at] && bytes >= least_bytes;
    }
}

/// Sorts the groups topologically. Of the groups that are ready, the one whose roots come first in the graph runs next.
void Orderer::sort() {
  size_t count = grouping_.groups.size();
  std::vector<size_t> waiting(count);
  std::set<std::pair<int, int>> ready;
  auto make_ready = [&](size_t g) {
    int first = ir_.size();
    for (const Root& root : grouping_.groups[g].roots) first = std::min(first, root.node);
    ready.insert({first, static_cast<int>(g)});
  };
  for (size_t g = 0; g < count; ++g) {
    waiting[g] = before_[g].size();
    if (waiting[g] == 0) make_ready(g);
    out_.after.emplace_back(before_[g].begin(), before_[g].end());
  }
  while (!ready.empty()) {
    int g = ready.begin()->second;
    ready.erase(ready.begin());
    out_.order.push_back(g);
    for (int next : next_[static_cast<size_t>(g)])
      if (--waiting[static_cast<size_t>(next)] == 0) make_ready(static_cast<size_t>(next));
  }
  check(out_.order.size() == count, "order", "groups wait for each other");
}

Ordering Orderer::run(bool reuse) {
  dependences();
  memory();
  for (const Update& u : updates_) update(u);
  scatters();
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
  for (const int g : ordering.order) {
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
    if (ordering.scatter_source[at] >= 0) text += fmt::format(", %{} is copied first", ordering.scatter_source[at]);
    text += "\n";
  }
  for (const Copy& c : ordering.last) text += fmt::format("copy %{} to %{} at the end\n", c.from, c.to);
  return text + fmt::format("{} nodes, {} groups\n", ir.size(), grouping.groups.size());
}

}  // namespace weft::compiler
