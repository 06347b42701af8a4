#include "compiler/ir/grouping.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::compiler {

using graph::Op;

int64_t extent_of(std::span<const DomainVariable> vars) {
  int64_t n = 1;
  for (const DomainVariable& v : vars) n *= v.extent.bound();
  return n;
}

bool all_static(std::span<const DomainVariable> vars) {
  return std::all_of(vars.begin(), vars.end(), [](const DomainVariable& v) { return v.extent.is_static(); });
}

bool Group::has_reduction() const {
  return std::any_of(roots.begin(), roots.end(), [](const Root& r) { return r.kind == RootKind::reduce; });
}

bool Group::has_columns() const {
  return std::any_of(roots.begin(), roots.end(), [](const Root& r) { return r.kind == RootKind::column; });
}

Group Group::copy() const {
  Group out;
  out.kind = kind;
  out.signature = signature;
  out.domain = domain;
  out.roots = roots;
  out.reads = reads;
  out.dot = dot;
  out.call = call;
  out.attention = attention;
  out.scatter_rows = scatter_rows;
  std::vector<ix::Expr> all = seed_index;
  for (const DomainVariable& v : domain) all.push_back(v.var);
  for (const Root& root : roots) all.insert(all.end(), root.index.begin(), root.index.end());
  all = ix::copy(*out.cx, all);
  auto next = all.begin() + static_cast<std::ptrdiff_t>(seed_index.size());
  out.seed_index.assign(all.begin(), next);
  for (DomainVariable& v : out.domain) v.var = *next++;
  for (Root& root : out.roots)
    for (ix::Expr& e : root.index) e = *next++;
  return out;
}

std::string DotPlan::to_string() const {
  if (asked) return asked->to_string();
  std::string text = desc.to_string();
  if (!a_prologue.empty()) text += " a(" + a_prologue.steps.to_string() + ")";
  if (!b_prologue.empty()) text += " b(" + b_prologue.steps.to_string() + ")";
  return epilogue.empty() ? text : text + " " + epilogue.to_string();
}

std::vector<NodeId> DotPlan::reads() const {
  std::vector<NodeId> nodes{a.node, b.node};
  for (const std::vector<OperandView>* list : {&a_prologue.operands, &b_prologue.operands, &operands})
    for (const OperandView& x : *list) nodes.push_back(x.node);
  return nodes;
}

bool DotPlan::may_overwrite(NodeId node) const {
  const auto is = [&](const OperandView& x) { return x.node == node; };
  const std::vector<NodeId> all = reads();
  if (is(a) || is(b) || std::count(all.begin(), all.end(), node) != 1) return false;
  if (library && !(asked->residual && is(asked_operands[asked->bias ? 3 : 2]))) return false;
  const auto at = std::find_if(operands.begin(), operands.end(), is);
  const kernel::EpilogueOperand& x = epilogue.operands[static_cast<size_t>(at - operands.begin())];
  return at->offset == 0 && x.dtype == desc.c && x.m == desc.c_m && x.n == desc.c_n && x.batch == desc.c_batch;
}

NodeId output_node(const Ir& ir, NodeId output) {
  NodeId node = output;
  while (ir[node].op == Op::reshape) node = ir[node].inputs[0];
  if (node != output && !ir[node].row_major) return output;
  return is_movement(ir[node].op) || ir[node].op == Op::constant || ir[node].op == Op::iota ? output : node;
}

NodeCounts escapes(const Ir& ir) {
  NodeCounts count(ir.nodes.size());
  for (const NodeId id : ir.outputs) ++count[output_node(ir, id)];
  return count;
}

std::string print(const Ir& ir, const Grouping& grouping) {
  std::string text;
  for (size_t g = 0; g < grouping.groups.size(); ++g) {
    const Group& group = grouping.groups[g];
    const char* kinds[] = {"rows", "dot", "cumulative", "scatter", "call", "attention"};
    text += fmt::format("group {} {}", g, kinds[static_cast<int>(group.kind)]);
    for (const DomainVariable& v : group.domain)
      text += fmt::format(" {}{}<{}", v.inner ? "inner " : "", ix::to_string(v.var),
                          v.extent.symbol() ? v.extent.symbol()->name : std::to_string(v.extent.bound()));
    if (group.kind == Group::Kind::dot) text += " " + group.dot.to_string();
    if (group.kind == Group::Kind::call) text += " " + group.call.desc.to_string();
    text += fmt::format(" reads %{}\n", fmt::join(group.reads, " %"));
    const char* root_kinds[] = {"reduce", "full", "row", "column"};
    for (const Root& root : group.roots)
      text += fmt::format("  {} {}\n", root_kinds[static_cast<int>(root.kind)], print(ir, root.node));
  }
  return text;
}

}  // namespace weft::compiler
