#include "compiler/schedule/steps/values.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "compiler/rewrite/framed_sums.h"
#include "compiler/schedule/concat_parts.h"
#include "compiler/schedule/rows.h"
#include "compiler/schedule/steps/loops.h"
#include "graph/table.h"

namespace weft::compiler {

using graph::Op;
using schedule::Kind;
using schedule::Step;
using schedule::Steps;

namespace {

const Step* find_step(const Steps& steps, Kind kind) {
  const auto found = std::ranges::find(steps.list(), kind, &Step::kind);
  return found == steps.list().end() ? nullptr : &*found;
}

[[noreturn]] void refuse_step(const Step& step, const std::string& what) {
  throw_invalid("schedule", schedule::to_string(step) + ": " + what);
}

bool says_where(Kind kind) { return kind == Kind::compute_root || kind == Kind::inlined || kind == Kind::compute_at; }

/// Returns the step that says where the value is computed; null: none does.
const Step* placement(const Steps& steps) {
  const Step* found = nullptr;
  for (const Step& step : steps.list()) {
    if (!says_where(step.kind)) continue;
    if (found) refuse_step(step, fmt::format("{} says already where the value is computed", to_string(*found)));
    found = &step;
  }
  return found;
}

/// Returns whether steps name axes of a kernel of rows. The value then has a kernel that no reader is in, so that these
/// are its own.
bool names_domain(const Steps& steps) {
  const auto is_own = [](const std::string& name) {
    return name.size() > 1 && (name[0] == 'd' || name[0] == 'r' || name[0] == 'c') &&
           name.find_first_not_of("0123456789", 1) == std::string::npos;
  };
  return std::ranges::any_of(steps.list(), [&](const Step& step) {
    return divides_loops(step.kind) && std::ranges::any_of(step.axes, is_own);
  });
}

}  // namespace

Ir place_scheduled_values(Ir ir) {
  for (const ScheduledValue& value : ir.scheduled) {
    const Step* const step = placement(value.steps);
    IrNode& node = ir.nodes[value.node];
    if (!step && names_domain(value.steps) && !is_leaf(ir, value.node)) node.compute = Compute::root;
    if (!step) continue;
    if (is_leaf(ir, value.node)) refuse_step(*step, "the value is an input, which is in memory");
    const bool elementwise = is_elementwise(node.op) || is_movement(node.op) || node.op == Op::gather ||
                             node.op == Op::constant || node.op == Op::iota || node.op == Op::random_bits;
    if (step->kind == Kind::inlined && !elementwise)
      refuse_step(*step, fmt::format("{} has a result of its own, which is stored: compute_at joins its kernel to "
                                     "another one's",
                                     graph::row(node.op).name));
    if (step->kind == Kind::compute_at && !elementwise && node.op != Op::reduce)
      refuse_step(*step, fmt::format("{} has a kernel of its own", graph::row(node.op).name));
    node.compute = step->kind == Kind::compute_root ? Compute::root : Compute::where_read;
  }
  return ir;
}

namespace {

/// Returns whether a value is computed from a node that is `wanted` through elementwise operators and movements, and at
/// most one product: that of attention's weights and values.
template <class F>
bool made_of(const Ir& ir, NodeId value, F wanted) {
  std::vector<std::pair<NodeId, bool>> pending{{value, false}};  // whether a product was passed
  std::set<NodeId> seen{value};
  while (!pending.empty()) {
    const auto [id, passed] = pending.back();
    pending.pop_back();
    const IrNode& n = ir[id];
    if (wanted(id)) return true;
    const bool product = n.op == Op::dot;
    if (product ? passed : !is_elementwise(n.op) && !is_movement(n.op)) continue;
    for (const NodeId input : n.inputs)
      if (seen.insert(input).second) pending.emplace_back(input, passed || product);
  }
  return false;
}

}  // namespace

std::optional<bool> wants_single_pass(const Ir& ir, NodeId sum) {
  for (const ScheduledValue& value : ir.scheduled)
    if (const Step* const step = find_step(value.steps, Kind::online_softmax))
      if (made_of(ir, value.node, [&](NodeId id) { return id == sum; })) return step->word == "on";
  return {};
}

void check_single_pass(const Ir& ir) {
  if (ir.scheduled.empty()) return;
  std::set<NodeId> sums;
  for (const FramedSum& found : framed_sums(ir)) sums.insert(found.sum);
  for (const ScheduledValue& value : ir.scheduled) {
    const Step* const step = find_step(value.steps, Kind::online_softmax);
    if (!step) continue;
    const auto taken = [&](NodeId id) {
      return is_attention(ir[id]) || sums.contains(id) || (ir[id].op == Op::reduce && has_results(ir[id]));
    };
    if (!made_of(ir, value.node, taken))
      refuse_step(*step, "the value is made of no softmax: of no sum of exp(x - max x), nor of attention");
  }
}

namespace {

/// Returns by group the values that it computes: roots, and what is between them and what the group reads.
std::map<NodeId, std::vector<GroupId>> groups_of_values(const Ir& ir, const Grouping& grouping) {
  std::map<NodeId, std::vector<GroupId>> out;
  for (GroupId g = 0; g < grouping.groups.count(); ++g) {
    std::set<NodeId> own, seen;
    std::vector<NodeId> pending;
    for (const Root& root : grouping.groups[g].roots) own.insert(root.node), pending.push_back(root.node);
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      if (is_leaf(ir, id) || (grouping.is_root[id] && !own.contains(id)) || !seen.insert(id).second) continue;
      out[id].push_back(g);
      pending.insert(pending.end(), ir[id].inputs.begin(), ir[id].inputs.end());
    }
  }
  return out;
}

/// Returns the steps that concern the kernel of a value.
Steps of_kernel(const Steps& steps) {
  std::vector<Step> out;
  for (const Step& step : steps.list())
    if (divides_loops(step.kind) || step.kind >= Kind::tensorize) out.push_back(step);
  return Steps(std::move(out));
}

class ScheduledGroups {
 public:
  ScheduledGroups(const Ir& ir, const Grouping& grouping)
      : ir_(ir), grouping_(grouping), computed_(groups_of_values(ir, grouping)) {
    for (const ScheduledValue& value : ir.scheduled)
      if (const Step* const step = find_step(value.steps, Kind::name)) named_.emplace(step->axes[0], value.node);
  }

  std::vector<GroupSteps> run() {
    for (const ScheduledValue& value : ir_.scheduled) {
      if (const Step* const step = placement(value.steps)) check_placement(*step, value.node);
      if (const Steps steps = of_kernel(value.steps); !steps.empty()) give(steps, value.node);
    }
    return std::move(out_);
  }

 private:
  void check_placement(const Step& step, NodeId node) const {
    if (step.kind == Kind::inlined && grouping_.is_root[node])
      refuse_step(step, "the value is stored: an output, an operand of a product or of a routine, or read by a gather");
    if (step.kind != Kind::compute_at) return;
    const auto other = named_.find(step.axes[0]);
    if (named_.count(step.axes[0]) > 1) refuse_step(step, "two values have this name: choose another one");
    if (other == named_.end()) refuse_step(step, fmt::format("no value is named {}: name one", step.axes[0]));
    const std::vector<GroupId>& here = groups_of(node);
    for (const GroupId g : groups_of(other->second))
      if (std::ranges::find(here, g) == here.end())
        refuse_step(step, fmt::format("the kernel of {} cannot compute the value: it is no function of a point, or a "
                                      "row, of that kernel's domain, or another kernel reads it first",
                                      step.axes[0]));
  }

  const std::vector<GroupId>& groups_of(NodeId node) const {
    static const std::vector<GroupId> none;
    const auto found = computed_.find(node);
    return found == computed_.end() ? none : found->second;
  }

  void give(const Steps& steps, NodeId node) {
    const std::vector<GroupId>& groups = groups_of(node);
    if (groups.size() != 1)
      refuse_step(steps.list()[0], groups.empty()
                                       ? "no kernel computes the value: it is an input, or a view of one"
                                       : fmt::format("{} kernels compute the value, where they read it: store it by "
                                                     "compute_root, or give the steps to one of the readers",
                                                     groups.size()));
    for (const GroupSteps& known : out_)
      if (known.group == groups[0]) {
        if (known.steps == steps) return;
        refuse_step(steps.list()[0], fmt::format("the kernel of this value has steps from another one of its values, "
                                                 "{}: give them to one value",
                                                 to_string(known.steps)));
      }
    out_.push_back({groups[0], steps});
  }

  const Ir& ir_;
  const Grouping& grouping_;
  std::map<NodeId, std::vector<GroupId>> computed_;
  std::multimap<std::string, NodeId> named_;
  std::vector<GroupSteps> out_;
};

}  // namespace

std::vector<GroupSteps> scheduled_groups(const Ir& ir, const Grouping& grouping) {
  if (ir.scheduled.empty()) return {};
  return ScheduledGroups(ir, grouping).run();
}

std::string axes_text(const Ir& ir, const Grouping& grouping, const Group& group, const target::Target& target) {
  Group own = group.copy();
  split_at_reads(ir, grouping, own, target);
  return to_string(axes_of(own));
}

Schedule schedule_rows_by(const Steps& steps, const Ir& ir, const Grouping& grouping, const Group& group,
                          target::Target& target) {
  for (const Step& step : steps.list())
    if (!divides_loops(step.kind))
      refuse_step(step,
                  "the value is computed by a kernel of rows, which copies and launches as the compiler chooses: "
                  "the step is one of products, attention and users' kernels");
  Group own = group.copy();
  split_at_reads(ir, grouping, own, target);
  const int cut = names_cut(steps) ? cut_at_concats(ir, grouping, own, target.machine()) : -1;
  const std::vector<NamedAxis> axes = axes_of(own, cut);
  Schedule out = schedule_by_steps(steps, axes);
  Group again = group.copy();
  split_at_reads(ir, grouping, again, target);
  if (const std::string why = apply(out, ir, grouping, again, target); !why.empty())
    throw_invalid("schedule", fmt::format("{}: {}; the steps give {} from the axes {}", schedule::to_string(steps), why,
                                          to_string(out), to_string(axes)));
  return out;
}

namespace {

/// Returns the schedule without parts of one element that its form does not need: the same kernel in fewer words.
Schedule without_single_parts(Schedule s) {
  std::erase_if(s.lanes.parts, [](const AxisPart& p) { return p.count == 1 && p.level != Level::lanes; });
  std::erase_if(s.loop.parts, [](const AxisPart& p) { return p.count == 1 && p.level == Level::warps; });
  return s;
}

}  // namespace

Steps steps_of_rows(const std::optional<Schedule>& given, const Ir& ir, const Grouping& grouping, const Group& group,
                    target::Target& target) {
  Group own = group.copy();
  split_at_reads(ir, grouping, own, target);
  Group cut = own.copy();
  const Schedule chosen = given ? *given : schedule_rows(ir, grouping, cut, target);
  const int at = chosen.cut.axes.empty() ? -1 : cut_at_concats(ir, grouping, own, target.machine());
  return steps_of(without_single_parts(chosen), axes_of(own, at));
}

}  // namespace weft::compiler
