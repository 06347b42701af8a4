#include "compiler/plan/step_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weft::compiler {

/// Code that no other group is looked up for.
Lowering StepMaker::alone(Lowered lowered) const {
  auto code = std::make_shared<const Lowered>(std::move(lowered));
  return {code, kernel::digest(code->kernel), code->params};
}

void StepMaker::lower_launch(GroupId g, const Lowering& lowering) {
  Step step;
  step.name = lowering.code->kernel.name;
  step.work = lowering.code->work;
  step.of_user = grouping_.groups[g].kind == Group::Kind::call;
  step.nodes.push_back(lowering.params);
  step.segments.push_back({{}, lowering.code->symbols, lowering.code->grid, lowering.code->count});
  const auto [it, fresh] = kernel_ids_.try_emplace(lowering.digest, plan_.kernels.size());
  step.kernel = it->second;
  if (fresh) {
    plan_.kernels.push_back(lowering.code->kernel);
    plan_.digests.push_back(lowering.digest);
  }
  add(g, std::move(step), &lowering);
}

/// Adds the step of a group, with its work. `lowering`: of a launch.
void StepMaker::add(GroupId g, Step step, const Lowering* lowering) {
  step.groups = {g};
  CodeWork of_group = work(g, step.nodes[0], lowering);
  step.cost = of_group.work.launch;
  step.what = std::move(of_group.work.what);
  for (size_t k = 0; k < of_group.bytes.size(); ++k) step.traffic.push_back({step.nodes[0][k], of_group.bytes[k], {}});
  plan_.steps.push_back(std::move(step));
}

/// Returns the work of a group, with the bytes of each of its buffers by position in the step. `nodes` are owners of
/// buffers or the plan's scratch, which counts no bytes. Groups of one lowering have the same.
StepMaker::CodeWork StepMaker::work(GroupId g, const std::vector<NodeId>& nodes, const Lowering* lowering) {
  const auto compute = [&] {
    CodeWork made{work_of({ir_, grouping_, ordering_.buffer_owner, ordering_.has_buffer}, grouping_.groups[g]), {}};
    for (const NodeId node : nodes) {
      const auto at = made.work.buffers.find(node);
      made.bytes.push_back(at == made.work.buffers.end() ? 0 : std::exchange(at->second, 0));
    }
    return made;
  };
  if (!lowering) return compute();
  const auto [known, fresh] = works_.try_emplace(lowering->code);
  if (fresh) known->second = compute();
  return known->second;
}

void StepMaker::copy(NodeId from, NodeId to) {
  if (bytes(from) == 0) return;  // an array without elements
  Step step;
  step.kind = Step::Kind::copy;
  step.name = fmt::format("copy %{} to %{}", from, to);
  step.bytes = bytes(from);
  const auto moved = static_cast<double>(step.bytes);
  step.cost.bytes = 2 * moved;
  step.traffic = {{from, moved, {}}, {to, moved, {}}};
  step.nodes.push_back({from, to});
  plan_.steps.push_back(std::move(step));
}

void StepMaker::lower(GroupId g) {
  const Group& group = grouping_.groups[g];
  // Nothing to compute: every result is empty.
  if (std::all_of(group.roots.begin(), group.roots.end(),
                  [&](const Root& r) { return volume(ir_[r.node].type.shape) == 0; }))
    return;
  const LowerContext cx = context();
  if (group.kind == Group::Kind::rows) {
    std::optional<Lowering> lowering = memo_.rows(cx, group, tuned_.variants[g].schedule);
    return lower_launch(g, lowering ? *lowering : *memo_.rows(cx, group));
  }
  for (const Root& root : group.roots)
    if (const NodeId from = ordering_.copied_from[root.node]; from >= 0) copy(owner(from), owner(root.node));
  if (group.kind == Group::Kind::call) return group.call.kernel ? launch_kernel(g) : call_routine(g);
  if (group.kind == Group::Kind::attention) {
    if (group.attention.cache >= 0) return lower_launch(g, alone(lower_single_query(cx, group)));
    if (!call_attention(g) && !launch_attention(g)) lower_launch(g, memo_.single_query(cx, group));
    return;
  }
  if (group.kind == Group::Kind::cumulative) return lower_launch(g, alone(lower_cumulative(cx, group)));
  if (group.kind == Group::Kind::dot) {
    if (!call_library(g)) lower_launch(g, memo_.dot(cx, group, tuned_.variants[g].schedule));
    return;
  }
  if (!call_sorted_scatter(g) && !call_table_scatter(g) && !call_scatter_rows(g))
    lower_launch(g, alone(lower_scatter(cx, group)));
}

/// Returns a new buffer of the run that belongs to no node.
NodeId StepMaker::scratch(int64_t bytes) {
  plan_.scratch_bytes[next_pseudo_] = bytes;
  return next_pseudo_++;
}

/// Records the sizes of buffers whose rows are padded (fusion/row_padding.cpp).
void StepMaker::find_padding() {
  for (NodeId id = 0; id < ir_.size(); ++id) {
    if (!grouping_.is_root[id]) continue;
    const graph::Type& type = ir_[id].type;
    const int64_t elements = stored_elements(type.shape, grouping_.strides[id]);
    if (elements > volume(type.shape)) plan_.padded_bytes[id] = elements * type.dtype.size();
  }
}

/// An input that a copy at the end reads, but that is overwritten by then, or that is handed out under its old value,
/// is saved first.
void StepMaker::save_inputs() {
  for (const Copy& c : ordering_.last)
    if (is_leaf(ir_, c.from) && !saved_.contains(c.from)) {
      saved_[c.from] = scratch(bytes(c.from));
      copy(c.from, saved_.at(c.from));
    }
}

/// Finds the buffer that holds each output at the end. An input that is a result, and is overwritten, is copied first.
void StepMaker::find_outputs() {
  const std::set<NodeId> updated = overwritten(ir_, ordering_);
  for (size_t k = 0; k < ir_.outputs.size(); ++k) {
    const NodeId id = ir_.outputs[k], node = output_node(ir_, id);
    OutputPlan out;
    out.strides = node == id ? grouping_.strides[id] : row_major_strides(ir_[id].type.shape);
    const auto update = std::find_if(ordering_.last.begin(), ordering_.last.end(),
                                     [&](const Copy& c) { return c.output == static_cast<int>(k); });
    if (update != ordering_.last.end()) {
      out.buffer = update->to;
    } else if (is_leaf(ir_, node) && updated.contains(node)) {
      out.buffer = scratch(bytes(node));
      copy(node, out.buffer);
    } else {
      out.buffer = owner(node);
    }
    plan_.outputs.push_back(std::move(out));
  }
}

void StepMaker::last_copies() {
  for (const Copy& c : ordering_.last) copy(saved_.contains(c.from) ? saved_.at(c.from) : owner(c.from), c.to);
}

StepPlan StepMaker::run() {
  plan_.tune_ms = tuned_.ms;
  plan_.tuning = tuned_.text;
  find_padding();
  save_inputs();
  find_outputs();
  for (const GroupId g : ordering_.order) lower(g);
  last_copies();
  return std::move(plan_);
}

StepPlan lower_groups(const Ir& ir, const Grouping& grouping, const Ordering& ordering, const TunedGroups& tuned,
                      target::Target& target, const Policy& policy) {
  return StepMaker(ir, grouping, ordering, tuned, target, policy).run();
}

}  // namespace weft::compiler
