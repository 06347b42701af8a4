#pragma once
// How a row of the table of scalar operators is written: a specialisation of Row in one of this folder's files.
//
//   template <>
//   struct Row<ScalarOp::log2> : UnaryFunction {
//     static constexpr std::string_view meaning = "the logarithm of a to base 2";
//     static constexpr Columns columns{.flops = 18, .ulp = 1, .compiled_ulp = 2, .float64 = "log2", .a = {0.2, 3}};
//     static double reference(double a) { return std::log2(a); }
//     static Expr expansion(Expr a) { return expansion::log2(a); }
//     static auto derivative(const auto& g, const auto& a, const auto&) { return g * std::numbers::log2e / a; }
//   };
//
// The kind says who has the operator: UnaryFunction and BinaryFunction are array functions of the same name on floats
// (declared in weft/ops.h; integers are promoted), Elementwise is an operator of the graph, Instruction one of tile IR
// alone. `meaning` is its line in docs/operators.md. Of the functions a row has those that apply:
//
//   reference(a, b, …)      the definition on floats, in double; a last parameter `bool narrow` says that the type is
//                           not float64, where rounding to float32 on the way makes a difference
//   integers(v)             the definition on integers and bools, in 64 bits
//   interval(v)             bounds of an integer result, given those of the arguments; without it: all that the dtype
//                           holds
//   expansion(a, b, …)      the operator in basic ones; an operator without one is basic: every target has it. A last
//                           parameter `Precision` says how many bits are looked at
//   derivative(g, a, …, y)  g · ∂y/∂a for each argument (of two arguments a std::array), where y is the result; an
//                           operator without one changes in steps or not at all: its derivative is zero. Written in the
//                           graph's builders, which the caller's types bring along: + - * /, exp, log, tanh, rsqrt,
//                           square, select, zeros_like, full_like, and scalar(op, …) for all operators
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <string_view>

#include "kernel/expand/expand_emit.h"
#include "kernel/interval.h"
#include "kernel/scalar.h"

namespace weft::kernel {

using expansion::Expr;
using expansion::Precision;

struct Instruction {};
struct Elementwise {};
struct UnaryFunction : Elementwise {};
struct BinaryFunction : Elementwise {};

template <ScalarOp op>
struct Row;

/// Arguments of an operator on integers, sign- or zero-extended to 64 bits: a 64-bit result that is wrapped is the
/// result of the narrow type.
struct Integers {
  Dtype type;
  const Number* args;
  int64_t a, b;     // b: 0 of a unary operator
  uint64_t ua, ub;  // the same bits
  bool is_signed;
  bool less() const { return is_signed ? a < b : ua < ub; }
};

}  // namespace weft::kernel
