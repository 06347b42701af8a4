#include "compiler/region/jumping.h"

#include <algorithm>
#include <map>

namespace weft::compiler {

using ix::Expr;

namespace {

/// Σ coefficient · floor(v / divisor) of one variable v, by divisor; a divisor of 1 is v itself.
using Quotients = std::map<int64_t, int64_t>;

/// A constant and the quotients of each variable, by its id.
struct Sum {
  int64_t base = 0;
  std::map<int64_t, Quotients> of;

  void add(const Sum& other, int64_t factor) {
    base += factor * other.base;
    for (const auto& [id, quotients] : other.of)
      for (const auto& [divisor, coefficient] : quotients)
        if ((of[id][divisor] += factor * coefficient) == 0) of[id].erase(divisor);
    std::erase_if(of, [](const auto& entry) { return entry.second.empty(); });
  }
};

std::optional<Sum> sum_of(Expr e);

/// Divides v, v modulo a multiple of `by`, or a quotient of v: floor((v mod h) / by) = floor(v / by) - h / by · floor(v
/// / h).
std::optional<Sum> quotient(const Sum& x, int64_t by) {
  if (x.of.empty()) return Sum{x.base >= 0 ? x.base / by : -((by - 1 - x.base) / by), {}};
  if (x.base != 0 || x.of.size() != 1) return {};
  const auto& [id, terms] = *x.of.begin();
  const auto& [divisor, coefficient] = *terms.begin();
  if (terms.size() == 1 && coefficient == 1) return Sum{0, {{id, {{divisor * by, 1}}}}};
  const auto& [whole, taken] = *terms.rbegin();
  if (terms.size() == 2 && divisor == 1 && coefficient == 1 && taken == -whole && whole % by == 0)
    return whole == by ? Sum{} : Sum{0, {{id, {{by, 1}, {whole, -whole / by}}}}};
  return {};
}

std::optional<Sum> sum_of(Expr e) {
  switch (e->kind) {
    case ix::Kind::constant: return Sum{e->value, {}};
    case ix::Kind::variable: return Sum{0, {{e->value, {{1, 1}}}}};
    case ix::Kind::add:
    case ix::Kind::mul:
    case ix::Kind::floordiv:
    case ix::Kind::mod: break;
    default: return {};
  }
  std::optional<Sum> a = sum_of(Expr(e->a)), b = sum_of(Expr(e->b));
  if (!a || !b) return {};
  if (e->kind == ix::Kind::add) {
    a->add(*b, 1);
    return a;
  }
  if (e->kind == ix::Kind::mul) {
    Sum out;
    out.add(*a, b->base);
    return out;
  }
  std::optional<Sum> divided = quotient(*a, b->base);
  if (!divided || e->kind == ix::Kind::floordiv) return divided;
  a->add(*divided, -b->base);
  return a;
}

}  // namespace

std::optional<Jumping> jumping(Expr e, std::span<const Expr> vars) {
  const std::optional<Sum> sum = sum_of(e);
  if (!sum) return {};
  Jumping out{sum->base, std::vector<int64_t>(vars.size()), std::vector<kernel::Jump>(vars.size())};
  for (const auto& [id, quotients] : sum->of) {
    const auto var = std::find_if(vars.begin(), vars.end(),
                                  [&, id = id](Expr v) { return v->kind == ix::Kind::variable && v->value == id; });
    if (var == vars.end()) return {};
    const auto at = static_cast<size_t>(var - vars.begin());
    for (const auto& [divisor, coefficient] : quotients) {
      if (divisor == 1) out.strides[at] = coefficient;
      else if (out.jumps[at].period > 0) return {};
      else out.jumps[at] = {divisor, coefficient};
    }
  }
  return out;
}

std::optional<AxisLayout> joined(const AxisLayout& outer, const AxisLayout& inner, int64_t extent, bool may_jump) {
  const kernel::Jump &far = outer.jump, &near = inner.jump;
  if (near.period > 0) {
    const bool follows = far.period == 0 && extent % near.period == 0 &&
                         outer.stride == extent * inner.stride + extent / near.period * near.by;
    return follows ? std::optional(inner) : std::nullopt;
  }
  const int64_t more = outer.stride - extent * inner.stride;
  if (far.period > 0) {
    if (more != 0) return {};
    return AxisLayout{inner.stride, {far.period * extent, far.by}};
  }
  if (more == 0) return inner;
  if (!may_jump) return {};
  return AxisLayout{inner.stride, {extent, more}};
}

}  // namespace weft::compiler
