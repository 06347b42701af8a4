// The row of calls: every column asks the rule of the named call. The rules are grouped by family in call_*.cpp.
#include "graph/calls/call.h"

#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/calls/call_rules.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

constexpr std::span<const CallRule> (*families_of_calls[])() = {sort_calls, fft_calls,  linalg_calls, orthogonal_calls,
                                                                eig_calls,  pair_calls, kernel_calls};

std::vector<const CallRule*> gather_rules() {
  std::vector<const CallRule*> all;
  for (const auto& family : families_of_calls)
    for (const CallRule& rule : family()) all.push_back(&rule);
  return all;
}

std::vector<Type> call_types(const Attrs& attrs, TypeSpan in) {
  const CallRule& rule = call_rule(attrs.call);
  const int given = static_cast<int>(in.size()), integers = static_cast<int>(attrs.integers.size());
  if (given < rule.min_inputs || (rule.max_inputs >= 0 && given > rule.max_inputs))
    throw_invalid(rule.name, fmt::format("takes another number of arguments than {}", given));
  if (integers != rule.integers && integers != rule.integers + rule.more_integers)
    throw_invalid(rule.name, fmt::format("reads {} integers, got {}", rule.integers, integers));
  return rule.types(attrs, in);
}

std::vector<Shape> call_shape(const Attrs& attrs, TypeSpan in) {
  std::vector<Shape> out;
  for (Type& t : call_types(attrs, in)) out.push_back(std::move(t.shape));
  return out;
}

std::vector<Dtype> call_dtype(const Attrs& attrs, TypeSpan in) {
  std::vector<Dtype> out;
  for (const Type& t : call_types(attrs, in)) out.push_back(t.dtype);
  return out;
}

Interval call_interval(const Attrs& attrs, std::span<const Interval> in, const Type& result) {
  const CallRule& rule = call_rule(attrs.call);
  return rule.interval.rule ? rule.interval.rule(attrs, in, result) : range_of(result.dtype);
}

Values call_vjp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan g) {
  const CallRule& rule = call_rule(node.attrs().call);
  return rule.vjp.rule ? rule.vjp.rule(node, x, y, g) : Values(x.size());
}

Values call_jvp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan t) {
  const CallRule& rule = call_rule(node.attrs().call);
  return rule.jvp.rule ? rule.jvp.rule(node, x, y, t) : Values(y.size());
}

Values call_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  const CallRule& rule = call_rule(node.attrs().call);
  check(rule.vmap.rule != nullptr, rule.name, "has no rule for batches");
  return rule.vmap.rule(node, x, axes);
}

/// Returns no factors (all axes whole) if the call defines none.
Factors call_factors(const Attrs& attrs, TypeSpan in, TypeSpan out) {
  const CallRule& rule = call_rule(attrs.call);
  if (rule.factors.rule) return rule.factors.rule(attrs, in, out);
  Factors f;
  for (const Type& t : in) f.inputs.emplace_back(t.shape.size(), -1);
  for (const Type& t : out) f.outputs.emplace_back(t.shape.size(), -1);
  return f;
}

std::vector<HostTensor> call_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  return call_rule(attrs.call).reference(attrs, in, out);
}

constexpr auto call_table = std::to_array<Row>({
    {Op::call, "call", 0, -1, call_shape, call_dtype, call_interval, call_vjp, call_jvp, call_vmap, call_factors, -1,
     call_reference, 0, "a routine on whole arrays: sorts, transforms, decompositions, kernels of users",
     "call, integers, kernel", "by the routine"},
});
static_assert(complete(call_table, Op::call));

}  // namespace

std::span<const CallRule* const> calls() {
  static const std::vector<const CallRule*> all = gather_rules();
  return all;
}

const CallRule& call_rule(std::string_view name) {
  for (const CallRule* rule : calls())
    if (rule->name == name) return *rule;
  throw_invalid("call", fmt::format("there is no routine named '{}'", name));
}

Values call(std::string name, Values inputs, std::vector<int64_t> integers) {
  Attrs attrs;
  attrs.call = std::move(name);
  attrs.integers = std::move(integers);
  return make_all(Op::call, std::move(inputs), std::move(attrs));
}

std::span<const Row> call_rows() { return call_table; }

}  // namespace weft::graph
