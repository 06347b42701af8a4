#include "kernel/length.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"

namespace weft::kernel {

namespace {

constexpr std::array operators_of_lengths{ScalarOp::add, ScalarOp::sub, ScalarOp::mul, ScalarOp::floordiv,
                                          ScalarOp::mod, ScalarOp::min, ScalarOp::max};

int64_t applied(ScalarOp op, int64_t a, int64_t b) {
  const std::array both{Number::of_int(a), Number::of_int(b)};
  return reference(op, int64, both.data()).i;
}

}  // namespace

bool Length::takes(ScalarOp op) {
  return std::find(operators_of_lengths.begin(), operators_of_lengths.end(), op) != operators_of_lengths.end();
}

Length Length::apply(ScalarOp op, const Length& a, const Length& b) {
  check(takes(op) && a && b, "length", "an operator of lengths takes two lengths");
  if (a.is_number() && b.is_number()) return number(applied(op, a.terms_[0].number, b.terms_[0].number));
  std::vector<Term> terms = a.terms_;
  terms.insert(terms.end(), b.terms_.begin(), b.terms_.end());
  terms.push_back({Term::Kind::apply, op, 0});
  return Length(std::move(terms));
}

int64_t Length::value(std::span<const int64_t> symbols) const {
  check(!terms_.empty(), "length", "there is no length");
  return computed([](int64_t n) { return n; },
                  [&](int32_t symbol) {
                    check(static_cast<size_t>(symbol) < symbols.size(), "length", "a symbol has no value");
                    return symbols[static_cast<size_t>(symbol)];
                  },
                  applied);
}

std::string Length::to_string() const {
  if (terms_.empty()) return "";
  return computed([](int64_t n) { return fmt::format("{}", n); },
                  [](int32_t symbol) { return fmt::format("s{}", symbol); },
                  [](ScalarOp op, const std::string& a, const std::string& b) {
                    return fmt::format("{}({}, {})", info(op).name, a, b);
                  });
}

}  // namespace weft::kernel
