#pragma once
// The reducers: monoids that combine the elements of an axis (reductions and cumulative operations). The state of most
// is one number, combined by a scalar operator. The state of others has several components, each combined by a scalar
// operator too, after both sides have been brought to a common frame: of logsumexp's (maximum, scaled sum) the sums are
// multiplied to the larger maximum before they are added (docs/notes/reducers.md). A new reducer is an enumerator and
// its row. Its array function is a line of weft/ops.h.
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "kernel/scalar.h"

namespace weft::kernel {

enum class Reducer : uint8_t {
  sum,
  prod,
  max,
  min,
  all,
  any,
  bitwise_xor,
  argmax,
  argmin,
  logsumexp,
  attention,
  welford,
  count_
};

/// What the rules of the graph (derivatives, intervals, complex numbers, the order of combination) ask of a reducer.
enum class ReducerKind : uint8_t {
  sum,      // linear: the derivative repeats the cotangent
  product,  // the derivative is the product of the other elements
  extreme,  // the result is one of the elements, which gets the derivative, and stays within their interval
  bitwise,  // no derivative
  located,  // components: an extreme and its index; the element at the index gets the derivative
  scaled,   // components: a maximum and sums of terms that are scaled by its exponential
  moments,  // components: a sum, a count, and the sum and the squares of the differences from their mean
};

/// An operand of a component's expression: of the side that is aligned its own components, of both sides together the
/// components that are combined already, a constant, or the result of an earlier operation (operation + k).
enum Operand : int8_t { own = 0, combined = 4, identity_here = 8, infinity_here = 9, one_here = 10, operation = 11 };
inline constexpr size_t most_components = 4, most_operations = 10;

struct Operation {
  ScalarOp op;
  std::array<int8_t, 3> operands = {};
};

/// A component of a state. `align`: its value in the frame of the components before it, which are combined already; the
/// last operation gives it (none: it is used as it is).
struct Component {
  bool index;        // uint32, the position of an element; otherwise of the dtype of the elements
  ScalarOp combine;  // associative and commutative, up to rounding
  double identity;   // of integers the nearest one that the dtype holds; of bool whether it is above 0
  std::span<const Operation> align = {};
};

inline constexpr double infinite = std::numeric_limits<double>::infinity();

namespace components {

/// Of the index: kept where the value is the extreme, or NaN as the extreme is then; elsewhere none.
inline constexpr auto where_extreme = std::to_array<Operation>({
    {ScalarOp::eq, {own, combined}},
    {ScalarOp::ne, {own, own}},
    {ScalarOp::bit_or, {operation, operation + 1}},
    {ScalarOp::select, {operation + 2, own + 1, identity_here}},
});

/// Of a sum of terms scaled by exp(own maximum), component k: multiplied to the larger maximum. An infinite maximum
/// counts as 0, so that terms at -inf add nothing, and one at +inf gives +inf.
template <int8_t k>
inline constexpr auto scaled_to_maximum = std::to_array<Operation>({
    {ScalarOp::abs, {combined}},
    {ScalarOp::eq, {operation, infinity_here}},
    {ScalarOp::select, {operation + 1, identity_here, combined}},
    {ScalarOp::sub, {own, operation + 2}},
    {ScalarOp::exp, {operation + 3}},
    {ScalarOp::mul, {own + k, operation + 4}},
});

/// Of a sum of differences from the mean of the own side: its count times the distance of the two means is added. A
/// side without elements has mean 0.
inline constexpr auto sum_about_mean = std::to_array<Operation>({
    {ScalarOp::max, {own + 1, one_here}},
    {ScalarOp::div, {own, operation}},
    {ScalarOp::max, {combined + 1, one_here}},
    {ScalarOp::div, {combined, operation + 2}},
    {ScalarOp::sub, {operation + 1, operation + 3}},
    {ScalarOp::mul, {own + 1, operation + 4}},
    {ScalarOp::add, {own + 2, operation + 5}},
});

/// Of the squares of those differences: with distance d, count n and sum r of the differences, d (2r + n d) is added.
inline constexpr auto squares_about_mean = std::to_array<Operation>({
    {ScalarOp::max, {own + 1, one_here}},
    {ScalarOp::div, {own, operation}},
    {ScalarOp::max, {combined + 1, one_here}},
    {ScalarOp::div, {combined, operation + 2}},
    {ScalarOp::sub, {operation + 1, operation + 3}},
    {ScalarOp::mul, {own + 1, operation + 4}},
    {ScalarOp::add, {own + 2, own + 2}},
    {ScalarOp::add, {operation + 6, operation + 5}},
    {ScalarOp::mul, {operation + 4, operation + 7}},
    {ScalarOp::add, {own + 3, operation + 8}},
});

inline constexpr auto sum = std::to_array<Component>({{false, ScalarOp::add, 0}});
inline constexpr auto prod = std::to_array<Component>({{false, ScalarOp::mul, 1}});
inline constexpr auto max = std::to_array<Component>({{false, ScalarOp::max, -infinite}});
inline constexpr auto min = std::to_array<Component>({{false, ScalarOp::min, infinite}});
inline constexpr auto all = std::to_array<Component>({{false, ScalarOp::bit_and, 1}});
inline constexpr auto any = std::to_array<Component>({{false, ScalarOp::bit_or, 0}});
inline constexpr auto bitwise_xor = std::to_array<Component>({{false, ScalarOp::bit_xor, 0}});
inline constexpr auto argmax =
    std::to_array<Component>({{false, ScalarOp::max, -infinite}, {true, ScalarOp::min, infinite, where_extreme}});
inline constexpr auto argmin =
    std::to_array<Component>({{false, ScalarOp::min, infinite}, {true, ScalarOp::min, infinite, where_extreme}});
inline constexpr auto logsumexp =
    std::to_array<Component>({{false, ScalarOp::max, -infinite}, {false, ScalarOp::add, 0, scaled_to_maximum<1>}});
inline constexpr auto attention = std::to_array<Component>({{false, ScalarOp::max, -infinite},
                                                            {false, ScalarOp::add, 0, scaled_to_maximum<1>},
                                                            {false, ScalarOp::add, 0, scaled_to_maximum<2>}});
// Of differences the identity is -0: 0 would change a difference of -0, and -0 needs no instruction (kernel/tile.h).
inline constexpr auto welford = std::to_array<Component>({{false, ScalarOp::add, 0},
                                                          {false, ScalarOp::add, 0},
                                                          {false, ScalarOp::add, -0.0, sum_about_mean},
                                                          {false, ScalarOp::add, -0.0, squares_about_mean}});

}  // namespace components

struct ReducerInfo {
  Reducer reducer;
  std::string_view name;  // in prints, errors and exported files
  std::span<const Component> components;
  ReducerKind kind;
  bool floats, integers,
      booleans;  // the dtypes of its elements; with one component, of the graph, complex numbers as floats
};

inline constexpr auto reducers = std::to_array<ReducerInfo>({
    {Reducer::sum, "sum", components::sum, ReducerKind::sum, true, true, false},
    {Reducer::prod, "prod", components::prod, ReducerKind::product, true, true, false},
    {Reducer::max, "max", components::max, ReducerKind::extreme, true, true, false},
    {Reducer::min, "min", components::min, ReducerKind::extreme, true, true, false},
    {Reducer::all, "all", components::all, ReducerKind::bitwise, false, false, true},
    {Reducer::any, "any", components::any, ReducerKind::bitwise, false, false, true},
    {Reducer::bitwise_xor, "xor", components::bitwise_xor, ReducerKind::bitwise, false, true, true},
    {Reducer::argmax, "argmax", components::argmax, ReducerKind::located, true, true, false},
    {Reducer::argmin, "argmin", components::argmin, ReducerKind::located, true, true, false},
    {Reducer::logsumexp, "logsumexp", components::logsumexp, ReducerKind::scaled, true, false, false},
    {Reducer::attention, "attention", components::attention, ReducerKind::scaled, true, false, false},
    {Reducer::welford, "welford", components::welford, ReducerKind::moments, true, false, false},
});

consteval bool reducers_in_order() {
  for (size_t k = 0; k < reducers.size(); ++k) {
    if (static_cast<size_t>(reducers[k].reducer) != k || reducers[k].components.size() > most_components) return false;
    for (const Component& component : reducers[k].components)
      if (component.align.size() > most_operations) return false;
  }
  return reducers.size() == static_cast<size_t>(Reducer::count_);
}
static_assert(reducers_in_order(), "every reducer has a row, in the order of the enumeration");

constexpr const ReducerInfo& info(Reducer r) { return reducers[static_cast<size_t>(r)]; }
constexpr std::string_view name(Reducer r) { return info(r).name; }
/// Returns the number of components of the state: of the inputs and of the results of a reduction.
constexpr size_t components_of(Reducer r) { return info(r).components.size(); }
/// Returns the operator of a reducer whose state is one number; of others that of the first component.
constexpr ScalarOp combine(Reducer r) { return info(r).components[0].combine; }
inline bool takes(Reducer r, Dtype t) {
  return is_float(t) ? info(r).floats : is_integer(t) ? info(r).integers : t == bool_ && info(r).booleans;
}
/// Returns the dtype of a component where the elements have dtype `t`.
constexpr Dtype component_dtype(Reducer r, size_t component, Dtype t) {
  return info(r).components[component].index ? uint32 : t;
}
/// Returns what does not change the other state when combined with it; `t`: the dtype of the component.
Number identity(Reducer r, Dtype t, size_t component = 0);

/// Computes a component's alignment. `apply(op, operands)` computes an operator; `constant(component, operand)` gives
/// what `identity_here`, `infinity_here` and `one_here` stand for.
template <class T, class Apply, class Constant>
class Alignment {
 public:
  /// `together`: the components that are combined already.
  Alignment(Reducer r, size_t component, std::span<const T> together, const Apply& apply, const Constant& constant)
      : component_(component), steps_(info(r).components[component].align), combined_(together), apply_(apply),
        constant_(constant) {
    for (size_t k = 0; k < steps_.size(); ++k)
      if (!of_side(k)) results_[k] = compute(k, {});
  }

  /// Returns the component of one side in the frame of `together`. What no side has a part in is computed once.
  T operator()(std::span<const T> side) {
    if (steps_.empty()) return side[component_];
    for (size_t k = 0; k < steps_.size(); ++k)
      if (of_side(k)) results_[k] = compute(k, side);
    return results_[steps_.size() - 1];
  }

 private:
  /// Returns whether an operation depends on the side that is aligned.
  bool of_side(size_t k) const {
    const auto count = static_cast<size_t>(info(steps_[k].op).arity);
    for (size_t a = 0; a < count; ++a) {
      const int8_t which = steps_[k].operands[a];
      if (which < combined || (which >= operation && of_side(static_cast<size_t>(which - operation)))) return true;
    }
    return false;
  }

  T operand(int8_t which, std::span<const T> side) const {
    if (which >= operation) return results_[static_cast<size_t>(which - operation)];
    if (which >= identity_here) return constant_(component_, static_cast<Operand>(which));
    return which >= combined ? combined_[static_cast<size_t>(which - combined)] : side[static_cast<size_t>(which)];
  }

  T compute(size_t k, std::span<const T> side) const {
    std::array<T, 3> operands{};
    const auto count = static_cast<size_t>(info(steps_[k].op).arity);
    for (size_t a = 0; a < count; ++a) operands[a] = operand(steps_[k].operands[a], side);
    return apply_(steps_[k].op, std::span<const T>(operands).first(count));
  }

  const size_t component_;
  const std::span<const Operation> steps_;
  const std::span<const T> combined_;
  const Apply& apply_;
  const Constant& constant_;
  std::array<T, most_operations> results_{};
};

/// Combines two states or more by the components in order: each aligned on all sides, then by its operator. The first
/// side comes last: constants among the elements behind it fold, and few elements lose less when they are added to each
/// other before they are added to a sum of many.
template <class T, class Apply, class Constant>
std::vector<T> combined_states(Reducer r, std::span<const std::vector<T>> sides, const Apply& apply,
                               const Constant& constant) {
  std::vector<T> out;
  for (size_t k = 0; k < components_of(r); ++k) {
    Alignment<T, Apply, Constant> align(r, k, out, apply, constant);
    const auto both = [&](T x, T y) {
      const T operands[] = {x, y};
      return apply(info(r).components[k].combine, std::span<const T>(operands));
    };
    const T first = align(sides[0]);
    T rest = align(sides[1]);
    for (size_t i = 2; i < sides.size(); ++i) rest = both(rest, align(sides[i]));
    out.push_back(both(first, rest));
  }
  return out;
}

/// Returns what a constant of an alignment stands for; `t`: the dtype of the component.
Number constant_of(Reducer r, size_t component, Operand which, Dtype t);
/// Returns the basic operations of bringing one side of a state to a common frame.
double cost_of_frame(Reducer r);

}  // namespace weft::kernel
