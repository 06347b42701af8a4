#pragma once
// The reducers: operators that combine the elements of an axis (reductions and cumulative operations) into one number.
// A new one is an enumerator and its row. Its array function is a line of weft/ops.h.
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "kernel/scalar.h"

namespace weft::kernel {

enum class Reducer : uint8_t { sum, prod, max, min, all, any, bitwise_xor, count_ };

/// What the rules of the graph (derivatives, intervals, complex numbers, the order of combination) ask of a reducer.
enum class ReducerKind : uint8_t {
  sum,      // linear: the derivative repeats the cotangent
  product,  // the derivative is the product of the other elements
  extreme,  // the result is one of the elements, which gets the derivative, and stays within their interval
  bitwise,  // no derivative
};

struct ReducerInfo {
  Reducer reducer;
  std::string_view name;  // in prints, errors and exported files
  ScalarOp combine;       // associative and commutative, up to rounding
  ReducerKind kind;
  double identity;                  // of integers the nearest one that the dtype holds; of bool whether it is above 0
  bool floats, integers, booleans;  // the dtypes it takes; of the graph, complex64 as floats
};

inline constexpr double infinite = std::numeric_limits<double>::infinity();
inline constexpr auto reducers = std::to_array<ReducerInfo>({
    {Reducer::sum, "sum", ScalarOp::add, ReducerKind::sum, 0, true, true, false},
    {Reducer::prod, "prod", ScalarOp::mul, ReducerKind::product, 1, true, true, false},
    {Reducer::max, "max", ScalarOp::max, ReducerKind::extreme, -infinite, true, true, false},
    {Reducer::min, "min", ScalarOp::min, ReducerKind::extreme, infinite, true, true, false},
    {Reducer::all, "all", ScalarOp::bit_and, ReducerKind::bitwise, 1, false, false, true},
    {Reducer::any, "any", ScalarOp::bit_or, ReducerKind::bitwise, 0, false, false, true},
    {Reducer::bitwise_xor, "xor", ScalarOp::bit_xor, ReducerKind::bitwise, 0, false, true, true},
});

consteval bool reducers_in_order() {
  for (size_t k = 0; k < reducers.size(); ++k)
    if (static_cast<size_t>(reducers[k].reducer) != k) return false;
  return reducers.size() == static_cast<size_t>(Reducer::count_);
}
static_assert(reducers_in_order(), "every reducer has a row, in the order of the enumeration");

constexpr const ReducerInfo& info(Reducer r) { return reducers[static_cast<size_t>(r)]; }
constexpr std::string_view name(Reducer r) { return info(r).name; }
constexpr ScalarOp combine(Reducer r) { return info(r).combine; }
inline bool takes(Reducer r, Dtype t) {
  return is_float(t) ? info(r).floats : is_integer(t) ? info(r).integers : t == bool_ && info(r).booleans;
}
/// What does not change the other argument of `combine`.
Number identity(Reducer r, Dtype t);

}  // namespace weft::kernel
