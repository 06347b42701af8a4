#include "compiler/tune/steps.h"

#include <fmt/format.h>

#include "base/error.h"
#include "compiler/region/attention_plan.h"
#include "compiler/region/matmul_work.h"
#include "compiler/schedule/steps/loops.h"
#include "compiler/schedule/steps/product.h"
#include "graph/calls/kernel_call.h"

namespace weft::compiler {

namespace {

const char* what(Group::Kind kind) {
  switch (kind) {
    case Group::Kind::rows: return "rows";
    case Group::Kind::dot: return "product";
    case Group::Kind::cumulative: return "cumulative reduction";
    case Group::Kind::scatter: return "scatter";
    case Group::Kind::call: return "routine";
    default: return "attention";
  }
}

}  // namespace

Variant variant_by_steps(const LowerContext& cx, const Group& group, const schedule::Steps& steps,
                         const Numerics& numerics) {
  if (group.kind == Group::Kind::rows) return {schedule_rows_by(steps, cx.ir, cx.grouping, group, cx.target)};
  if (group.kind == Group::Kind::attention) return {attention_by_steps(steps, group, numerics, cx.target.machine())};
  if (group.kind == Group::Kind::dot) {
    if (steps != schedule::Steps().tensorize("library")) return {product_by_steps(steps, group, cx.target.machine())};
    if (!group.dot.library)
      throw_invalid("schedule", fmt::format("tensorize(library): no library of this machine takes {}, or the policy "
                                            "asks for none",
                                            group.dot.to_string()));
    return {};
  }
  throw_invalid("schedule", fmt::format("{}: the value is computed by a {}, whose code has no loops that steps divide",
                                        to_string(steps.list()[0]), what(group.kind)));
}

namespace {

/// Returns whether the rules lower a group of rows by tiles that are transposed in registers, which no steps build.
bool transposes(const LowerContext& cx, const Group& group) {
  Group own = group.copy();
  split_at_reads(cx.ir, cx.grouping, own, cx.target);
  if (lower_transposed(cx, own)) return true;
  Group split = group.copy();
  return cx.target.machine().simt && split_where_divided(cx.ir, cx.grouping, split) &&
         lower_transposed(cx, split).has_value();
}

/// Returns the axes and steps of a group that is tiled; "" for others.
std::string tiles_text(const LowerContext& cx, const Group& group, const Variant& variant, const Policy& policy) {
  const target::Machine& machine = cx.target.machine();
  const auto text = [](const Schedule& s, const std::vector<NamedAxis>& axes) {
    return fmt::format("{}: {}", to_string(axes), to_string(steps_of_tiles(s, axes)));
  };
  if (group.kind == Group::Kind::dot) {
    if (!variant.schedule && group.dot.library) return "tensorize(library)";
    const bool tiled = variant.schedule && !variant.schedule->rows.axes.empty();
    if (tiled) return text(*variant.schedule, product_axes(group.dot));
    if (takes_matmul_tiles(group.dot, machine))
      return text(product_schedule(group.dot, machine), product_axes(group.dot));
    return "tensorize(generated)";
  }
  if (group.kind != Group::Kind::attention || group.attention.region.derivative ||
      !takes_tiled_attention(group.attention, machine, policy.numerics))
    return "";
  return text(variant.schedule ? *variant.schedule : attention_schedule(group.attention, policy.numerics, machine),
              attention_axes(group.attention));
}

}  // namespace

std::string schedules_text(const LowerContext& cx, const IndexedVector<GroupId, Variant>& variants,
                           const Policy& policy) {
  std::string out;
  for (GroupId g = 0; g < cx.grouping.groups.count(); ++g) {
    const Group& group = cx.grouping.groups[g];
    std::string text = tiles_text(cx, group, variants[g], policy);
    if (group.kind == Group::Kind::rows && extent_of(group.domain) > 0) {
      text = axes_text(cx.ir, cx.grouping, group, cx.target) + ": ";
      text += !variants[g].schedule && transposes(cx, group)
                  ? "# tiles that are transposed in registers"
                  : to_string(steps_of_rows(variants[g].schedule, cx.ir, cx.grouping, group, cx.target));
    }
    if (group.kind == Group::Kind::call && group.call.kernel)
      text = "sharding " + graph::factors_text(*group.call.kernel);
    out += fmt::format("group {} {} %{}: {}\n", g, what(group.kind), group.roots[0].node, text.empty() ? "-" : text);
  }
  return out;
}

}  // namespace weft::compiler
