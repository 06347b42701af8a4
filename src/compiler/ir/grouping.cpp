#include "compiler/ir/grouping.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::compiler {

using graph::Op;

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
    if (group.kind == Group::Kind::dot) text += " " + group.dot.desc.to_string();
    if (group.kind == Group::Kind::call) text += " " + group.call.desc.to_string();
    text += fmt::format(" reads %{}\n", fmt::join(group.reads, " %"));
    const char* root_kinds[] = {"reduce", "full", "row", "column"};
    for (const Root& root : group.roots)
      text += fmt::format("  {} {}\n", root_kinds[static_cast<int>(root.kind)], print(ir, root.node));
  }
  return text;
}

}  // namespace weft::compiler
