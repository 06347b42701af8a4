// The facts of a node (interval and congruence), inferred from those of its operands. Ends that leave int64 are
// dropped.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/index_builder.h"

namespace weft::ix {

namespace {

uint64_t wide_magnitude(Wide v) { return static_cast<uint64_t>(v < 0 ? -v : v); }

/// Returns the gcd of two moduli (0 means a value known exactly), if int64 can hold it.
int64_t common_modulus(Wide a, Wide b) {
  const uint64_t g = std::gcd(wide_magnitude(a), wide_magnitude(b));
  return g > static_cast<uint64_t>(INT64_MAX) ? 1 : static_cast<int64_t>(g);
}

void set_congruence(Facts& f, int64_t mod, Wide rem) {
  f.mod = mod == 0 ? 1 : mod;
  Wide r = rem % f.mod;
  f.rem = static_cast<int64_t>(r < 0 ? r + f.mod : r);
}

void set_range(Facts& f, const Range& r) {
  const bool leaves = (r.has_lo && !fits(r.lo)) || (r.has_hi && !fits(r.hi));
  f.min = leaves || !r.has_lo ? unbounded_below : static_cast<int64_t>(r.lo);
  f.max = leaves || !r.has_hi ? unbounded_above : static_cast<int64_t>(r.hi);
}

/// Moves the ends to the nearest values that the congruence allows.
void tighten(Facts& f) {
  if (f.mod <= 1 || f.min == unbounded_below || f.max == unbounded_above) return;
  const Wide lo = f.min, hi = f.max;
  const Wide up = ((f.rem - lo) % f.mod + f.mod) % f.mod, down = ((hi - f.rem) % f.mod + f.mod) % f.mod;
  if (lo + up > hi - down) return;  // no value at all: an expression that never runs keeps its plain interval
  f.min = static_cast<int64_t>(lo + up);
  f.max = static_cast<int64_t>(hi - down);
}

Facts facts_of_mul(const Node* a, int64_t c) {
  Facts f;
  Range r;
  r.add(a, c);
  set_range(f, r);
  const Wide modulus = static_cast<Wide>(a->mod) * (c < 0 ? -static_cast<Wide>(c) : c);
  if (a->mod != 0 && fits(modulus)) set_congruence(f, static_cast<int64_t>(modulus), static_cast<Wide>(a->rem) * c);
  else if (c != INT64_MIN) set_congruence(f, c < 0 ? -c : c, 0);
  return f;
}

Facts facts_of_floordiv(const Node* a, int64_t c) {
  Facts f;
  if (a->min != unbounded_below) f.min = floor_div(a->min, c);
  if (a->max != unbounded_above) f.max = floor_div(a->max, c);
  if (a->mod != 0 && a->mod % c == 0) set_congruence(f, a->mod / c, a->rem / c);  // a = c·(m/c)·q + r
  return f;
}

Facts facts_of_mod(const Node* a, int64_t c) {
  Facts f;
  f.min = 0;
  f.max = c - 1;  // no less: a that stays inside one multiple of c has been folded
  set_congruence(f, common_modulus(a->mod, c), a->rem);
  return f;
}

}  // namespace

void Range::add(const Node* atom, int64_t c) {
  const Wide far = static_cast<Wide>(1) << 100;
  const bool bottom = atom->min == unbounded_below, top = atom->max == unbounded_above;
  Wide low = static_cast<Wide>(c) * (c < 0 ? atom->max : atom->min);
  Wide high = static_cast<Wide>(c) * (c < 0 ? atom->min : atom->max);
  if (c < 0 ? top : bottom) has_lo = false;
  if (c < 0 ? bottom : top) has_hi = false;
  if (low < -far || low > far) has_lo = false, low = 0;
  if (high < -far || high > far) has_hi = false, high = 0;
  lo += low;
  hi += high;
}

Range range_of(const Linear& sum) {
  Range r;
  r.lo = r.hi = sum.k;
  for (const Term& t : sum.terms) r.add(t.atom, t.c);
  return r;
}

Facts facts_of(Kind kind, int64_t value, const Node* a, const Node* b) {
  Facts f;
  switch (kind) {
    case Kind::constant: return {value, value, 0, value};
    case Kind::variable: return f;
    case Kind::add: {
      Range r;
      r.add(a, 1);
      r.add(b, 1);
      set_range(f, r);
      set_congruence(f, common_modulus(a->mod, b->mod), static_cast<Wide>(a->rem) + b->rem);
      break;
    }
    case Kind::mul: f = facts_of_mul(a, b->value); break;
    case Kind::floordiv: f = facts_of_floordiv(a, b->value); break;
    case Kind::mod: f = facts_of_mod(a, b->value); break;
    case Kind::min:
    case Kind::max: {
      const bool low = kind == Kind::min;
      f.min = low ? std::min(a->min, b->min) : std::max(a->min, b->min);
      f.max = low ? std::min(a->max, b->max) : std::max(a->max, b->max);
      const int64_t both = common_modulus(a->mod, b->mod);
      set_congruence(f, common_modulus(both, static_cast<Wide>(a->rem) - b->rem), a->rem);
      break;
    }
    case Kind::less:
    case Kind::both:
    case Kind::either: f.min = 0, f.max = 1; return f;
  }
  tighten(f);
  return f;
}

}  // namespace weft::ix
