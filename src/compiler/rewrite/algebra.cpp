// Rules for elementwise operators: fold constants, and drop operations that change nothing.
#include "compiler/rewrite/rules.h"
#include "graph/table.h"

namespace weft::compiler {

using graph::Op;

namespace {

bool is_foldable(Op op) { return is_elementwise(op) && op != Op::bitcast; }

/// f(constants) → constant, for elementwise operators.
RuleResult fold_constants(RuleGraph& g, const IrNode& n) {
  std::vector<Number> numbers;
  for (NodeId input : n.inputs) {
    auto number = g.splat(input);
    if (!number) return {};
    numbers.push_back(*number);
  }
  Dtype operand = g[n.inputs.back()].type.dtype;
  Number value = n.op == Op::cast ? kernel::reference_cast(numbers[0], operand, n.type.dtype)
                                  : kernel::reference(static_cast<kernel::ScalarOp>(graph::row(n.op).scalar), operand,
                                                      numbers.data());
  return g.constant_like(n.type, value);
}

RuleResult double_negation(RuleGraph& g, const IrNode& n) {
  const IrNode& in = g[n.inputs[0]];
  return in.op == n.op ? RuleResult(in.inputs[0]) : RuleResult{};
}

/// Returns whether adding `id` has no effect: 0 for integers, but only -0.0 for floats (-0.0 + 0.0 is 0.0).
bool is_neutral_zero(const RuleGraph& g, NodeId id, Dtype dtype) {
  const auto number = g.splat(id);
  return number && number->real() == 0 && (is_integer(dtype) || std::signbit(number->real()));
}

RuleResult add_zero(RuleGraph& g, const IrNode& n) {
  if (is_neutral_zero(g, n.inputs[1], n.type.dtype)) return n.inputs[0];
  return is_neutral_zero(g, n.inputs[0], n.type.dtype) ? RuleResult(n.inputs[1]) : RuleResult{};
}

RuleResult subtract_zero(RuleGraph& g, const IrNode& n) {
  return g.is_splat(n.inputs[1], 0) ? RuleResult(n.inputs[0]) : RuleResult{};
}

RuleResult multiply_by_one(RuleGraph& g, const IrNode& n) {
  if (g.is_splat(n.inputs[1], 1)) return n.inputs[0];
  return g.is_splat(n.inputs[0], 1) ? RuleResult(n.inputs[1]) : RuleResult{};
}

RuleResult multiply_by_zero(RuleGraph& g, const IrNode& n) {
  if (!is_integer(n.type.dtype)) return {};
  const bool zero = g.is_splat(n.inputs[0], 0) || g.is_splat(n.inputs[1], 0);
  return zero ? RuleResult(g.constant_like(n.type, Number::of_int(0))) : RuleResult{};
}

RuleResult divide_by_one(RuleGraph& g, const IrNode& n) {
  return g.is_splat(n.inputs[1], 1) ? RuleResult(n.inputs[0]) : RuleResult{};
}

RuleResult and_true(RuleGraph& g, const IrNode& n) {
  if (n.type.dtype != bool_) return {};
  if (g.is_splat(n.inputs[1], 1)) return n.inputs[0];
  return g.is_splat(n.inputs[0], 1) ? RuleResult(n.inputs[1]) : RuleResult{};
}

RuleResult or_false(RuleGraph& g, const IrNode& n) {
  if (n.type.dtype != bool_) return {};
  if (g.is_splat(n.inputs[1], 0)) return n.inputs[0];
  return g.is_splat(n.inputs[0], 0) ? RuleResult(n.inputs[1]) : RuleResult{};
}

RuleResult cast_to_same(RuleGraph& g, const IrNode& n) {
  return g[n.inputs[0]].type.dtype == n.type.dtype ? RuleResult(n.inputs[0]) : RuleResult{};
}

RuleResult cast_there_and_back(RuleGraph& g, const IrNode& n) {
  const IrNode& in = g[n.inputs[0]];
  const bool widened = in.op == Op::cast && g[in.inputs[0]].type.dtype == n.type.dtype && is_float(n.type.dtype) &&
                       promote_types(n.type.dtype, in.type.dtype) == in.type.dtype;
  return widened ? RuleResult(in.inputs[0]) : RuleResult{};
}

RuleResult select_same(RuleGraph&, const IrNode& n) {
  return n.inputs[1] == n.inputs[2] ? RuleResult(n.inputs[1]) : RuleResult{};
}

RuleResult select_known(RuleGraph& g, const IrNode& n) {
  const auto condition = g.splat(n.inputs[0]);
  return condition ? RuleResult(condition->i ? n.inputs[1] : n.inputs[2]) : RuleResult{};
}

constexpr Rule algebra_table[] = {
    {"fold_constants", "f(c, d, …) → c'", "f elementwise, no bitcast; c, d copies of numbers", is_foldable,
     fold_constants},
    {"double_negation", "-(-x) → x, ~~x → x", "always", one_of<Op::neg, Op::bit_not>, double_negation},
    {"add_zero", "x + 0 → x", "0 of integers, -0.0 of floats", one_of<Op::add>, add_zero},
    {"subtract_zero", "x - 0 → x", "0 is +0.0", one_of<Op::sub>, subtract_zero},
    {"multiply_by_one", "x · 1 → x", "always", one_of<Op::mul>, multiply_by_one},
    {"multiply_by_zero", "x · 0 → 0", "integers: x may be NaN or infinite elsewhere", one_of<Op::mul>,
     multiply_by_zero},
    {"divide_by_one", "x / 1 → x", "always", one_of<Op::div>, divide_by_one},
    {"and_true", "x & true → x", "bools", one_of<Op::bit_and>, and_true},
    {"or_false", "x | false → x", "bools", one_of<Op::bit_or>, or_false},
    {"cast_to_same", "cast(x, dtype of x) → x", "always", one_of<Op::cast>, cast_to_same},
    {"cast_there_and_back", "cast(cast(x, wider), dtype of x) → x", "floats; wider holds every x", one_of<Op::cast>,
     cast_there_and_back},
    {"select_same", "select(c, a, a) → a", "always", one_of<Op::select>, select_same},
    {"select_known", "select(true, a, b) → a, select(false, a, b) → b", "the condition is a copy of one bool",
     one_of<Op::select>, select_known},
};

}  // namespace

std::span<const Rule> algebra_rules() { return algebra_table; }

}  // namespace weft::compiler
