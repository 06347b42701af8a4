// Quotients and remainders by positive constants, rounding toward minus infinity.
#include <numeric>

#include "base/index_builder.h"

namespace weft::ix {

namespace {

int64_t gcd_with(int64_t c, int64_t coefficient) {  // c > 0
  const uint64_t m = coefficient < 0 ? 0 - static_cast<uint64_t>(coefficient) : static_cast<uint64_t>(coefficient);
  return static_cast<int64_t>(std::gcd(static_cast<uint64_t>(c), m));
}

/// x = d·whole + part, with every |coefficient| of part below d and its constant in [0, d). The same cut serves x/d and
/// x%d.
bool cut(const Linear& x, int64_t d, Linear& whole, Linear& part) {
  bool moved = false;
  for (const Term& t : x.terms) {
    if (!whole.add(t.atom, t.c / d) || !part.add(t.atom, t.c % d)) return false;
    moved |= t.c / d != 0;
  }
  whole.k = floor_div(x.k, d);
  part.k = floor_mod(x.k, d);
  return moved || whole.k != 0;
}

/// x = g·high + low, where g divides d and low stays inside one multiple of g: then x/d = high/(d/g) and x%d =
/// g·(high%(d/g)) + low, once low's multiple of g has moved to high. g comes from a coefficient, the largest first.
bool split(const Linear& x, int64_t d, int64_t& g, Linear& high, Linear& low) {
  int64_t tried = d;
  for (size_t guard = 0; guard <= x.terms.size(); ++guard) {
    g = 1;
    for (const Term& t : x.terms) {
      const int64_t common = gcd_with(d, t.c);
      if (common > g && common < tried) g = common;
    }
    if (g == 1) return false;
    tried = g;
    high = Linear{}, low = Linear{};
    for (const Term& t : x.terms)
      (t.c % g == 0 ? high : low).terms.push_back(Term{t.atom, t.c % g == 0 ? t.c / g : t.c});
    low.k = x.k;
    const Range r = range_of(low);
    if (!r.inside(INT64_MIN / 2, INT64_MAX / 2)) continue;
    const int64_t multiple = floor_div(static_cast<int64_t>(r.lo), g);
    if (multiple != floor_div(static_cast<int64_t>(r.hi), g)) continue;
    high.k = multiple;
    low.k -= multiple * g;
    return true;
  }
  return false;
}

}  // namespace

const Node* Builder::floordiv(const Node* a, int64_t c) {
  if (c == 1) return a;
  if (a->kind == Kind::constant) return constant(floor_div(a->value, c));
  if (is_bounded(a) && floor_div(a->min, c) == floor_div(a->max, c)) return constant(floor_div(a->min, c));
  const Node* divisor = constant(c);
  if (const Node* known = remembered(Kind::floordiv, a, divisor)) return known;
  ++s.depth;
  const Node* result = floordiv_rules(a, c);
  --s.depth;
  return remember(Kind::floordiv, a, divisor, result);
}

const Node* Builder::floordiv_rules(const Node* a, int64_t c) {
  const auto plain = [&] { return make(Kind::floordiv, a, constant(c)); };
  Linear x, whole, part;
  if (!collect(a, 1, x)) return plain();
  if (cut(x, c, whole, part)) return add(sum(whole), floordiv(sum(part), c));
  if (!may_try(a)) return plain();

  int64_t g;
  Linear high, low;
  if (split(x, c, g, high, low)) return floordiv(sum(high), c / g);

  if (x.terms.size() == 1 && x.k == 0 && x.terms[0].c == 1 && x.terms[0].atom->kind == Kind::mod) {
    const Node* m = x.terms[0].atom;  // (y % m) / c = (y / c) % (m / c) where c divides m
    if (m->b->value % c == 0) return mod(floordiv(m->a, c), m->b->value / c);
  }
  for (const Term& t : x.terms) {  // (w + y/e) / c = (e·w + y) / (e·c)
    if (t.c != 1 || t.atom->kind != Kind::floordiv) continue;
    const int64_t e = t.atom->b->value;
    int64_t product;
    Linear rest = x, scaled, y;
    if (__builtin_mul_overflow(e, c, &product) || !rest.add(t.atom, -1) || !scaled.accumulate(rest, e)) continue;
    if (!collect(t.atom->a, 1, y) || !scaled.accumulate(y, 1)) continue;
    const Node* number = sum(scaled);
    if (is_bounded(a) && !is_bounded(number)) continue;
    return floordiv(number, product);
  }
  return plain();
}

const Node* Builder::mod(const Node* a, int64_t c) {
  if (c == 1) return constant(0);
  if (a->kind == Kind::constant) return constant(floor_mod(a->value, c));
  if (a->mod != 0 && a->mod % c == 0) return constant(floor_mod(a->rem, c));
  if (is_bounded(a) && floor_div(a->min, c) == floor_div(a->max, c)) {
    const Wide shift = -static_cast<Wide>(floor_div(a->min, c)) * c;
    if (fits(shift)) return add_constant(a, static_cast<int64_t>(shift));
  }
  const Node* divisor = constant(c);
  if (const Node* known = remembered(Kind::mod, a, divisor)) return known;
  ++s.depth;
  const Node* result = mod_rules(a, c);
  --s.depth;
  return remember(Kind::mod, a, divisor, result);
}

const Node* Builder::mod_rules(const Node* a, int64_t c) {
  const auto plain = [&] { return make(Kind::mod, a, constant(c)); };
  Linear x, whole, part;
  if (!collect(a, 1, x)) return plain();
  if (cut(x, c, whole, part)) return mod(sum(part), c);
  if (!may_try(a)) return plain();

  for (const Term& t : x.terms) {  // (e·(y % m) + w) % c = (e·y + w) % c where c divides e·m
    if (t.atom->kind != Kind::mod || (static_cast<Wide>(t.c) * t.atom->b->value) % c != 0) continue;
    Linear next = x, whole_next, part_next;
    if (!next.add(t.atom, -t.c) || !collect(t.atom->a, t.c, next)) continue;
    const Node* opened = sum(next);
    if (is_bounded(a) && !is_bounded(opened)) continue;
    return mod(opened, c);
  }
  int64_t g;
  Linear high, low;
  if (split(x, c, g, high, low)) return add(mul(mod(sum(high), c / g), g), sum(low));
  return plain();
}

}  // namespace weft::ix
