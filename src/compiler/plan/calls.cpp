// Groups that are no launches: products and attention that a library takes, routines, control flow.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "compiler/plan/kernel_sequence.h"
#include "compiler/plan/step_maker.h"
#include "compiler/region/attention_call.h"
#include "compiler/region/attention_plan.h"
#include "compiler/region/dot_plan.h"
#include "compiler/rewrite/sort_scatter.h"
#include "graph/calls/kernel_call.h"
#include "kernel/derive/rows.h"
#include "kernel/op_info.h"

namespace weft::compiler {

bool StepMaker::call_library(GroupId g) {
  const DotPlan& plan = grouping_.groups[g].dot;
  if (tuned_.variants[g].schedule) return false;
  Step step;
  step.call = plan.library;
  if (!step.call) return false;
  step.kind = Step::Kind::library;
  step.name = plan.to_string();
  step.work = plan.desc.flops();
  std::vector<NodeId> nodes;
  for (const auto& [node, offset] : library_operands(ir_, plan, grouping_.groups[g].roots[0].node)) {
    nodes.push_back(owner(node));
    step.offsets.push_back(offset);
  }
  step.nodes.push_back(std::move(nodes));
  add(g, std::move(step));
  return true;
}

bool StepMaker::call_attention(GroupId g) {
  if (const AttentionPlan& plan = grouping_.groups[g].attention; plan.join || plan.splits > 0 || plan.cache >= 0)
    return false;
  if (!policy_.libraries || !target::libraries_enabled() || tuned_.variants[g].schedule) return false;
  const std::optional<AttentionCall> call = attention_call(grouping_.groups[g].attention, policy_.numerics);
  Step step;
  if (!call || !(step.call = target_.attention(call->desc))) return false;
  step.kind = Step::Kind::library;
  step.name = call->desc.to_string();
  step.work = call->desc.flops();
  step.nodes.emplace_back();
  for (const AttentionCall::Operand& operand : call->operands) {
    step.nodes[0].push_back(operand.node >= 0 ? owner(operand.node) : scratch(operand.bytes));
    step.offsets.push_back(operand.offset);
  }
  add(g, std::move(step));
  return true;
}

/// Adds the step of attention by the kernels of src/kernels.
bool StepMaker::launch_attention(GroupId g) {
  if (!takes_tiled_attention(grouping_.groups[g].attention, target_.machine(), policy_.numerics)) return false;
  const AttentionPlan& plan = grouping_.groups[g].attention;
  add_routine(g, lower_tiled_attention(context(), grouping_.groups[g], policy_.numerics, tuned_.variants[g].schedule),
              plan.region.derivative ? "attention_vjp" : "attention");
  return true;
}

void StepMaker::call_routine(GroupId g) {
  const CallPlan& plan = grouping_.groups[g].call;
  Step step;
  if (plan.control) step.program = make_nested(plan.op, plan.control, target_, policy_);
  else step.call = target_.call(plan.desc);
  if (!step.call && !step.program)
    throw_invalid(plan.desc.name, "this device has no routine for " + plan.desc.to_string() +
                                      ": compute it on another one (weft doctor says which libraries were found)");
  step.kind = plan.control ? Step::Kind::nested : Step::Kind::library;
  step.name = plan.desc.to_string();
  std::vector<NodeId> nodes;
  for (NodeId operand : plan.operands) nodes.push_back(owner(operand));
  for (size_t k = 0; k < plan.results.size(); ++k) {
    const kernel::CallDesc::Array& result = plan.desc.outputs[k];
    int64_t size = result.dtype.size();
    for (int64_t n : result.extents) size *= n;
    nodes.push_back(plan.results[k] >= 0 ? owner(plan.results[k]) : scratch(size));
  }
  if (step.program && step.program->scratch_bytes() > 0) nodes.push_back(scratch(step.program->scratch_bytes()));
  step.nodes.push_back(std::move(nodes));
  add(g, std::move(step));
}

namespace {

/// Returns whether a block reads a parameter.
bool reads_parameter(const kernel::Block& block, kernel::Ref ref) {
  return std::any_of(block.insts.begin(), block.insts.end(), [&](const kernel::Inst& inst) {
    const kernel::Access access = kernel::info(inst.op).access;
    if (inst.ref == ref && (access == kernel::Access::reads || access == kernel::Access::updates)) return true;
    return std::any_of(inst.blocks.begin(), inst.blocks.end(),
                       [&](const kernel::Block& inner) { return reads_parameter(inner, ref); });
  });
}

/// Makes the stores to a parameter streaming stores.
void stream_stores(kernel::Block& block, kernel::Ref ref) {
  for (kernel::Inst& inst : block.insts) {
    if (inst.op == kernel::Op::store && inst.ref == ref) inst.streaming = true;
    for (kernel::Block& inner : inst.blocks) stream_stores(inner, ref);
  }
}

/// Returns an atomic addition of floats of a block; null: there is none.
const kernel::Inst* float_addition(const kernel::Block& block) {
  for (const kernel::Inst& inst : block.insts) {
    if (inst.op == kernel::Op::atomic && inst.scalar_op == kernel::ScalarOp::add && is_float(inst.type.dtype))
      return &inst;
    for (const kernel::Block& inner : inst.blocks)
      if (const kernel::Inst* found = float_addition(inner)) return found;
  }
  return nullptr;
}

/// Refuses a kernel whose sums depend on the order in which its programs come.
void check_order(const kernel::Kernel& kernel) {
  const kernel::Inst* inst = float_addition(kernel.body);
  if (!inst) return;
  const kernel::SourceLine& at = kernel.lines[static_cast<size_t>(inst->line)];
  throw_invalid(
      "kernel " + kernel.name,
      fmt::format("{}atomic: programs add {} in no order, so that two runs may differ in bits: add in an order "
                  "(a sequential axis of the grid, k::Order::sequential, and +=; or store parts and sum "
                  "them), or allow it by set_numerics({{.deterministic = false}})",
                  at.line > 0 ? fmt::format("{}:{}: ", at.file, at.line) : "", dtype_name(inst->type.dtype)));
}

/// Returns a launch whose programs run `count` of those given, one after another.
Lowered joined(Lowered lowered, int64_t count) {
  using kernel::Length, kernel::ScalarOp;
  const Length programs = lowered.count ? lowered.count : Length::number(lowered.grid);
  lowered.kernel = kernel::with_joined_programs(lowered.kernel, count, programs);
  lowered.grid = (lowered.grid + count - 1) / count;
  if (lowered.count)
    lowered.count =
        Length::apply(ScalarOp::floordiv, Length::apply(ScalarOp::add, lowered.count, Length::number(count - 1)),
                      Length::number(count));
  return lowered;
}

}  // namespace

/// Adds the launch of a user's kernel. In-out arrays hold what they begin as already; one whose result nobody reads has
/// a copy of its own.
void StepMaker::launch_kernel(GroupId g) {
  const CallPlan& plan = grouping_.groups[g].call;
  const graph::KernelProgram& program = tuned_.kernels[g] ? *tuned_.kernels[g] : *plan.kernel;
  if (policy_.numerics.deterministic) check_order(program.kernel);
  Lowered lowered{program.kernel, {}, {}, program.grid, program.count, program.work.operations + program.work.products};
  for (const Symbol* s : program.symbols) lowered.symbols.push_back({0, s});
  if (const std::string& config = tuned_.variants[g].config; !config.empty()) lowered.kernel.name += ' ' + config;
  size_t next_operand = 0, next_result = 0;
  for (const graph::KernelArray& array : program.arrays) {
    const NodeId operand = array.use != graph::KernelUse::out ? plan.operands[next_operand++] : NodeId{};
    const int64_t size = num_elements(array.type.shape) * array.type.dtype.size();
    lowered.work += static_cast<double>(size);
    if (array.use == graph::KernelUse::in) {
      lowered.params.push_back(owner(operand));
      continue;
    }
    const NodeId result = plan.results[next_result++];
    lowered.params.push_back(result >= 0 ? owner(result) : scratch(size));
    if (result < 0 && operand >= 0) copy(owner(operand), lowered.params.back());
    const auto ref = static_cast<kernel::Ref>(lowered.params.size() - 1);
    const bool streams = result >= 0 && ordering_.streamed[result];
    if (streams && !reads_parameter(lowered.kernel.body, ref)) stream_stores(lowered.kernel.body, ref);
  }
  if (!target_.machine().simt)
    if (const int64_t count = kernel::programs_to_join(lowered.kernel, lowered.grid); count > 1) {
      lowered = joined(std::move(lowered), count);
    }
  lower_launch(g, alone(std::move(lowered)));
}

/// The result's memory holds what is added to already.
bool StepMaker::call_scatter_rows(GroupId g) {
  const Group& group = grouping_.groups[g];
  if (!group.scatter_rows) return false;
  const NodeId node = group.roots[0].node;
  for (const NodeId id : {node, group.scatter_rows->ids, group.scatter_rows->updates})
    if (!is_row_major(ir_[id].type.shape, grouping_.strides[id])) return false;
  Step step;
  step.call = target_.call(group.scatter_rows->desc);
  if (!step.call) return false;
  step.kind = Step::Kind::library;
  step.name = group.scatter_rows->desc.to_string();
  step.nodes.push_back({owner(group.scatter_rows->ids), owner(group.scatter_rows->updates), owner(node)});
  add(g, std::move(step));
  return true;
}

/// Adds the step of a scatter whose ids are sorted. The result's memory holds what is added to already.
bool StepMaker::call_sorted_scatter(GroupId g) {
  const Group& group = grouping_.groups[g];
  const NodeId node = group.roots[0].node;
  if (!ir_[node].sorted || !is_row_major(ir_[node].type.shape, grouping_.strides[node])) return false;
  add_routine(g, lower_sorted_scatter(context(), group));
  return true;
}

/// Adds the step of a scatter by tables. The result's memory holds what is added to already.
bool StepMaker::call_table_scatter(GroupId g) {
  const Group& group = grouping_.groups[g];
  const NodeId node = group.roots[0].node;
  if (!fits_tables(ir_, node, target_.machine()) || !is_row_major(ir_[node].type.shape, grouping_.strides[node]))
    return false;
  add_routine(g, lower_table_scatter(context(), group));
  return true;
}

/// Adds the step of kernels that share buffers of their own, by the name of the first if none is given.
void StepMaker::add_routine(GroupId g, LoweredRoutine lowered, std::string name) {
  Step step;
  step.name = name.empty() ? lowered.routine.kernels[0].name : std::move(name);
  step.kind = Step::Kind::library;
  step.nodes.push_back(std::move(lowered.operands));
  step.lengths = std::move(lowered.lengths);
  for (const int64_t bytes : lowered.routine.scratch) step.nodes[0].push_back(scratch(bytes));
  step.call = kernel_sequence(std::move(lowered.routine), target_);
  add(g, std::move(step));
}

}  // namespace weft::compiler
