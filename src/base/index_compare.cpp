// min, max, comparisons and the two connectives of comparisons.
#include <algorithm>
#include <array>
#include <numeric>

#include "base/index_builder.h"

namespace weft::ix {

namespace {

/// Rules that move constants between sides are only applied this far from the ends of int64.
constexpr int64_t far = int64_t{1} << 60;
bool is_near(const Node* n) { return n->min > -far && n->max < far; }

uint64_t magnitude(int64_t v) { return v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v); }

int64_t common_factor(const Linear& a, uint64_t start = 0) {
  uint64_t g = start;
  for (const Term& t : a.terms) g = std::gcd(g, magnitude(t.c));
  return g > static_cast<uint64_t>(INT64_MAX) ? 1 : static_cast<int64_t>(g);
}

void divide(Linear& a, int64_t g) {
  for (Term& t : a.terms) t.c /= g;
  a.k = floor_div(a.k, g);
}

}  // namespace

bool Builder::at_most(const Node* x, const Node* y) const {
  if (x->max != unbounded_above && y->min != unbounded_below && x->max <= y->min) return true;
  Linear d;
  if (!collect(x, 1, d) || !collect(y, -1, d)) return false;
  const Range r = range_of(d);
  return r.has_hi && r.hi <= 0;
}

const Node* Builder::extremum(Kind kind, const Node* a, const Node* b) {
  if (a == b) return a;
  if (a->kind == Kind::constant || (b->kind != Kind::constant && a->serial > b->serial)) std::swap(a, b);
  if (const Node* known = remembered(kind, a, b)) return known;
  const bool low = kind == Kind::min;
  const Node* result = nullptr;
  Linear la, lb;
  if (at_most(a, b)) result = low ? a : b;
  else if (at_most(b, a)) result = low ? b : a;
  else if (may_try(a) && may_try(b) && is_near(a) && is_near(b) && collect(a, 1, la) && collect(b, 1, lb)) {
    ++s.depth;
    result = extremum_common(kind, la, lb);
    if (!result) result = extremum_nested(kind, a, b);
    if (!result) result = extremum_nested(kind, b, a);
    --s.depth;
  }
  return remember(kind, a, b, result ? result : make(kind, a, b));
}

/// min(c + g·x, c + g·y) = c + g·min(x, y): common terms, then the constant of the first, then a common factor come
/// out.
const Node* Builder::extremum_common(Kind kind, const Linear& la, const Linear& lb) {
  Linear common, x = la, y = lb;
  for (const Term& t : la.terms) {
    if (lb.coefficient(t.atom) != t.c) continue;
    if (!common.add(t.atom, t.c) || !x.add(t.atom, -t.c) || !y.add(t.atom, -t.c)) return nullptr;
  }
  if (x.terms.empty()) std::swap(x, y);
  if (!y.terms.empty() && x.terms[0].atom->serial > y.terms[0].atom->serial) std::swap(x, y);
  common.k = x.k;
  if (!y.add_constant(-static_cast<Wide>(x.k))) return nullptr;
  x.k = 0;
  const int64_t g = common_factor(y, static_cast<uint64_t>(common_factor(x, magnitude(y.k))));
  if (common.terms.empty() && common.k == 0 && g <= 1) return nullptr;
  if (g > 1) divide(x, g), divide(y, g);
  const Node *first = sum(x), *second = sum(y);
  if (!is_near(first) || !is_near(second)) return nullptr;
  return add(mul(extremum(kind, first, second), std::max<int64_t>(g, 1)), sum(common));
}

/// min(min(u, v), b): an operand that another bounds away is dropped. min(max(u, v), b) = b where b is below u or v.
const Node* Builder::extremum_nested(Kind kind, const Node* a, const Node* b) {
  const auto before = [&](const Node* x, const Node* y) { return kind == Kind::min ? at_most(x, y) : at_most(y, x); };
  const Kind opposite = kind == Kind::min ? Kind::max : Kind::min;
  if (a->kind == kind) {
    if (before(a->a, b) || before(a->b, b)) return a;
    if (before(b, a->a)) return extremum(kind, a->b, b);
    if (before(b, a->b)) return extremum(kind, a->a, b);
    if (a->b->kind == Kind::constant && b->kind != Kind::constant) return make(kind, extremum(kind, a->a, b), a->b);
  }
  if (a->kind == opposite && (before(b, a->a) || before(b, a->b))) return b;
  return nullptr;
}

const Node* Builder::less(const Node* a, const Node* b) {
  if (a == b) return constant(0);
  if (a->kind == Kind::constant && b->kind == Kind::constant) return constant(a->value < b->value);
  if (const Node* known = remembered(Kind::less, a, b)) return known;
  const bool ends = a->max != unbounded_above && b->min != unbounded_below && a->max < b->min;
  const bool reversed = b->max != unbounded_above && a->min != unbounded_below && b->max <= a->min;
  const Node* result = nullptr;
  Linear d;
  if (ends || reversed) {
    result = constant(ends);
  } else if (collect(a, 1, d) && collect(b, -1, d)) {
    const Range r = range_of(d);
    if (r.has_hi && r.hi < 0) result = constant(1);
    else if (r.has_lo && r.lo >= 0) result = constant(0);
    else if (r.inside(-far, far) && is_near(a) && is_near(b)) result = less_than_zero(std::move(d));
  }
  return remember(Kind::less, a, b, result ? result : make(Kind::less, a, b));
}

namespace {

/// g·high + low < 0 is high < q + 1 where floor((−1 − low)/g) is the same q for every value of low: low vanishes.
bool drop_low_terms(Linear& d) {
  std::array<int64_t, 9> factors{};
  size_t n = 0;
  factors[n++] = common_factor(d);
  for (const Term& t : d.terms)
    if (n < factors.size()) factors[n++] = static_cast<int64_t>(std::min<uint64_t>(magnitude(t.c), INT64_MAX));
  for (size_t i = 0; i < n; ++i) {
    const int64_t g = factors[i];
    if (g <= 1) continue;
    Linear high, low;
    for (const Term& t : d.terms)
      (t.c % g == 0 ? high : low).terms.push_back(Term{t.atom, t.c % g == 0 ? t.c / g : t.c});
    low.k = d.k;
    const Range r = range_of(low);
    if (!r.inside(-far, far)) continue;
    const int64_t q = floor_div(-1 - static_cast<int64_t>(r.hi), g);
    if (q != floor_div(-1 - static_cast<int64_t>(r.lo), g)) continue;
    high.k = -(q + 1);
    d = std::move(high);
    return true;
  }
  return false;
}

}  // namespace

/// Canonical comparison: quotients cleared, no common factor, positive terms on the left, the constant on the right (on
/// the left where nothing else is there).
const Node* Builder::less_than_zero(Linear d) {
  for (int round = 0; round < 8; ++round) {
    const Range r = range_of(d);
    if (r.has_hi && r.hi < 0) return constant(1);
    if (r.has_lo && r.lo >= 0) return constant(0);
    if (drop_low_terms(d)) continue;
    bool changed = false;
    for (size_t i = 0; i < d.terms.size() && !changed; ++i) {
      // y/e + w < 0  is  y + e·w < 0;  w < y/e  is  e·w + e − 1 < y
      const Term t = d.terms[i];
      if (t.atom->kind != Kind::floordiv || (t.c != 1 && t.c != -1) || !may_try(t.atom)) continue;
      const int64_t e = t.atom->b->value;
      Linear rest = d, next;
      if (!rest.add(t.atom, -t.c) || !next.accumulate(rest, e) || !collect(t.atom->a, t.c, next)) continue;
      if (t.c == -1 && !next.add_constant(e - 1)) continue;
      fold(next);
      if (!range_of(next).inside(-far, far)) continue;
      d = std::move(next);
      changed = true;
    }
    if (!changed) break;
  }
  Linear left, right;
  for (const Term& t : d.terms) {
    if (t.c == INT64_MIN) return nullptr;
    (t.c > 0 ? left : right).terms.push_back(Term{t.atom, t.c > 0 ? t.c : -t.c});
  }
  if (left.terms.empty()) left.k = d.k;
  else right.k = -d.k;
  const Node *l = sum(left), *r = sum(right);
  if (!is_near(l) || !is_near(r)) return nullptr;
  return make(Kind::less, l, r);
}

/// Returns a value as a truth value: itself if it is 0 or 1.
const Node* Builder::truth(const Node* a) {
  if (a->min == 0 && a->max == 1) return a;
  if (a->kind == Kind::constant) return constant(a->value != 0);
  if (a->min > 0 || a->max < 0 || (a->mod != 0 && a->rem != 0)) return constant(1);
  return connect(Kind::either, less(a, constant(0)), less(constant(0), a));
}

namespace {

/// What two truth values imply about each other.
struct Relation {
  bool first_implies = false, second_implies = false, exclude = false, cover = false;
};

/// Compares two comparisons, p: dp <= -1 and q: dq <= -1, by the intervals of dp + dq and dp - dq.
Relation relate(const Builder& b, const Node* p, const Node* q) {
  if (p == q) return {true, true, false, false};
  if (p->kind != Kind::less || q->kind != Kind::less || p->size > 400 || q->size > 400) return {};
  Linear dp, dq, rise, total;
  if (!b.collect(p->a, 1, dp) || !b.collect(p->b, -1, dp)) return {};
  if (!b.collect(q->a, 1, dq) || !b.collect(q->b, -1, dq)) return {};
  if (!rise.accumulate(dq, 1) || !rise.accumulate(dp, -1)) return {};
  if (!total.accumulate(dp, 1) || !total.accumulate(dq, 1)) return {};
  const Range r = range_of(rise), t = range_of(total);
  return {r.has_hi && r.hi <= 0, r.has_lo && r.lo >= 0, t.has_lo && t.lo > -2, t.has_hi && t.hi < 0};
}

void parts_of(Kind kind, const Node* n, std::vector<const Node*>& out) {
  for (; n->kind == kind; n = n->a) out.push_back(n->b);
  out.push_back(n);
}

}  // namespace

/// A chain of truth values in serial order, without those that another one implies.
const Node* Builder::connect(Kind kind, const Node* a, const Node* b) {
  const bool both = kind == Kind::both;
  a = truth(a);
  b = truth(b);
  if (a->kind == Kind::constant) std::swap(a, b);
  if (b->kind == Kind::constant) return (b->value != 0) == both ? a : b;
  if (a == b) return a;
  if (a->serial > b->serial) std::swap(a, b);
  if (const Node* known = remembered(kind, a, b)) return known;
  constexpr size_t longest = 16;
  std::vector<const Node*> given, kept;
  parts_of(kind, a, given);
  parts_of(kind, b, given);
  if (given.size() > longest) return remember(kind, a, b, make(kind, a, b));
  std::sort(given.begin(), given.end(), [](const Node* x, const Node* y) { return x->serial < y->serial; });
  for (const Node* n : given) {
    bool needed = true;
    for (size_t i = 0; i < kept.size() && needed;) {
      const Relation r = relate(*this, kept[i], n);
      if (both ? r.exclude : r.cover) return remember(kind, a, b, constant(!both));
      if (both ? r.first_implies : r.second_implies) needed = false;
      else if (both ? r.second_implies : r.first_implies) kept.erase(kept.begin() + static_cast<long>(i));
      else ++i;
    }
    if (needed) kept.push_back(n);
  }
  const Node* chain = kept[0];
  for (size_t i = 1; i < kept.size(); ++i) chain = make(kind, chain, kept[i]);
  return remember(kind, a, b, chain);
}

}  // namespace weft::ix
