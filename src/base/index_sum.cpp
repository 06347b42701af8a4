// Sums: collects an expression into terms, and combines quotients and remainders of the same dividend.
#include <algorithm>

#include "base/index_builder.h"

namespace weft::ix {

bool Linear::add_constant(Wide v) {
  const Wide sum = v + k;
  if (!fits(sum)) return false;
  k = static_cast<int64_t>(sum);
  return true;
}

bool Linear::add(const Node* atom, int64_t c) {
  if (c == 0) return true;
  auto it = std::lower_bound(terms.begin(), terms.end(), atom->serial,
                             [](const Term& t, uint32_t serial) { return t.atom->serial < serial; });
  if (it == terms.end() || it->atom != atom) {
    if (terms.size() == max_terms) return false;
    terms.insert(it, Term{atom, c});
    return true;
  }
  if (__builtin_add_overflow(it->c, c, &it->c)) return false;
  if (it->c == 0) terms.erase(it);
  return true;
}

bool Linear::accumulate(const Linear& other, int64_t factor) {
  for (const Term& t : other.terms) {
    int64_t c;
    if (__builtin_mul_overflow(t.c, factor, &c) || !add(t.atom, c)) return false;
  }
  return add_constant(static_cast<Wide>(other.k) * factor);
}

int64_t Linear::coefficient(const Node* atom) const {
  for (const Term& t : terms)
    if (t.atom == atom) return t.c;
  return 0;
}

bool Linear::contains(const Linear& part, int64_t factor) const {
  return std::all_of(part.terms.begin(), part.terms.end(),
                     [&](const Term& t) { return static_cast<Wide>(t.c) * factor == coefficient(t.atom); });
}

bool Builder::collect(const Node* n, int64_t factor, Linear& out) const {
  for (;;) {
    switch (n->kind) {
      case Kind::constant: return out.add_constant(static_cast<Wide>(n->value) * factor);
      case Kind::mul:
        if (__builtin_mul_overflow(factor, n->b->value, &factor)) return false;
        n = n->a;
        break;
      case Kind::add:
        if (!collect(n->b, factor, out)) return false;
        n = n->a;
        break;
      default: return out.add(n, factor);
    }
  }
}

const Node* Builder::build(const Linear& sum) {
  const Node* node = nullptr;
  for (const Term& t : sum.terms) {
    const Node* term = t.c == 1 ? t.atom : make(Kind::mul, t.atom, constant(t.c));
    node = node ? make(Kind::add, node, term) : term;
  }
  if (!node) return constant(sum.k);
  return sum.k == 0 ? node : make(Kind::add, node, constant(sum.k));
}

const Node* Builder::sum(Linear l) {
  fold(l);
  return build(l);
}

/// Each rule makes the sum smaller; the limit only bounds the time.
void Builder::fold(Linear& sum) {
  for (int round = 0; round < 16; ++round) {
    bool changed = false;
    for (size_t i = 0; i < sum.terms.size() && !changed; ++i) {
      const Term t = sum.terms[i];
      if (t.atom->kind == Kind::floordiv) changed = may_try(t.atom) && fold_quotient(sum, t);
      else if (t.atom->kind == Kind::mod) changed = may_try(t.atom) && (fold_remainder(sum, t) || fold_digits(sum, t));
    }
    if (!changed) return;
  }
}

/// For q = x/d with coefficient m·d:  m·d·q + m·(x%d) = m·x,  and  m·d·q − m·x = −m·(x%d).
bool Builder::fold_quotient(Linear& sum, Term term) {
  const Node* x = term.atom->a;
  const int64_t d = term.atom->b->value;
  if (term.c % d != 0) return false;
  const int64_t m = term.c / d;
  const Node* remainder = mod(x, d);
  Linear lx, lr, next = sum;
  if (!collect(x, 1, lx) || !collect(remainder, 1, lr) || !next.add(term.atom, -term.c)) return false;
  if (sum.contains(lr, m)) {
    if (!next.accumulate(lr, -m) || !next.accumulate(lx, m)) return false;
  } else if (m != INT64_MIN && sum.contains(lx, -m)) {
    if (!next.accumulate(lx, m) || !next.accumulate(lr, -m)) return false;
  } else {
    return false;
  }
  sum = std::move(next);
  return true;
}

/// For r = x%d with coefficient m:  m·r + m·d·(x/d) = m·x,  and  m·r − m·x = −m·d·(x/d).
bool Builder::fold_remainder(Linear& sum, Term term) {
  const Node* x = term.atom->a;
  const int64_t d = term.atom->b->value, m = term.c;
  int64_t md;
  if (m == INT64_MIN || __builtin_mul_overflow(m, d, &md) || md == INT64_MIN) return false;
  const Node* quotient = floordiv(x, d);
  Linear lx, lq, next = sum;
  if (!collect(x, 1, lx) || !collect(quotient, 1, lq) || !next.add(term.atom, -m)) return false;
  if (sum.contains(lq, md)) {
    if (!next.accumulate(lq, -md) || !next.accumulate(lx, m)) return false;
  } else if (sum.contains(lx, -m)) {
    if (!next.accumulate(lx, m) || !next.accumulate(lq, -md)) return false;
  } else {
    return false;
  }
  sum = std::move(next);
  return true;
}

/// Two digits of one number are a larger digit:  m·e·((w + z/e) % d) + m·(z%e) = m·((e·w + z) % (e·d)).
bool Builder::fold_digits(Linear& sum, Term term) {
  const int64_t d = term.atom->b->value;
  Linear inside;
  if (!collect(term.atom->a, 1, inside)) return false;
  for (const Term& t : inside.terms) {
    if (t.atom->kind != Kind::floordiv || t.c != 1) continue;
    const Node* z = t.atom->a;
    const int64_t e = t.atom->b->value;
    int64_t ed;
    if (term.c % e != 0 || __builtin_mul_overflow(e, d, &ed)) continue;
    const int64_t m = term.c / e;
    const Node* low = mod(z, e);
    Linear lz, llow, joined = inside, scaled, lresult, next = sum;
    if (!collect(z, 1, lz) || !collect(low, 1, llow) || !sum.contains(llow, m)) continue;
    if (!joined.add(t.atom, -1) || !scaled.accumulate(joined, e) || !scaled.accumulate(lz, 1)) continue;
    const Node* number = this->sum(scaled);
    if (is_bounded(term.atom->a) && !is_bounded(number)) continue;
    if (!collect(mod(number, ed), 1, lresult)) continue;
    if (!next.add(term.atom, -term.c) || !next.accumulate(llow, -m) || !next.accumulate(lresult, m)) continue;
    sum = std::move(next);
    return true;
  }
  return false;
}

const Node* Builder::add(const Node* a, const Node* b) {
  if (a->kind == Kind::constant) std::swap(a, b);
  if (b->kind == Kind::constant) {
    if (b->value == 0) return a;
    Wide v = static_cast<Wide>(a->value) + b->value;
    if (a->kind == Kind::constant && fits(v)) return constant(static_cast<int64_t>(v));
  } else if (a->serial > b->serial) {
    std::swap(a, b);
  }
  if (const Node* known = remembered(Kind::add, a, b)) return known;
  Linear l;
  const bool ok = collect(a, 1, l) && collect(b, 1, l);
  return remember(Kind::add, a, b, ok ? sum(std::move(l)) : make(Kind::add, a, b));
}

const Node* Builder::add_constant(const Node* a, int64_t k) { return k == 0 ? a : add(a, constant(k)); }

const Node* Builder::mul(const Node* a, int64_t c) {
  if (c == 0) return constant(0);
  if (c == 1) return a;
  Linear l;
  if (collect(a, c, l)) return sum(std::move(l));
  return make(Kind::mul, a, constant(c));
}

}  // namespace weft::ix
