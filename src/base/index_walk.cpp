// Walks over finished expressions: value, print, substitution, variables, affine form.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/index_builder.h"

namespace weft::ix {

namespace {

int64_t wrapped(Wide v) { return static_cast<int64_t>(static_cast<uint64_t>(v)); }

struct Evaluator {
  std::span<const int64_t> values;
  std::unordered_map<const Node*, int64_t> known;

  int64_t of(const Node* n) {
    if (n->kind == Kind::constant) return n->value;
    if (n->kind == Kind::variable) {
      check(static_cast<size_t>(n->value) < values.size(), "index evaluate", "a variable without a value");
      return values[static_cast<size_t>(n->value)];
    }
    const bool shared = n->size > 64;  // small trees are cheaper to walk twice than to look up
    if (shared)
      if (auto it = known.find(n); it != known.end()) return it->second;
    const int64_t a = of(n->a), b = of(n->b);
    const int64_t v = apply(n->kind, a, b);
    if (shared) known.emplace(n, v);
    return v;
  }

  static int64_t apply(Kind kind, int64_t a, int64_t b) {
    switch (kind) {
      case Kind::add: return wrapped(static_cast<Wide>(a) + b);
      case Kind::mul: return wrapped(static_cast<Wide>(a) * b);
      case Kind::floordiv: return floor_div(a, b);
      case Kind::mod: return floor_mod(a, b);
      case Kind::min: return a < b ? a : b;
      case Kind::max: return a < b ? b : a;
      case Kind::less: return a < b;
      case Kind::both: return a != 0 && b != 0;
      case Kind::either: return a != 0 || b != 0;
      case Kind::constant:
      case Kind::variable: break;
    }
    throw_internal("index evaluate", "unknown kind");
  }
};

/// C's precedences, so that a dump reads as code.
int binding(const Node* n) {
  switch (n->kind) {
    case Kind::either: return 1;
    case Kind::both: return 2;
    case Kind::less: return 3;
    case Kind::add: return 4;
    case Kind::mul:
    case Kind::floordiv:
    case Kind::mod: return 5;
    case Kind::constant: return n->value < 0 ? 4 : 6;
    default: return 6;
  }
}

void print(const Node* n, int outer, std::string& out);

void print_infix(const Node* n, const char* op, std::string& out) {
  const int own = binding(n);
  print(n->a, own, out);
  out += op;
  print(n->b, n->b->kind == Kind::constant ? 0 : own + 1, out);
}

/// Positive terms first, so that a sum seldom begins with a minus sign; the constant stays last.
void print_sum(const Node* n, std::string& out) {
  std::vector<const Node*> terms;
  for (; n->kind == Kind::add; n = n->a) terms.push_back(n->b);
  terms.push_back(n);
  const auto negative = [](const Node* t) {
    const int64_t c = t->kind == Kind::mul ? t->b->value : t->kind == Kind::constant ? t->value : 0;
    return c < 0 && c != INT64_MIN;
  };
  std::reverse(terms.begin(), terms.end());
  const auto last = terms.back()->kind == Kind::constant ? terms.end() - 1 : terms.end();
  std::stable_partition(terms.begin(), last, [&](const Node* t) { return !negative(t); });
  for (size_t k = 0; k < terms.size(); ++k) {
    const Node* t = terms[k];
    if (k == 0 || !negative(t)) {
      if (k) out += " + ";
      print(t, k ? 5 : 4, out);
    } else if (t->kind == Kind::constant) {
      out.append(" - ").append(std::to_string(-t->value));
    } else {
      out += " - ";
      print(t->a, 5, out);
      if (t->b->value != -1) out.append("*").append(std::to_string(-t->b->value));
    }
  }
}

void print(const Node* n, int outer, std::string& out) {
  constexpr size_t longest = 4000;
  if (out.size() > longest) {
    if (out.back() != '~') out += "~";
    return;
  }
  const bool parens = binding(n) < outer;
  if (parens) out += "(";
  switch (n->kind) {
    case Kind::constant: out += std::to_string(n->value); break;
    case Kind::variable: out += n->context->name(n->value); break;
    case Kind::add: print_sum(n, out); break;
    case Kind::mul: print_infix(n, "*", out); break;
    case Kind::floordiv: print_infix(n, "/", out); break;
    case Kind::mod: print_infix(n, "%", out); break;
    case Kind::less: print_infix(n, " < ", out); break;
    case Kind::both: print_infix(n, " && ", out); break;
    case Kind::either: print_infix(n, " || ", out); break;
    case Kind::min:
    case Kind::max:
      out += n->kind == Kind::min ? "min(" : "max(";
      print(n->a, 0, out);
      out += ", ";
      print(n->b, 0, out);
      out += ")";
      break;
  }
  if (parens) out += ")";
}

struct Substitution {
  const std::function<Expr(int64_t)>& replacement;
  std::unordered_map<const Node*, const Node*> done;

  Expr of(const Node* n) {
    if (n->kind == Kind::constant) return Expr(n);
    if (auto it = done.find(n); it != done.end()) return Expr(it->second);
    const Expr result = rebuilt(n);
    done.emplace(n, result.get());
    return result;
  }

  Expr rebuilt(const Node* n) {
    if (n->kind == Kind::variable) {
      const Expr r = replacement(n->value);
      return r ? r : Expr(n);
    }
    const Expr a = of(n->a), b = of(n->b);
    if (a.get() == n->a && b.get() == n->b) return Expr(n);
    Context& cx = *n->context;
    switch (n->kind) {
      case Kind::add: return cx.add(a, b);
      case Kind::mul: return cx.mul(a, n->b->value);
      case Kind::floordiv: return cx.floordiv(a, n->b->value);
      case Kind::mod: return cx.mod(a, n->b->value);
      case Kind::min: return cx.min(a, b);
      case Kind::max: return cx.max(a, b);
      case Kind::less: return cx.less(a, b);
      case Kind::both: return cx.both(a, b);
      case Kind::either: return cx.either(a, b);
      case Kind::constant:
      case Kind::variable: break;
    }
    throw_internal("index substitute", "unknown kind");
  }
};

template <class Visit>
void each_node(const Node* n, std::unordered_set<const Node*>& seen, const Visit& visit) {
  if (!seen.insert(n).second) return;
  visit(n);
  if (n->a) each_node(n->a, seen, visit);
  if (n->b) each_node(n->b, seen, visit);
}

struct AffineReader {
  std::span<const Expr> vars;
  std::vector<int64_t> coefficients;
  std::unordered_map<const Node*, bool> known;

  int position(const Node* n) const {
    for (size_t k = 0; k < vars.size(); ++k)
      if (vars[k].get() == n) return static_cast<int>(k);
    return -1;
  }

  bool depends(const Node* n) {
    if (n->kind == Kind::variable) return position(n) >= 0;
    if (n->kind == Kind::constant) return false;
    if (auto it = known.find(n); it != known.end()) return it->second;
    const bool d = depends(n->a) || depends(n->b);
    known.emplace(n, d);
    return d;
  }

  /// Adds factor·n to the coefficients; the part without vars comes back in `base`.
  bool read(const Node* n, int64_t factor, Expr& base) {
    if (!depends(n)) {
      base = base + Expr(n) * factor;
      return true;
    }
    switch (n->kind) {
      case Kind::variable: {
        int64_t& c = coefficients[static_cast<size_t>(position(n))];
        return !__builtin_add_overflow(c, factor, &c);
      }
      case Kind::add: return read(n->a, factor, base) && read(n->b, factor, base);
      case Kind::mul: return !__builtin_mul_overflow(factor, n->b->value, &factor) && read(n->a, factor, base);
      default: return false;
    }
  }
};

}  // namespace

int64_t evaluate(Expr e, std::span<const int64_t> values) {
  Evaluator evaluator{values, {}};
  return evaluator.of(e.get());
}

std::string to_string(Expr e) {
  if (!e) return "<none>";
  std::string out;
  print(e.get(), 0, out);
  return out;
}

Expr substitute(Expr e, const std::function<Expr(int64_t variable_id)>& replacement) {
  Substitution substitution{replacement, {}};
  return substitution.of(e.get());
}

void variables(Expr e, const std::function<void(Expr)>& visit) {
  std::unordered_set<const Node*> seen;
  each_node(e.get(), seen, [&](const Node* n) {
    if (n->kind == Kind::variable) visit(Expr(n));
  });
}

bool depends_on(Expr e, Expr variable) {
  AffineReader reader{std::span(&variable, 1), {0}, {}};
  return reader.depends(e.get());
}

std::optional<Affine> affine(Expr e, std::span<const Expr> vars) {
  AffineReader reader{vars, std::vector<int64_t>(vars.size(), 0), {}};
  Expr base = e->context->constant(0);
  if (!reader.read(e.get(), 1, base)) return std::nullopt;
  return Affine{base, std::move(reader.coefficients)};
}

}  // namespace weft::ix
