#pragma once
// Whole numbers that a launch computes from a kernel's run-time arguments, such as its number of programs.
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernel/scalar.h"

namespace weft::kernel {

/// Nothing, a whole number, or an expression of a kernel's symbols. A value: copied and compared by its terms.
class Length {
 public:
  /// A term in postfix order: a number, a symbol by its number, or an operator of the two terms before it.
  struct Term {
    enum class Kind : uint8_t { number, symbol, apply } kind = Kind::number;
    ScalarOp op = ScalarOp::add;
    int64_t number = 0;
    friend bool operator==(const Term&, const Term&) = default;
  };

  Length() = default;
  static Length number(int64_t n) { return Length({{Term::Kind::number, ScalarOp::add, n}}); }
  static Length symbol(int32_t number) { return Length({{Term::Kind::symbol, ScalarOp::add, number}}); }
  /// Returns a op b; numbers are folded. Throws internal_error for an operator that is not `takes`.
  static Length apply(ScalarOp op, const Length& a, const Length& b);
  /// Returns whether lengths are computed by the operator: add, sub, mul, floordiv, mod, min, max.
  static bool takes(ScalarOp op);

  /// Returns whether there is a number or an expression.
  explicit operator bool() const { return !terms_.empty(); }
  /// Returns whether the symbols have no influence.
  bool is_number() const { return terms_.size() == 1 && terms_[0].kind == Term::Kind::number; }
  const std::vector<Term>& terms() const { return terms_; }
  /// Returns the number for values of the symbols.
  int64_t value(std::span<const int64_t> symbols) const;
  /// Returns "floordiv(add(s0, 63), 64)".
  std::string to_string() const;

  /// Computes the expression by functions that make a number, a symbol and the result of an operator.
  template <class N, class S, class A>
  auto computed(const N& of_number, const S& of_symbol, const A& of_operator) const {
    std::vector<decltype(of_number(int64_t{0}))> stack;
    for (const Term& t : terms_) {
      if (t.kind == Term::Kind::number) {
        stack.push_back(of_number(t.number));
      } else if (t.kind == Term::Kind::symbol) {
        stack.push_back(of_symbol(static_cast<int32_t>(t.number)));
      } else {
        auto right = std::move(stack.back());
        stack.pop_back();
        stack.back() = of_operator(t.op, stack.back(), right);
      }
    }
    return std::move(stack.back());
  }
  friend bool operator==(const Length&, const Length&) = default;

 private:
  explicit Length(std::vector<Term> terms) : terms_(std::move(terms)) {}
  std::vector<Term> terms_;
};

}  // namespace weft::kernel
