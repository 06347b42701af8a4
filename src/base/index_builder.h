#pragma once
// Inside the index algebra: the node table of a Context, sums as sorted lists of terms, and the builder that holds the
// rules.
//
// Every constructor takes canonical nodes and returns a canonical node. The rules are split by idea: index_facts
// (interval and congruence), index_sum (add, mul, and what a div and a mod in one sum become), index_divide,
// index_compare. Expressions mean mathematical integers: a rule may assume that no value of the expression it was given
// leaves int64.
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "base/index.h"

namespace weft::ix {

using Wide = __int128;
inline constexpr int64_t unbounded_below = INT64_MIN, unbounded_above = INT64_MAX;

inline int64_t floor_div(int64_t a, int64_t c) { return a / c - (a % c < 0); }  // c > 0
inline int64_t floor_mod(int64_t a, int64_t c) {
  int64_t r = a % c;
  return r < 0 ? r + c : r;
}
inline bool fits(Wide v) { return v >= INT64_MIN && v <= INT64_MAX; }
inline bool is_bounded(const Node* n) { return n->min != unbounded_below && n->max != unbounded_above; }

/// coefficient · atom, where an atom is any node but a constant, a sum or a multiple.
struct Term {
  const Node* atom;
  int64_t c;
};

/// Σ c·atom + k, terms sorted by the atoms' serials, no coefficient zero. Operations return false if an integer would
/// leave int64 or the sum would exceed `max_terms`; the sum is then invalid and the caller makes a plain node.
struct Linear {
  static constexpr size_t max_terms = 40;
  std::vector<Term> terms;
  int64_t k = 0;

  bool add(const Node* atom, int64_t c);
  bool add_constant(Wide v);
  bool accumulate(const Linear& other, int64_t factor);
  int64_t coefficient(const Node* atom) const;
  /// Returns whether this sum has exactly factor·c of every atom of `part` (constants aside).
  bool contains(const Linear& part, int64_t factor) const;
};

/// An interval whose ends may be missing, wide enough that sums and products do not overflow.
struct Range {
  Wide lo = 0, hi = 0;
  bool has_lo = true, has_hi = true;
  void add(const Node* atom, int64_t c);
  bool inside(Wide low, Wide high) const { return has_lo && has_hi && lo >= low && hi <= high; }
};
Range range_of(const Linear& sum);

/// The facts of a node from those of its operands.
struct Facts {
  int64_t min = unbounded_below, max = unbounded_above, mod = 1, rem = 0;
};
Facts facts_of(Kind kind, int64_t value, const Node* a, const Node* b);

struct NodeHash {
  size_t operator()(const Node* n) const noexcept;
};
struct NodeSame {
  bool operator()(const Node* x, const Node* y) const noexcept {
    return x->kind == y->kind && x->value == y->value && x->a == y->a && x->b == y->b;
  }
};
/// A constructor's request ("the quotient of a and 4"): the key of the memo.
struct Request {
  Kind kind;
  const Node *a, *b;
  friend bool operator==(const Request&, const Request&) = default;
};
struct RequestHash {
  size_t operator()(const Request& r) const noexcept;
};

struct Context::State {
  std::deque<Node> nodes;
  std::unordered_set<const Node*, NodeHash, NodeSame> table;
  std::unordered_map<Request, const Node*, RequestHash> memo;
  std::vector<std::string> names;
  int depth = 0;  // of constructors inside constructors
  int fuel = 0;   // optional rules that the outermost constructor may still try
};

struct Builder {
  Context& cx;
  Context::State& s;

  explicit Builder(Context& context) : cx(context), s(*context.state_) {
    if (s.depth++ == 0) s.fuel = 2000;
  }
  ~Builder() { --s.depth; }
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // index.cpp
  const Node* constant(int64_t v);
  const Node* make(Kind kind, int64_t value, const Node* a, const Node* b);  // hash-consed as it is, no rule applied
  const Node* make(Kind kind, const Node* a, const Node* b) { return make(kind, 0, a, b); }
  const Node* copy(const Node& from, const Node* a, const Node* b);  // of another Context, over operands of this one
  const Node* remembered(Kind kind, const Node* a, const Node* b) const;
  const Node* remember(Kind kind, const Node* a, const Node* b, const Node* result);
  /// Returns false once optional rules have become too deep, too many or too large for this expression, which then
  /// stays as it is (still correct).
  bool may_try(const Node* n);

  // index_sum.cpp
  bool collect(const Node* n, int64_t factor, Linear& out) const;
  const Node* build(const Linear& sum);  // without folding
  const Node* sum(Linear sum);           // after folding
  void fold(Linear& sum);
  bool fold_quotient(Linear& sum, Term term);
  bool fold_remainder(Linear& sum, Term term);
  bool fold_digits(Linear& sum, Term term);
  const Node* add(const Node* a, const Node* b);
  const Node* add_constant(const Node* a, int64_t k);
  const Node* mul(const Node* a, int64_t c);

  // index_divide.cpp
  const Node* floordiv(const Node* a, int64_t c);
  const Node* mod(const Node* a, int64_t c);
  const Node* floordiv_rules(const Node* a, int64_t c);
  const Node* mod_rules(const Node* a, int64_t c);

  // index_compare.cpp
  const Node* extremum(Kind kind, const Node* a, const Node* b);
  const Node* extremum_common(Kind kind, const Linear& la, const Linear& lb);
  const Node* extremum_nested(Kind kind, const Node* a, const Node* b);
  bool at_most(const Node* x, const Node* y) const;  // proves x <= y
  const Node* less(const Node* a, const Node* b);
  const Node* less_than_zero(Linear difference);
  const Node* truth(const Node* a);
  const Node* connect(Kind kind, const Node* a, const Node* b);
};

}  // namespace weft::ix
