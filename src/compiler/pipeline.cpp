#include "compiler/pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>

#include "base/error.h"
#include "base/overloaded.h"
#include "compiler/fusion/group.h"
#include "compiler/fusion/rematerialize.h"
#include "compiler/fusion/verify.h"
#include "compiler/layout/reduction_order.h"
#include "compiler/plan/passes.h"
#include "compiler/plan/verify.h"
#include "compiler/region/attention_call.h"
#include "compiler/region/library_calls.h"
#include "compiler/region/matmul_operands.h"
#include "compiler/rewrite/gemv.h"
#include "compiler/rewrite/reduction_algebra.h"
#include "compiler/rewrite/simplify.h"
#include "compiler/rewrite/small_convolution.h"
#include "compiler/rewrite/sort_scatter.h"
#include "compiler/rewrite/sort_window.h"
#include "compiler/schedule/single_pass.h"
#include "compiler/schedule/splits.h"
#include "compiler/schedule/steps/values.h"
#include "compiler/user_kernels/elementwise.h"
#include "runtime/trace.h"
#include "target/machine.h"

namespace weft::compiler {

namespace {

using target::Machine;

// ---------------------------------------------------------------- when a pass applies

bool always(const Machine&, const Policy&) { return true; }
bool on_gpu(const Machine& machine, const Policy&) { return machine.simt; }
bool on_gpu_without_clusters(const Machine& machine, const Policy&) { return machine.simt && machine.cluster == 1; }
bool where_launches_queue(const Machine& machine, const Policy&) { return machine.queues_launches(); }
bool with_memory_budget(const Machine&, const Policy& policy) { return policy.memory_budget != INT64_MAX; }

// ---------------------------------------------------------------- the table

constexpr Pass table[] = {
    {"import", "first: regions that the target answers whole stay calls, all others are inlined", always,
     [](const PassContext& cx) {
       return import(cx.source, [&](const graph::Node& region) {
         return keeps_attention(region, cx.target, cx.policy) || library_takes_region(region, cx.target, cx.policy);
       });
     }},
    {"simplify", "before all other rewrites: they match one form of each expression, and equal nodes are one node",
     always, [](Ir ir, const PassContext&) { return simplify(std::move(ir)); }},
    {"dead_code", "simplify leaves the nodes that it replaced; from here on a reader is one that counts", always,
     [](Ir ir, const PassContext&) { return eliminate_dead_code(std::move(ir)); }},
    {"kernel_elementwise", "after dead_code: an operator moves into a kernel where nobody else reads", always,
     [](Ir ir, const PassContext&) { return fuse_into_kernels(std::move(ir)); }},
    {"reduction_order",
     "after simplify, by which permutes are one; before all that asks whether a reduction runs along rows", on_gpu,
     [](Ir ir, const PassContext&) { return reductions_in_memory_order(std::move(ir)); }},
    {"sort_window", "after dead_code: what nobody reads would widen a window", always,
     [](Ir ir, const PassContext&) { return narrow_sorts(std::move(ir)); }},
    {"plain_operands", "after simplify, which would remove the copies it makes as movements that move nothing", always,
     [](Ir ir, const PassContext&) { return with_plain_operands(std::move(ir)); }},
    {"sort_scatter", "after simplify, by which equal ids are one node, and after sort_window: its sorts are read whole",
     on_gpu, [](Ir ir, const PassContext& cx) { return sort_scatters(std::move(ir), cx.target, cx.policy.numerics); }},
    {"pack_attention", "only libraries take the attention that is left, and they want whole rows in memory", on_gpu,
     [](Ir ir, const PassContext&) { return pack_attention_operands(std::move(ir)); }},
    {"small_convolution", "before reductions are cut: its weight gradients are sums down columns", on_gpu,
     [](Ir ir, const PassContext&) { return small_convolution(std::move(ir)); }},
    {"join_reductions", "before reduction_algebra, which matches whole sums, whatever steps a graph sums in", on_gpu,
     [](Ir ir, const PassContext&) { return join_reductions(std::move(ir)); }},
    {"dead_code", "reduction_algebra asks who else reads a value", on_gpu,
     [](Ir ir, const PassContext&) { return eliminate_dead_code(std::move(ir)); }},
    {"reduction_algebra", "before reductions are cut, after all that makes them", on_gpu,
     [](Ir ir, const PassContext&) { return reduction_algebra(std::move(ir)); }},
    {"dead_code", "split_reduction asks who else reads a value", on_gpu,
     [](Ir ir, const PassContext&) { return eliminate_dead_code(std::move(ir)); }},
    {"single_pass", "before split_reduction, which splits the joined reductions as any other", always,
     [](Ir ir, const PassContext& cx) {
       check_single_pass(ir);
       return single_pass_reductions(std::move(ir), cx.target, wants_single_pass);
     }},
    {"split_cumulative", "before split_reduction, which may cut the sums of its chunks", on_gpu,
     [](Ir ir, const PassContext&) { return split_cumulative(std::move(ir)); }},
    {"split_reduction", "after every pass that makes or matches whole reductions", always,
     [](Ir ir, const PassContext& cx) {
       return split_reductions(split_scheduled_reductions(std::move(ir)), cx.target);
     }},
    {"gemv", "after split_reduction: its sums fill the device by their rows and stay whole", on_gpu,
     [](Ir ir, const PassContext&) { return gemv(std::move(ir)); }},
    {"dead_code", "fusion counts the readers of each node", on_gpu,
     [](Ir ir, const PassContext&) { return eliminate_dead_code(std::move(ir)); }},
    {"split_dot", "after split_reduction, which would see its sums; libraries divide products themselves", on_gpu,
     [](Ir ir, const PassContext& cx) {
       const bool libraries = cx.policy.libraries && target::libraries_enabled();
       return split_dots(std::move(ir), cx.target.machine(), cx.policy.numerics.tf32, libraries);
     }},
    {"split_attention", "clusters share the keys of a head instead where the device has them", on_gpu_without_clusters,
     [](Ir ir, const PassContext&) { return split_attention(std::move(ir)); }},
    {"matmul_operands", "after all rewrites: what simplify would merge must stay in memory as it is", on_gpu,
     [](Ir ir, const PassContext& cx) { return prepare_matmul_operands(std::move(ir), cx.target, cx.policy); }},
    {"placement", "after all rewrites, whose nodes are those that steps then store, or compute where they are read",
     always, [](Ir ir, const PassContext&) { return place_scheduled_values(std::move(ir)); }},
    {"rematerialize", "last of the rewrites: it plans memory for the nodes that will run", with_memory_budget,
     [](Ir ir, const PassContext& cx) {
       return recompute(std::move(ir), cx.source.layouts, cx.source.updates, cx.policy, cx.target);
     }},
    {"fuse", "the graph is final: which values lie in memory, and which are computed by one kernel", always,
     [](const Ir& ir, const PassContext& cx) {
       return group(ir, cx.source.layouts, cx.policy, &cx.target, cx.source.updates);
     }},
    {"order", "the groups are final: when each runs, and which results overwrite what", always,
     [](const Ir& ir, const Grouping& grouping, const PassContext& cx) {
       return order(ir, grouping, cx.source.updates, cx.policy);
     }},
    {"tune", "the order is final: which buffers are read and written, so that variants of a group can be measured",
     always,
     [](const Ir& ir, const Grouping& grouping, const Ordering& ordering, const PassContext& cx) {
       const LowerContext lower{ir, grouping, ordering.buffer_owner, ordering.has_buffer, ordering.streamed, cx.target};
       return tune_groups(lower, grouping, ordering.order, cx.policy);
     }},
    // The copies that outputs need are made here and not by allocate, since they are steps in the order of the others.
    // Nested programs are built here, by pipelines of their own.
    {"lower", "the variants are chosen: a step for each group, by code, a library or nested programs", always,
     [](const Ir& ir, const Grouping& grouping, const Ordering& ordering, const TunedGroups& tuned,
        const PassContext& cx) { return lower_groups(ir, grouping, ordering, tuned, cx.target, cx.policy); }},
    {"horizontal_fusion", "after lower: independent launches are one where their kernels are equal", always,
     [](StepPlan plan, const Ir& ir, const Grouping& grouping, const Ordering& ordering, const PassContext&) {
       return horizontal_fusion(std::move(plan), ir, grouping, ordering);
     }},
    {"vertical_fusion", "after horizontal_fusion, for whose launches kernels must still be equal", where_launches_queue,
     [](StepPlan plan, const Ir&, const Grouping&, const Ordering&, const PassContext&) {
       return vertical_fusion(std::move(plan));
     }},
    {"allocate", "the steps are final: from which one to which one each buffer lives", always,
     [](StepPlan plan, const Ir& ir, const Grouping&, const Ordering&, const PassContext&) {
       return allocate(std::move(plan), ir);
     }},
    {"mark_constants", "after allocate: which parameters are inputs, by where their buffers lie", where_launches_queue,
     [](StepPlan plan, const Ir& ir, const Grouping& grouping, const Ordering& ordering, const PassContext&) {
       return mark_constants(std::move(plan), ir, grouping, ordering);
     }},
};

constexpr const char* stages[] = {"graph", "groups", "schedules", "tune", "kernels", "plan", "passes"};

std::string after(const Pass& pass) { return std::string("after:") + pass.name; }

#ifdef WEFT_VERIFY
std::atomic<bool> verifies = true;
#else
std::atomic<bool> verifies = false;
#endif

std::string dump(const Pass& pass, const Compilation& c) {
  return std::visit(Overloaded{[&](GroupingPass) { return print(c.ir, c.grouping); },
                               [&](OrderingPass) { return print(c.ir, c.grouping, c.ordering); },
                               [&](TuningPass) { return print(c.tuned); }, [&](LoweringPass) { return print(c.steps); },
                               [&](PlanPass) { return print(c.steps); }, [&](auto) { return print(c.ir); }},
                    pass.run);
}

}  // namespace

std::span<const Pass> passes() { return table; }

void set_verification(bool on) { verifies = on; }
bool verification() { return verifies; }

void run_pass(const Pass& pass, Compilation& c, const PassContext& cx) {
  std::visit(Overloaded{[&](ImportPass f) {
                          c.ir = f(cx);
                          if (verifies) c.interface = interface_of(c.ir);
                        },
                        [&](RewritePass f) { c.ir = f(std::move(c.ir), cx); },
                        [&](GroupingPass f) { c.grouping = f(c.ir, cx); },
                        [&](OrderingPass f) { c.ordering = f(c.ir, c.grouping, cx); },
                        [&](TuningPass f) { c.tuned = f(c.ir, c.grouping, c.ordering, cx); },
                        [&](LoweringPass f) { c.steps = f(c.ir, c.grouping, c.ordering, c.tuned, cx); },
                        [&](PlanPass f) { c.steps = f(std::move(c.steps), c.ir, c.grouping, c.ordering, cx); }},
             pass.run);
}

void verify_pass(const Pass& pass, const Compilation& c, const PassContext& cx) {
  try {
    std::visit(Overloaded{[&](GroupingPass) { verify(c.ir, c.grouping); },
                          [&](OrderingPass) { verify(c.ir, c.grouping, c.ordering, cx.source.updates); },
                          [&](TuningPass) { verify(c.grouping, c.tuned); },
                          [&](LoweringPass) { verify(c.ir, c.grouping, c.ordering, c.steps); },
                          [&](PlanPass) { verify(c.ir, c.grouping, c.ordering, c.steps); },
                          [&](auto) { verify(c.ir, c.interface); }},
               pass.run);
  } catch (const internal_error& error) {
    throw_internal(after(pass), error);
  }
}

std::vector<std::string> printable() {
  std::vector<std::string> all(std::begin(stages), std::end(stages));
  for (const Pass& pass : table)
    if (std::find(all.begin(), all.end(), after(pass)) == all.end()) all.push_back(after(pass));
  return all;
}

void check_printable(const std::string& name, const std::string& where) {
  const std::vector<std::string> all = printable();
  if (std::find(all.begin(), all.end(), name) == all.end())
    throw_invalid(where, fmt::format("'{}' cannot be printed, but any of {} can", name, fmt::join(all, ", ")));
}

std::vector<std::string> parse_printable(const std::string& list, const std::string& where) {
  std::vector<std::string> out;
  for (size_t at = 0; at < list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    out.push_back(list.substr(at, comma - at));
    check_printable(out.back(), where);
    at = comma + 1;
  }
  return out;
}

bool dumps(const std::string& name) {
  const char* listed = std::getenv("WEFT_DUMP");
  if (!listed) return false;
  const std::vector<std::string> names = parse_printable(listed, "WEFT_DUMP");
  return std::find(names.begin(), names.end(), name) != names.end();
}

Compilation run_passes(const PassContext& cx, bool texts) {
  Compilation c;
  for (const Pass& pass : table) {
    PassResult result{&pass, pass.applies(cx.target.machine(), cx.policy)};
    if (result.applied) {
      const runtime::Span span("compiler", pass.name);
      const auto start = std::chrono::steady_clock::now();
      run_pass(pass, c, cx);
      result.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    }
    const bool wanted = dumps(after(pass));
    if (result.applied && (texts || wanted)) result.text = dump(pass, c);
    if (result.applied && wanted) std::cerr << "== " << after(pass) << "\n" << result.text;
    if (result.applied && verification()) {
      const auto start = std::chrono::steady_clock::now();
      verify_pass(pass, c, cx);
      result.verify_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    }
    c.passes.push_back(std::move(result));
  }
  return c;
}

std::string print_passes(const std::vector<PassResult>& results) {
  const auto number = [](bool known, double ms) { return known ? fmt::format("{:.2f}", ms) : "-"; };
  double ms = 0, verify_ms = 0;
  for (const PassResult& r : results) ms += r.ms, verify_ms += r.verify_ms;
  const bool verified = verify_ms > 0;
  std::string text;
  const auto line = [&](std::string_view begin, bool known, double own, double verifier, std::string_view why) {
    text += fmt::format("  {:23} {:>8} ms", begin, number(known, own));
    if (verified) text += fmt::format(" {:>8} ms verified", number(known, verifier));
    text += fmt::format("  {}\n", why);
  };
  for (size_t k = 0; k < results.size(); ++k) {
    const PassResult& r = results[k];
    line(fmt::format("{:2} {}", k + 1, r.pass->name), r.applied, r.ms, r.verify_ms, r.pass->why);
  }
  line("   all", true, ms, verify_ms, "without the target's code generator");
  return text;
}

}  // namespace weft::compiler
