#include "compiler/plan/step_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "compiler/plan/arena.h"
#include "compiler/region/kv_append.h"
#include "kernel/sequence.h"

namespace weft::compiler {

namespace {

constexpr int copy_group = -1;  // stands for the group of a copy
constexpr size_t most_joined_insts = 300,
                 most_joined_params = 16;  // of launches that become one: long kernels take long to compile

size_t insts(const kernel::Block& block) {
  size_t n = block.insts.size();
  for (const kernel::Inst& i : block.insts)
    for (const kernel::Block& b : i.blocks) n += insts(b);
  return n;
}

/// A launch of one program, of which another one may become a part. (Parallel loops and products have blocks of their
/// own shape.)
bool is_single(const PendingStep& pending, const std::vector<kernel::Kernel>& kernels) {
  if (pending.step.kind != Step::Kind::launch || pending.step.segments.size() != 1 ||
      pending.step.segments[0].grid != 1)
    return false;
  const std::vector<kernel::Inst>& all = kernels[pending.step.kernel].body.insts;
  return std::none_of(all.begin(), all.end(),
                      [](const kernel::Inst& i) { return i.parallel || i.op == kernel::Op::matmul; });
}

/// Whether a group's products are of 16-bit floats.
bool multiplies_half(const Group& group) {
  switch (group.kind) {
    case Group::Kind::dot:
      return group.dot.desc.a.size() == 2 ||
             is_float8(group.dot.desc.a);  // 8-bit floats are held against the peak of 16-bit ones
    case Group::Kind::attention: return group.attention.q.dtype.size() == 2;
    case Group::Kind::call:
      return group.call.desc.name.starts_with("convolution") && group.call.desc.inputs[0].dtype.size() == 2;
    default: return false;
  }
}

}  // namespace

/// Code that no other group is looked up for.
Lowering StepMaker::alone(Lowered lowered) const {
  auto code = std::make_shared<const Lowered>(std::move(lowered));
  return {code, kernel::digest(code->kernel), code->params};
}

void StepMaker::lower_launch(GroupId g, const Lowering& lowering) {
  PendingStep pending;
  pending.digest = lowering.digest;
  pending.step.name = lowering.code->kernel.name;
  pending.step.work = lowering.code->work;
  pending.groups = {g};
  pending.nodes.push_back(lowering.params);
  pending.step.segments.push_back({{}, lowering.code->symbols, lowering.code->grid});
  code_[g] = lowering.code;
  if (!fills_device(g, lowering.code->kernel) && merge(g, pending)) return;
  auto [it, fresh] = kernel_ids_.try_emplace(pending.digest, plan_.kernels.size());
  if (fresh) plan_.kernels.push_back(lowering.code->kernel);
  pending.step.kernel = it->second;
  position_[g] = static_cast<int>(pending_.size());
  latest_[pending.digest] = static_cast<int>(pending_.size());
  pending_.push_back(std::move(pending));
}

/// Blocks that share the work of a few programs, over much data: with others of its kind it would be no faster, and
/// what it reads would live until the last of them.
bool StepMaker::fills_device(GroupId g, const kernel::Kernel& kernel) const {
  constexpr int64_t much = int64_t{16} << 20;
  int64_t read = 0;
  for (NodeId node : grouping_.groups[g].reads) read += bytes(node);
  return read >= much && std::any_of(kernel.body.insts.begin(), kernel.body.insts.end(),
                                     [](const kernel::Inst& i) { return i.parallel; });
}

/// Sibling fusion: a launch of the same code joins an earlier one, there or here, where no step between them stands in
/// the way. Only results that are kept anyway, or small ones, are moved: others would live longer for it.
bool StepMaker::merge(GroupId g, PendingStep& pending) {
  constexpr int64_t small = 1 << 16;
  auto it = latest_.find(pending.digest);
  if (it == latest_.end() || ordering_.scatter_source[g] >= 0)
    return false;  // a copied operand ties it to its location
  int at = it->second;
  auto movable = [&](GroupId group) {
    const auto& roots = grouping_.groups[group].roots;
    return std::all_of(roots.begin(), roots.end(),
                       [&](const Root& r) { return owner(r.node) != r.node || bytes(r.node) <= small; });
  };
  PendingStep& earlier = pending_[static_cast<size_t>(at)];
  if (!movable(g) || !movable(earlier.groups[0])) return false;
  auto join = [&](PendingStep& into, PendingStep& from) {
    into.step.segments.insert(into.step.segments.end(), from.step.segments.begin(), from.step.segments.end());
    into.nodes.insert(into.nodes.end(), from.nodes.begin(), from.nodes.end());
    into.groups.insert(into.groups.end(), from.groups.begin(), from.groups.end());
    into.step.work += from.step.work;
  };
  int ready = -1;  // the last pending step that this group waits for
  for (int before : ordering_.after[g]) ready = std::max(ready, position_[before]);
  if (ready < at) {
    join(earlier, pending);
    position_[g] = at;
    return true;
  }
  for (int k = at + 1; k < static_cast<int>(pending_.size()); ++k)
    for (GroupId group : pending_[static_cast<size_t>(k)].groups) {
      if (group == copy_group) return false;
      for (int before : ordering_.after[group])
        if (position_[before] == at) return false;
    }
  for (int before : ordering_.after[g])
    if (position_[before] == at) return false;
  pending.step.kernel = earlier.step.kernel;
  join(pending, earlier);
  earlier.groups.clear();  // emptied: dropped at the end
  earlier.step.segments.clear();
  int now = static_cast<int>(pending_.size());
  for (GroupId group : pending.groups) position_[group] = now;
  latest_[pending.digest] = now;
  pending_.push_back(std::move(pending));
  return true;
}

/// `second` becomes a part of the launch before it.
bool StepMaker::follow(PendingStep& first, PendingStep& second) {
  const kernel::Kernel &a = plan_.kernels[first.step.kernel], &b = plan_.kernels[second.step.kernel];
  if (insts(a.body) + insts(b.body) > most_joined_insts || a.params.size() + b.params.size() > most_joined_params)
    return false;
  std::vector<NodeId> nodes = first.nodes[0];
  std::vector<kernel::Ref> params;
  for (size_t k = 0; k < second.nodes[0].size(); ++k) {
    const auto at = static_cast<size_t>(std::find(nodes.begin(), nodes.end(), second.nodes[0][k]) - nodes.begin());
    if (at == nodes.size()) nodes.push_back(second.nodes[0][k]);
    else if (at < a.params.size() && !(a.params[at].dtype == b.params[k].dtype)) return false;
    params.push_back(static_cast<kernel::Ref>(at));
  }
  kernel::Kernel both = kernel::in_sequence(a, b, params);
  auto [it, fresh] = kernel_ids_.try_emplace(kernel::digest(both), plan_.kernels.size());
  first.step.name = both.name;
  first.step.kernel = it->second;
  if (fresh) plan_.kernels.push_back(std::move(both));
  first.step.work += second.step.work;
  StepSegment& segment = first.step.segments[0];
  segment.symbols.insert(segment.symbols.end(), second.step.segments[0].symbols.begin(),
                         second.step.segments[0].symbols.end());
  first.groups.insert(first.groups.end(), second.groups.begin(), second.groups.end());
  first.nodes[0] = std::move(nodes);
  return true;
}

/// On a device to which a launch costs more than what one program does, launches of single programs that follow each
/// other are one.
void StepMaker::join_single_programs() {
  if (!target_.machine().queues_launches()) return;
  std::vector<PendingStep> joined;
  for (PendingStep& pending : pending_) {
    const bool both = !joined.empty() && is_single(joined.back(), plan_.kernels) && is_single(pending, plan_.kernels);
    if (!both || !follow(joined.back(), pending)) joined.push_back(std::move(pending));
  }
  pending_ = std::move(joined);
  drop_unused_kernels();
}

void StepMaker::drop_unused_kernels() {
  std::map<size_t, size_t> kernel_ids;
  std::vector<kernel::Kernel> used;
  for (PendingStep& pending : pending_) {
    if (pending.step.kind != Step::Kind::launch) continue;
    const auto [it, fresh] = kernel_ids.try_emplace(pending.step.kernel, used.size());
    if (fresh) used.push_back(std::move(plan_.kernels[pending.step.kernel]));
    pending.step.kernel = it->second;
  }
  plan_.kernels = std::move(used);
}

void StepMaker::copy(NodeId from, NodeId to) {
  PendingStep pending;
  pending.step.kind = Step::Kind::copy;
  pending.step.name = fmt::format("copy %{} to %{}", from, to);
  pending.step.bytes = from < ir_.size() ? bytes(from) : plan_.scratch_bytes.at(from);
  pending.nodes.push_back({from, to});
  pending.groups = {copy_group};
  pending_.push_back(std::move(pending));
}

void StepMaker::lower(GroupId g) {
  const Group& group = grouping_.groups[g];
  // Nothing to compute: every result is empty.
  if (std::all_of(group.roots.begin(), group.roots.end(),
                  [&](const Root& r) { return volume(ir_[r.node].type.shape) == 0; })) {
    position_[g] = -1;
    return;
  }
  const LowerContext cx = context();
  if (group.kind == Group::Kind::rows) {
    std::optional<Lowering> lowering = memo_.rows(cx, group, variants_[g]);
    return lower_launch(g, lowering ? *lowering : *memo_.rows(cx, group));
  }
  if (group.kind == Group::Kind::call) return call_routine(g);
  if (const int source = ordering_.scatter_source[g]; source >= 0) copy(owner(source), owner(overlaid(group)));
  if (group.kind == Group::Kind::attention) {
    if (group.attention.cache >= 0) return lower_launch(g, alone(lower_attention(cx, group)));
    if (!call_attention(g)) lower_launch(g, memo_.attention(cx, group));
    return;
  }
  if (group.kind == Group::Kind::cumulative) return lower_launch(g, alone(lower_cumulative(cx, group)));
  if (group.kind == Group::Kind::dot) {
    if (!call_library(g)) lower_launch(g, memo_.dot(cx, group));
    return;
  }
  if (!call_scatter_rows(g)) lower_launch(g, alone(lower_scatter(cx, group)));
}

/// An input that a copy at the end reads, but that is overwritten by then, or that is handed out under its old value,
/// is saved first.
void StepMaker::before_copies() {
  next_pseudo_ = ir_.size();
  for (const Copy& c : ordering_.last)
    if (is_leaf(ir_, c.from) && !saved_.contains(c.from)) {
      saved_[c.from] = next_pseudo_;
      plan_.scratch_bytes[next_pseudo_] = bytes(c.from);
      copy(c.from, next_pseudo_++);
    }
}

void StepMaker::last_copies() {
  for (const Copy& c : ordering_.last) copy(saved_.contains(c.from) ? saved_.at(c.from) : owner(c.from), c.to);
}

/// Nodes whose memory a step writes although it was given with a value.
std::set<NodeId> StepMaker::updated_inputs() const {
  std::set<NodeId> updated;
  for (const Copy& c : ordering_.last) updated.insert(c.to);
  for (NodeId id = 0; id < ir_.size(); ++id)
    if (owner(id) != id) updated.insert(owner(id));
  return updated;
}

/// Parameters that are bound to nothing but inputs which no step writes: a device may look at them before the step
/// before has ended. So it may at what only later steps write, which is said of single numbers (the position of a
/// token) and of the cache that attention enters its row into.
void StepMaker::mark_constants() {
  if (!target_.machine().queues_launches()) return;
  std::set<int> written, so_far;
  for (NodeId node : updated_inputs())
    if (const auto it = plan_.locations.find(node); it != plan_.locations.end() && it->second.in == Location::In::input)
      written.insert(it->second.index);
  for (kernel::Kernel& kernel : plan_.kernels)
    for (kernel::Param& p : kernel.params) p.constant = true;
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    const Step& step = plan_.steps[s];
    const GroupId g = pending_[s].groups[0];
    const bool appends_row = g != copy_group && grouping_.groups[g].kind == Group::Kind::attention;
    std::set<int> now;  // inputs that this step writes
    for (const StepSegment& segment : step.segments)
      for (size_t k = 0; k < segment.buffers.size(); ++k) {
        kernel::Param& p = plan_.kernels[step.kernel].params[k];
        const Location& at = segment.buffers[k];
        const bool input = at.in == Location::In::input, late = so_far.contains(at.index);
        if (input && p.written) now.insert(at.index);
        const bool is_scalar = input && volume(ir_[ir_.inputs[static_cast<size_t>(at.index)]].type.shape) == 1;
        p.constant = p.constant && input &&
                     (p.written ? appends_row && !late : !written.contains(at.index) || (is_scalar && !late));
      }
    for (const Location& at : step.operands)
      if (at.in == Location::In::input && written.contains(at.index)) now.insert(at.index);
    so_far.merge(now);
  }
}

void StepMaker::assign_outputs() {
  for (size_t k = 0; k < ir_.inputs.size(); ++k)
    plan_.locations[ir_.inputs[k]] = {Location::In::input, static_cast<int>(k), 0};
  const std::set<NodeId> updated = updated_inputs();
  for (size_t k = 0; k < ir_.outputs.size(); ++k) {
    NodeId id = ir_.outputs[k], node = output_node(ir_, id);
    OutputPlan out;
    out.strides = node == id ? grouping_.strides[id] : row_major_strides(ir_[id].type.shape);
    auto update = std::find_if(ordering_.last.begin(), ordering_.last.end(),
                               [&](const Copy& c) { return c.output == static_cast<int>(k); });
    int at = owner(node);
    if (update != ordering_.last.end()) {
      out.location = plan_.locations.at(update->to);
    } else if (is_leaf(ir_, node) && updated.contains(node)) {
      out.owns = true;
      out.bytes = bytes(node);
      out.location = {Location::In::output, static_cast<int>(k), 0};
      plan_.locations[next_pseudo_] = out.location;
      plan_.scratch_bytes[next_pseudo_] = out.bytes;
      copy(node, next_pseudo_++);
    } else if (auto it = plan_.locations.find(at); it != plan_.locations.end()) {
      out.location = it->second;
      if (out.location.in == Location::In::output) out.same_as = out.location.index;
    } else {
      out.owns = true;
      out.bytes = bytes(at);
      out.location = plan_.locations[at] = {Location::In::output, static_cast<int>(k), 0};
    }
    plan_.outputs.push_back(std::move(out));
  }
}

void StepMaker::plan_arena() {
  std::map<NodeId, Lifetime> lifetimes;
  for (size_t s = 0; s < pending_.size(); ++s)
    for (const auto& segment : pending_[s].nodes)
      for (NodeId node : segment) {
        if (plan_.locations.contains(node)) continue;
        int64_t size = node < ir_.size() ? bytes(node) : plan_.scratch_bytes.at(node);
        auto [it, fresh] = lifetimes.try_emplace(
            node, Lifetime{std::max<int64_t>(size, 1), static_cast<int>(s), static_cast<int>(s), -1});
        it->second.first = std::min(it->second.first, static_cast<int>(s));
        it->second.last = std::max(it->second.last, static_cast<int>(s));
      }
  std::vector<Lifetime> list;
  for (const auto& [node, lifetime] : lifetimes) list.push_back(lifetime);
  plan_.live_bytes = live_bytes(list);
  plan_.arena_bytes = weft::compiler::assign_offsets(list);
  size_t k = 0;
  for (const auto& [node, lifetime] : lifetimes) plan_.locations[node] = {Location::In::arena, 0, list[k++].offset};
}

Location StepMaker::location(NodeId node) const {
  auto it = plan_.locations.find(node);
  check(it != plan_.locations.end(), "steps", "a buffer was not placed");
  return it->second;
}

/// Groups of one lowering cost the same.
Cost StepMaker::cost(GroupId g) {
  const Group& group = grouping_.groups[g];
  const Lowered* code = code_[g].get();
  if (!code) return cost_of(context(), group);
  const auto [known, fresh] = costs_.try_emplace(code);
  if (fresh) known->second = cost_of(context(), group);
  return known->second;
}

void StepMaker::add_costs(const PendingStep& pending, Step& step) {
  if (step.kind == Step::Kind::copy) step.traffic = 2.0 * static_cast<double>(step.bytes);
  for (const GroupId g : pending.groups) {
    if (g == copy_group) continue;
    const Group& group = grouping_.groups[g];
    const Cost of_group = cost(g);
    step.traffic += of_group.bytes;
    step.flops += of_group.flops;
    if (step.what.empty()) step.what = of_group.what;
    step.half = step.half || multiplies_half(group);
  }
}

StepPlan StepMaker::run() {
  TunedGroups tuned = tune_groups(context(), grouping_, ordering_.order, memo_, policy_);
  variants_ = std::move(tuned.variants);
  plan_.tune_ms = tuned.ms;
  plan_.tuning = std::move(tuned.text);
  before_copies();
  assign_outputs();
  for (GroupId g : ordering_.order) lower(g);
  last_copies();
  std::erase_if(pending_, [](const PendingStep& d) { return d.groups.empty(); });
  join_single_programs();
  plan_arena();
  for (PendingStep& pending : pending_) {
    Step step = std::move(pending.step);
    for (size_t s = 0; s < step.segments.size(); ++s)
      for (NodeId node : pending.nodes[s]) step.segments[s].buffers.push_back(location(node));
    if (step.kind != Step::Kind::copy) step.groups = pending.groups;
    if (step.segments.empty())
      for (size_t k = 0; k < pending.nodes[0].size(); ++k) {
        step.operands.push_back(location(pending.nodes[0][k]));
        if (k < pending.offsets.size()) step.operands.back().offset += pending.offsets[k];
      }
    add_costs(pending, step);
    step.nodes = std::move(pending.nodes);
    plan_.steps.push_back(std::move(step));
  }
  mark_constants();
  return std::move(plan_);
}

namespace {

std::string to_string(const Location& p) {
  static constexpr const char* in[] = {"input", "output", "arena"};
  if (p.in == Location::In::arena) return fmt::format("arena+{}", p.offset);
  return fmt::format("{}{}{}", in[static_cast<int>(p.in)], p.index, p.offset ? fmt::format("+{}", p.offset) : "");
}

}  // namespace

std::string print(const StepPlan& plan) {
  std::string text =
      fmt::format("arena {} bytes ({} alive), {} kernels\n", plan.arena_bytes, plan.live_bytes, plan.kernels.size());
  for (const Step& step : plan.steps) {
    text += step.call ? fmt::format("{} by {}", step.name, step.call->name()) : step.name;
    if (step.segments.size() > 1) text += fmt::format(" ({} segments)", step.segments.size());
    for (const Location& location : step.segments.empty() ? step.operands : step.segments[0].buffers)
      text += " " + to_string(location);
    if (!step.segments.empty()) text += fmt::format(" grid {}", step.segments[0].grid);
    text += "\n";
  }
  return text;
}

StepPlan make_steps(const Ir& ir, const Grouping& grouping, const Ordering& ordering, target::Target& target,
                    const Policy& policy) {
  return StepMaker(ir, grouping, ordering, target, policy).run();
}

}  // namespace weft::compiler
