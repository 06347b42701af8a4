#include "compiler/ir/split_axes.h"

#include <algorithm>
#include <string>

namespace weft::compiler {

using ix::Expr;

bool is_static_map(const Group& group) {
  return std::all_of(
             group.domain.begin(), group.domain.end(),
             [](const DomainVariable& v) { return !v.inner && v.extent.is_static() && v.extent.bound() > 0; }) &&
         std::all_of(group.roots.begin(), group.roots.end(), [](const Root& r) { return r.kind == RootKind::full; });
}

void split_variable(Group& group, size_t k, int64_t extent) {
  const DomainVariable whole = group.domain[k];
  const int64_t count = whole.extent.bound() / extent;
  const std::string name = group.cx->name(whole.var->value);
  DomainVariable high{group.cx->variable(name + "h", 0, count - 1), count},
      low{group.cx->variable(name + "l", 0, extent - 1), extent};
  const Expr both = high.var * extent + low.var;
  const auto replace = [&](int64_t id) { return id == whole.var->value ? both : Expr(); };
  for (Root& root : group.roots)
    for (Expr& e : root.index) e = ix::substitute(e, replace);
  for (Expr& e : group.seed_index) e = ix::substitute(e, replace);
  const auto at = group.domain.begin() + static_cast<std::ptrdiff_t>(k);
  *at = low;
  group.domain.insert(at, high);
}

bool split_divided(Group& group, Expr e) {
  if (e->kind == ix::Kind::floordiv || e->kind == ix::Kind::mod) {
    for (size_t k = 0; k < group.domain.size(); ++k) {
      const int64_t divisor = e->b->value, extent = group.domain[k].extent.bound();
      if (e->a != group.domain[k].var.get() || divisor >= extent || extent % divisor != 0) continue;
      split_variable(group, k, divisor);
      return true;
    }
  }
  return (e->a && split_divided(group, Expr(e->a))) || (e->b && split_divided(group, Expr(e->b)));
}

}  // namespace weft::compiler
