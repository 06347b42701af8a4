#include "kernel/derive/scalar_rules.h"

#include <array>
#include <type_traits>
#include <utility>

#include "kernel/operators/rows.h"

namespace weft::kernel {
namespace derive {

/// A value of a kernel under construction in the notation of the rows' derivatives.
struct Term {
  Builder* b;
  Value value;
  Dtype dtype() const { return b->type(value).dtype; }
};

/// Returns a number in the type of `like`.
Term number(const Term& like, double v) {
  return {like.b, like.b->real(like.dtype(), v, like.b->type(like.value).dims)};
}
Term scalar(ScalarOp op, const Term& a) { return {a.b, a.b->scalar(op, {a.value})}; }
Term scalar(ScalarOp op, const Term& a, const Term& b) { return {a.b, a.b->scalar(op, {a.value, b.value})}; }

Term operator+(const Term& a, const Term& b) { return scalar(ScalarOp::add, a, b); }
Term operator-(const Term& a, const Term& b) { return scalar(ScalarOp::sub, a, b); }
Term operator*(const Term& a, const Term& b) { return scalar(ScalarOp::mul, a, b); }
Term operator/(const Term& a, const Term& b) { return scalar(ScalarOp::div, a, b); }
Term operator+(const Term& a, double b) { return a + number(a, b); }
Term operator-(const Term& a, double b) { return a - number(a, b); }
Term operator*(const Term& a, double b) { return a * number(a, b); }
Term operator-(double a, const Term& b) { return number(b, a) - b; }
Term operator/(double a, const Term& b) { return number(b, a) / b; }
Term operator-(const Term& a) { return scalar(ScalarOp::neg, a); }
Term exp(const Term& a) { return scalar(ScalarOp::exp, a); }
Term log(const Term& a) { return scalar(ScalarOp::log, a); }
Term tanh(const Term& a) { return scalar(ScalarOp::tanh, a); }
Term rsqrt(const Term& a) { return scalar(ScalarOp::rsqrt, a); }
Term square(const Term& a) { return scalar(ScalarOp::square, a); }
Term select(const Term& c, const Term& a, const Term& b) { return {a.b, a.b->select(c.value, a.value, b.value)}; }
Term full_like(const Term& a, double v) { return number(a, v); }
Term zeros_like(const Term& a) { return number(a, 0); }

using Terms = std::span<const Term>;
using Rule = std::vector<Value> (*)(const Term& g, Terms args, const Term& y);

/// Returns the values of one term, or of an array of them.
std::vector<Value> values_of(const Term& t) { return {t.value}; }
template <size_t n>
std::vector<Value> values_of(const std::array<Term, n>& terms) {
  std::vector<Value> out;
  for (const Term& t : terms) out.push_back(t.value);
  return out;
}

template <size_t k>
constexpr Rule rule() {
  using R = Row<static_cast<ScalarOp>(k)>;
  if constexpr (requires(const Term& v) { R::derivative(v, v, v); })
    return [](const Term& g, Terms a, const Term& y) { return values_of(R::derivative(g, a[0], y)); };
  else if constexpr (requires(const Term& v) { R::derivative(v, v, v, v); })
    return [](const Term& g, Terms a, const Term& y) { return values_of(R::derivative(g, a[0], a[1], y)); };
  else if constexpr (requires(const Term& v) { R::derivative(v, v, v, v, v); })
    return [](const Term& g, Terms a, const Term& y) { return values_of(R::derivative(g, a[0], a[1], a[2], y)); };
  else return nullptr;
}

template <size_t... k>
constexpr auto all_rules(std::index_sequence<k...>) {
  return std::array<Rule, sizeof...(k)>{rule<k>()...};
}
constexpr auto rules = all_rules(std::make_index_sequence<static_cast<size_t>(ScalarOp::count_)>());

}  // namespace derive

bool is_smooth(ScalarOp op) { return op == ScalarOp::select || derive::rules.at(static_cast<size_t>(op)); }

std::vector<Value> derivatives(Builder& b, ScalarOp op, Value g, std::span<const Value> args, Value y) {
  if (op == ScalarOp::select) {
    const Value zero = b.real(b.type(g).dtype, 0, b.type(g).dims);
    return {no_value, b.select(args[0], g, zero), b.select(args[0], zero, g)};
  }
  const derive::Rule rule = derive::rules.at(static_cast<size_t>(op));
  if (!rule) return std::vector<Value>(args.size(), no_value);
  std::vector<derive::Term> terms;
  for (const Value v : args) terms.push_back({&b, v});
  return rule({&b, g}, terms, {&b, y});
}

}  // namespace weft::kernel
