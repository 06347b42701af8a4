// Brute force against the index algebra: random expressions are kept as plain trees beside what the Context made of
// them, and both are computed for many values of the variables.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>
#include <sstream>
#include <unordered_map>
#include <vector>

#include "base/index.h"

using namespace weft::ix;

namespace {

constexpr uint64_t seed = 20240229;
constexpr int points = 24;  // assignments of the variables, drawn anew for each Context
constexpr int variable_count = 4;
constexpr int deepest = 8;
using Values = std::array<int64_t, points>;

struct Random {
  std::mt19937_64 engine;
  int64_t in(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(engine() % static_cast<uint64_t>(hi - lo + 1));
  }
  int64_t pick(std::initializer_list<int64_t> of) { return of.begin()[in(0, std::ssize(of) - 1)]; }
};

int64_t quotient(int64_t a, int64_t c) {
  int64_t q = a / c;
  return q * c > a ? q - 1 : q;
}

int64_t meaning(Kind kind, int64_t a, int64_t b) {
  switch (kind) {
    case Kind::add: return a + b;
    case Kind::mul: return a * b;
    case Kind::floordiv: return quotient(a, b);
    case Kind::mod: return a - b * quotient(a, b);
    case Kind::min: return std::min(a, b);
    case Kind::max: return std::max(a, b);
    case Kind::less: return a < b ? 1 : 0;
    case Kind::both: return a != 0 && b != 0 ? 1 : 0;
    case Kind::either: return a != 0 || b != 0 ? 1 : 0;
    default: return 0;
  }
}

/// A tree as it was written: nothing simplified. `c` is the constant operand of mul, floordiv and mod.
struct Tree {
  Kind kind = Kind::constant;
  int64_t c = 0;
  int a = -1, b = -1;
  int depth = 0;
  Values values{};  // computed from the operands' values
  Expr expr;        // what the Context made of it
};

struct Round {
  Context cx;
  Random& rnd;
  std::vector<Tree> pool;
  std::vector<Expr> vars;
  std::array<std::array<int64_t, variable_count>, points> assignment{};
  std::unordered_map<const Node*, Values> known;  // the simplified nodes' values

  explicit Round(Random& random) : rnd(random) {
    for (int v = 0; v < variable_count; ++v) {
      const int64_t lo = rnd.in(0, 2) == 0 ? rnd.in(-6, 3) : 0, hi = lo + rnd.in(0, 7);
      vars.push_back(cx.variable(std::string(1, static_cast<char>('i' + v)), lo, hi));
      Tree t;
      t.kind = Kind::variable;
      t.c = v;
      t.expr = vars.back();
      for (int p = 0; p < points; ++p) {
        const int64_t corner[] = {lo, hi};
        assignment[p][v] = p < 8 ? corner[rnd.in(0, 1)] : rnd.in(lo, hi);
        t.values[p] = assignment[p][v];
      }
      pool.push_back(t);
    }
  }

  int64_t number() {
    static constexpr int64_t usual[] = {1, 2, 3, 4, 6, 8, 12, 16, 24};
    return rnd.in(0, 2) ? usual[rnd.in(0, 8)] : rnd.in(1, 30);
  }

  Tree leaf_or_number() {
    Tree t;
    t.c = rnd.in(0, 3) ? rnd.in(-20, 40) : number();
    t.expr = cx.constant(t.c);
    t.values.fill(t.c);
    return t;
  }

  /// Operands are young trees more often than old ones, so that expressions grow deep; past the limit they start again
  /// from leaves.
  int pick() {
    if (rnd.in(0, 4) == 0) return static_cast<int>(rnd.in(0, variable_count - 1));
    const int64_t n = static_cast<int64_t>(pool.size());
    for (int attempt = 0; attempt < 4; ++attempt) {
      const int at = static_cast<int>(rnd.in(0, 1) ? rnd.in(std::max<int64_t>(0, n - 24), n - 1) : rnd.in(0, n - 1));
      if (pool[at].depth < deepest) return at;
    }
    return static_cast<int>(rnd.in(0, variable_count - 1));
  }

  Tree random_tree() {
    static constexpr Kind choice[] = {Kind::add,  Kind::add,  Kind::add,      Kind::add,      Kind::add,
                                      Kind::mul,  Kind::mul,  Kind::floordiv, Kind::floordiv, Kind::floordiv,
                                      Kind::mod,  Kind::mod,  Kind::mod,      Kind::min,      Kind::max,
                                      Kind::less, Kind::both, Kind::either};
    if (rnd.in(0, 15) == 0) return leaf_or_number();
    Tree t;
    t.kind = choice[rnd.in(0, std::size(choice) - 1)];
    t.a = pick();
    const Tree& a = pool[t.a];
    if (t.kind == Kind::mul || t.kind == Kind::floordiv || t.kind == Kind::mod) {
      t.c = number();
      const auto [low, high] = std::minmax_element(a.values.begin(), a.values.end());
      if (t.kind != Kind::mul && rnd.in(0, 2))
        t.c = rnd.in(1, std::max<int64_t>(2, (*high - *low + 1) / 2));  // several quotients
      if (t.kind == Kind::mul && rnd.in(0, 3) == 0) t.c = -t.c;
      if (t.kind == Kind::mul) t.expr = cx.mul(a.expr, t.c);
      else t.expr = t.kind == Kind::mod ? cx.mod(a.expr, t.c) : cx.floordiv(a.expr, t.c);
      for (int p = 0; p < points; ++p) t.values[p] = meaning(t.kind, a.values[p], t.c);
      t.depth = a.depth + 1;
      return t;
    }
    t.b = pick();
    const Tree& b = pool[t.b];
    switch (t.kind) {
      case Kind::add: t.expr = cx.add(a.expr, b.expr); break;
      case Kind::min: t.expr = cx.min(a.expr, b.expr); break;
      case Kind::max: t.expr = cx.max(a.expr, b.expr); break;
      case Kind::less: t.expr = cx.less(a.expr, b.expr); break;
      case Kind::both: t.expr = cx.both(a.expr, b.expr); break;
      default: t.expr = cx.either(a.expr, b.expr); break;
    }
    for (int p = 0; p < points; ++p) t.values[p] = meaning(t.kind, a.values[p], b.values[p]);
    t.depth = std::max(a.depth, b.depth) + 1;
    return t;
  }

  const Values& simplified(const Node* n) {
    if (auto it = known.find(n); it != known.end()) return it->second;
    Values v;
    if (n->kind == Kind::constant) v.fill(n->value);
    else if (n->kind == Kind::variable)
      for (int p = 0; p < points; ++p) v[p] = assignment[p][n->value];
    else {
      const Values a = simplified(n->a), b = simplified(n->b);
      for (int p = 0; p < points; ++p) v[p] = meaning(n->kind, a[p], b[p]);
    }
    return known.emplace(n, v).first->second;
  }

  std::string written(int at) const { return at < 0 ? "" : written(pool[at]); }
  std::string written(const Tree& t) const {
    static const char* names[] = {"", "", "+", "*", "/", "%", "min", "max", "<", "&&", "||"};
    if (t.kind == Kind::constant) return std::to_string(t.c);
    if (t.kind == Kind::variable) return cx.name(t.c);
    return "(" + written(t.a) + " " + names[static_cast<int>(t.kind)] + " " +
           (t.b < 0 ? std::to_string(t.c) : written(t.b)) + ")";
  }

  /// "" where the simplified expression, its facts and its affine form agree with the tree.
  std::string fault(const Tree& t) {
    const Node* n = t.expr.get();
    const Values& got = simplified(n);
    for (int p = 0; p < points; ++p) {
      const int64_t v = t.values[p];
      if (got[p] != v) return "value " + std::to_string(got[p]) + " instead of " + std::to_string(v);
      if (v < n->min || v > n->max) return "value " + std::to_string(v) + " outside its interval";
      if (n->mod == 0 ? v != n->rem : (v - n->rem) % n->mod != 0)
        return "value " + std::to_string(v) + " breaks its congruence";
      if (n->mod > 0 && (n->rem < 0 || n->rem >= n->mod)) return "remainder outside [0, mod)";
    }
    return "";
  }

  std::string affine_fault(const Tree& t) {
    const std::array<Expr, 2> chosen{vars[rnd.in(0, 1)], vars[2]};
    if (evaluate(t.expr, assignment[points - 1]) != t.values[points - 1]) return "evaluate() disagrees";
    const auto form = affine(t.expr, chosen);
    if (!form) return "";
    for (Expr v : chosen)
      if (depends_on(form->base, v)) return "affine base depends on a variable";
    for (int p = 0; p < points; ++p) {
      int64_t v = simplified(form->base.get())[p];
      for (size_t k = 0; k < chosen.size(); ++k) v += form->coefficients[k] * assignment[p][chosen[k]->value];
      if (v != t.values[p]) return "affine form gives " + std::to_string(v);
    }
    return "";
  }

  std::string substitution_fault(const Tree& t) {
    const int64_t shift = rnd.in(-3, 3);  // i := j + shift (or a digit of k), where the values stay inside i's interval
    const Expr by = rnd.in(0, 1) ? vars[1] + shift : vars[2] % 3 + vars[1] / 2;
    if (by->min < vars[0]->min || by->max > vars[0]->max) return "";
    const Expr e = substitute(t.expr, [&](int64_t id) { return id == 0 ? by : Expr(); });
    for (int p = 0; p < points; ++p) {
      auto values = assignment[p];
      values[0] = evaluate(by, assignment[p]);
      if (evaluate(e, assignment[p]) != evaluate(t.expr, values)) return "substitute() disagrees";
    }
    return "";
  }
};

}  // namespace

TEST_CASE("index algebra: a million random expressions mean what they say") {
  Random rnd{std::mt19937_64(seed)};
  constexpr int rounds = 4000, per_round = 400;
  size_t constants = 0, made = 0, affine_forms = 0, size = 0;
  for (int round = 0; round < rounds; ++round) {
    Round r(rnd);
    for (int k = 0; k < per_round; ++k) {
      Tree t = r.random_tree();
      std::string fault = r.fault(t);
      if (fault.empty() && k % 8 == 0) fault = r.affine_fault(t);
      if (fault.empty() && k % 64 == 0) fault = r.substitution_fault(t);
      if (!fault.empty()) {
        std::ostringstream bounds;
        for (Expr v : r.vars) bounds << " " << to_string(v) << " in [" << v->min << "," << v->max << "]";
        FAIL("seed ", seed, " round ", round, " expression ", k, ": ", fault, "\n  written ", r.written(t),
             "\n  became ", to_string(t.expr), " in [", t.expr->min, ",", t.expr->max, "] = ", t.expr->rem, " mod ",
             t.expr->mod, "\n ", bounds.str());
      }
      constants += t.expr.is_constant();
      size += t.expr->size;
      affine_forms += affine(t.expr, r.vars).has_value();
      ++made;
      bool far = false;  // keep the pool's numbers small, since the tree is computed in int64, and worth building on
      for (int64_t v : t.values) far |= v > 1'000'000'000 || v < -1'000'000'000;
      const auto [low, high] = std::minmax_element(t.values.begin(), t.values.end());
      const bool dull = *high - *low < 6 || t.expr->size < 4;
      if (!far && (!dull || rnd.in(0, 15) == 0)) r.pool.push_back(std::move(t));
    }
    REQUIRE(r.cx.nodes() < 400u * per_round);
  }
  MESSAGE(made, " expressions, ", constants, " folded to constants, ", affine_forms, " affine in every variable, ",
          size / made, " nodes on average");
  CHECK(made >= 1'000'000);
  CHECK(constants < made / 4);
  CHECK(affine_forms < made / 2);
}

namespace {

std::vector<int64_t> random_shape(Random& rnd, const std::vector<int64_t>& primes) {
  std::vector<int64_t> shape(static_cast<size_t>(rnd.in(0, 3)) + 1, 1);
  for (int64_t p : primes) shape[static_cast<size_t>(rnd.in(0, static_cast<int64_t>(shape.size()) - 1))] *= p;
  for (int64_t ones = rnd.in(0, 2); ones > 0; --ones) shape.insert(shape.begin() + rnd.in(0, std::ssize(shape)), 1);
  return shape;
}

std::vector<int64_t> unravel(int64_t flat, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t k = shape.size(); k-- > 0;) {
    index[k] = flat % shape[k];
    flat /= shape[k];
  }
  return index;
}

std::string print(const std::vector<int64_t>& shape) {
  std::string s = "(";
  for (int64_t n : shape) s += std::to_string(n) + ",";
  return s + ")";
}

std::vector<Expr> axes(Context& cx, const std::vector<int64_t>& shape) {
  std::vector<Expr> index;
  for (size_t k = 0; k < shape.size(); ++k)
    index.push_back(shape[k] == 1 ? cx.constant(0) : cx.variable("i" + std::to_string(k), 0, shape[k] - 1));
  return index;
}

std::vector<int64_t> values_of(const std::vector<Expr>& index, const std::vector<int64_t>& at) {
  std::vector<int64_t> values;
  for (size_t k = 0; k < index.size(); ++k)
    if (!index[k].is_constant()) values.push_back(at[k]);
  return values;
}

}  // namespace

TEST_CASE("index algebra: a reshape's map is ravel and unravel") {
  Random rnd{std::mt19937_64(seed + 1)};
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<int64_t> primes;
    for (int64_t n = rnd.in(0, 5); n > 0; --n) primes.push_back(rnd.pick({2, 2, 3, 5}));
    const auto from = random_shape(rnd, primes);
    std::shuffle(primes.begin(), primes.end(), rnd.engine);
    const auto to = random_shape(rnd, primes);
    INFO("seed ", seed + 1, " trial ", trial, " ", print(from), " -> ", print(to));

    int from_at = 0, to_at = 0;  // the groups tile both shapes and cut them at equal products
    for (const ReshapeGroup& g : reshape_groups(from, to)) {
      REQUIRE(g.from_begin == from_at);
      REQUIRE(g.to_begin == to_at);
      int64_t p = 1, q = 1;
      for (int i = g.from_begin; i < g.from_end; ++i) p *= from[static_cast<size_t>(i)];
      for (int j = g.to_begin; j < g.to_end; ++j) q *= to[static_cast<size_t>(j)];
      REQUIRE(p == q);
      from_at = g.from_end;
      to_at = g.to_end;
    }
    REQUIRE(from_at == static_cast<int>(from.size()));
    REQUIRE(to_at == static_cast<int>(to.size()));

    Context cx;
    const auto index = axes(cx, to);
    const auto mapped = reindex_reshape(cx, index, from, to);
    int64_t total = 1;
    for (int64_t n : to) total *= n;
    for (int64_t flat = 0; flat < total; ++flat) {
      const auto expected = unravel(flat, from);
      const auto values = values_of(index, unravel(flat, to));
      for (size_t k = 0; k < from.size(); ++k) REQUIRE(evaluate(mapped[k], values) == expected[k]);
    }
    // There and back is the identity, in every axis and not only in value.
    const auto back = reindex_reshape(cx, mapped, to, from);
    for (size_t k = 0; k < to.size(); ++k) {
      INFO("axis ", k, ": ", to_string(back[k]));
      REQUIRE(back[k] == index[k]);
    }
  }
}

TEST_CASE("index algebra: a chain of reshapes is one reshape") {
  Random rnd{std::mt19937_64(seed + 2)};
  size_t same = 0, compared = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    std::vector<int64_t> primes;
    for (int64_t n = rnd.in(1, 5); n > 0; --n) primes.push_back(rnd.pick({2, 3, 5}));
    const auto first = random_shape(rnd, primes), second = random_shape(rnd, primes), third = random_shape(rnd, primes);
    INFO("seed ", seed + 2, " trial ", trial, " ", print(first), " -> ", print(second), " -> ", print(third));
    Context cx;
    const auto index = axes(cx, third);
    const auto chained = reindex_reshape(cx, reindex_reshape(cx, index, second, third), first, second);
    const auto direct = reindex_reshape(cx, index, first, third);
    int64_t total = 1;
    for (int64_t n : third) total *= n;
    for (int64_t flat = 0; flat < total; ++flat) {
      const auto values = values_of(index, unravel(flat, third));
      for (size_t k = 0; k < first.size(); ++k) REQUIRE(evaluate(chained[k], values) == evaluate(direct[k], values));
    }
    for (size_t k = 0; k < first.size(); ++k) same += chained[k] == direct[k], ++compared;
  }
  MESSAGE(same, " of ", compared, " chained indices are the direct one, node for node");
  CHECK(same * 100 >= compared * 95);
}
