#include "mlx/operators.h"

#include <algorithm>
#include <limits>

#include "graph/table.h"
#include "weft/ops.h"

// Bounds. A result of Weft's lies within `ulp` of docs/operators.md of the true value; a bound adds MLX's share. MLX
// 0.32.4 on an x86-64 CPU lies within these errors of float64, over 600,000 arguments (ulp of float32): functions of
// the C library 2.2, erfinv 2, exp 1.5 on [-1, 1], 8 on [-10, 10] and 63 on [-86, 88], sigmoid 63; erf is off by 5e-7
// near 0 and gives -0 at 0. The shares here are smaller where the golden arguments do not reach the worst of these: 4,
// and 44 for exp and what is made of it. Half types are computed in float32 by both and rounded once: at most one step
// apart. In float64 MLX computes exp, sin, cos, erf, erfinv and round with decimals through float32.
namespace weft::test {
namespace {

using Unary = array (*)(const array&, StreamOrDevice);
using Binary = array (*)(const array&, const array&, StreamOrDevice);
using Table = std::map<std::string, Operator>;

constexpr Bound exact{};

double weft_ulp(const std::string& name) {
  for (const graph::Row* row : graph::table())
    if (row->name == name) return row->ulp;
  throw std::logic_error("no row " + name);
}

constexpr double through_float32 = 0x1p29;

Operator approximate(std::function<Arrays(const Arrays&)> call, double ulp, double float64_factor = 1) {
  return {std::move(call), {ulp, 0}, {1, 0}, float64_factor};
}

std::function<Arrays(const Arrays&)> unary(Unary f) {
  return [f](const Arrays& in) { return Arrays{f(in[0], {})}; };
}
std::function<Arrays(const Arrays&)> binary(Binary f) {
  return [f](const Arrays& in) { return Arrays{f(in[0], in[1], {})}; };
}

void add_exact_unary(Table& table) {
  const std::pair<const char*, Unary> rows[] = {
      {"abs", abs},
      {"ceil", ceil},
      {"conjugate", conjugate},
      {"floor", floor},
      {"imag", imag},
      {"isfinite", isfinite},
      {"isinf", isinf},
      {"isnan", isnan},
      {"isneginf", isneginf},
      {"isposinf", isposinf},
      {"logical_not", logical_not},
      {"bitwise_invert", bitwise_invert},
      {"negative", negative},
      {"positive", positive},
      {"real", real},
      {"round", round},
      {"sign", sign},
      {"square", square},
      {"trunc", trunc},
      {"to_fp8", to_fp8},
      {"stop_gradient", stop_gradient},
      {"zeros_like", [](const array& x, StreamOrDevice s) { return zeros_like(x, s); }},
      {"ones_like", [](const array& x, StreamOrDevice s) { return ones_like(x, s); }},
      {"nan_to_num", [](const array& x, StreamOrDevice) { return nan_to_num(x); }}};
  for (const auto& [name, f] : rows) table[name] = {unary(f), exact, exact};
  for (Dtype t : {bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64,
                  complex64})
    table[std::string("astype_") + dtype_name(t)] = {[t](const Arrays& in) { return Arrays{astype(in[0], t)}; }, exact,
                                                     exact};
}

void add_unary(Table& table) {
  struct Line {
    const char* name;
    const char* row;  // of the operator table
    Unary f;
    double mlx;         // MLX's share of the bound
    double factor = 1;  // of float64's bound
  };
  const Line lines[] = {{"arccos", "arccos", arccos, 4},
                        {"arccosh", "arccosh", arccosh, 4},
                        {"arcsin", "arcsin", arcsin, 4},
                        {"arcsinh", "arcsinh", arcsinh, 4},
                        {"arctan", "arctan", arctan, 4},
                        {"arctanh", "arctanh", arctanh, 4},
                        {"cos", "cos", cos, 4, through_float32},
                        {"cosh", "cosh", cosh, 4},
                        {"erf", "erf", erf, 4, through_float32},
                        {"erfinv", "erfinv", erfinv, 16, through_float32},
                        {"exp", "exp", exp, 44, through_float32},
                        {"expm1", "expm1", expm1, 4},
                        {"log", "log", log, 4},
                        {"log10", "log10", log10, 4},
                        {"log1p", "log1p", log1p, 4},
                        {"log2", "log2", log2, 4},
                        {"reciprocal", "recip", reciprocal, 1},
                        {"rsqrt", "rsqrt", rsqrt, 1},
                        {"sigmoid", "sigmoid", sigmoid, 44, through_float32},
                        {"sin", "sin", sin, 4, through_float32},
                        {"sinh", "sinh", sinh, 4},
                        {"sqrt", "sqrt", sqrt, 1},
                        {"tan", "tan", tan, 4},
                        {"tanh", "tanh", tanh, 4},
                        {"degrees", "mul", degrees, 1},
                        {"radians", "mul", radians, 1}};
  for (const Line& line : lines)
    table[line.name] = approximate(unary(line.f), weft_ulp(line.row) + line.mlx, line.factor);
  table["erf"].bound = {8, 1, false}, table["erf"].half_bound = {1, 0x1p-10, false};
  table["sin"].bound.signed_zero = table["sin"].half_bound.signed_zero = false;  // MLX's sin(-0) is 0
  // x · 100, rounded, / 100: the division may be a product with the reciprocal.
  table["round_2"] = approximate([](const Arrays& in) { return Arrays{round(in[0], 2)}; }, 1, through_float32);
}

void add_binary(Table& table) {
  const std::pair<const char*, Binary> rows[] = {
      {"add", add},
      {"subtract", subtract},
      {"multiply", multiply},
      {"divide", divide},
      {"maximum", maximum},
      {"minimum", minimum},
      {"equal", equal},
      {"not_equal", not_equal},
      {"greater", greater},
      {"greater_equal", greater_equal},
      {"less", less},
      {"less_equal", less_equal},
      {"logical_and", logical_and},
      {"logical_or", logical_or},
      {"logical_xor", logical_xor},
      {"bitwise_and", bitwise_and},
      {"bitwise_or", bitwise_or},
      {"bitwise_xor", bitwise_xor},
      {"left_shift", left_shift},
      {"right_shift", right_shift},
      {"floor_divide", floor_divide},
      {"remainder", remainder},
      {"outer", outer},
      {"isclose", [](const array& a, const array& b, StreamOrDevice) { return isclose(a, b); }},
      {"allclose", [](const array& a, const array& b, StreamOrDevice) { return allclose(a, b); }},
      {"array_equal", [](const array& a, const array& b, StreamOrDevice) { return array_equal(a, b); }}};
  for (const auto& [name, f] : rows) table[name] = {binary(f), exact, exact};
  // Of 0 and -0 MLX takes the second, or either.
  for (const char* name : {"maximum", "minimum", "clip"})
    table[name].bound.signed_zero = table[name].half_bound.signed_zero = false;
  table["arctan2"] = approximate(binary(arctan2), weft_ulp("arctan2") + 1);
  table["logaddexp"] = {binary(logaddexp), {weft_ulp("logaddexp") + 4, 1}, {1, 1}, through_float32};
  table["power"] = approximate(binary(power), weft_ulp("pow") + 4);
  table["inner"] = approximate(binary(inner), 4);
  table["divmod"] = {[](const Arrays& in) { return divmod(in[0], in[1]); }, exact, exact};
  table["where"] = {[](const Arrays& in) { return Arrays{where(in[0], in[0], in[1])}; }, exact, exact};
  table["clip"] = {
      [](const Arrays& in) {
        return Arrays{clip(in[0], minimum(in[1], array(1, in[1].dtype())), maximum(in[1], array(1, in[1].dtype())))};
      },
      exact, exact};
}

using Reduction = array (*)(const array&, int axis);

void add_reductions(Table& table) {
  struct Line {
    const char* name;
    Reduction f;
    Bound bound, half;
    double factor = 1;
  };
  constexpr double through = through_float32;
  // Sums of 6 numbers of magnitude 10 are off by the rounding of 5 additions, in an order that is free; MLX keeps
  // partial sums of half types in the half type.
  const Bound sums{6, 16, false}, products{8, 0, true}, logs{8, 8, false};
  const Line lines[] = {{"all", [](const array& a, int x) { return all(a, x); }, exact, exact},
                        {"any", [](const array& a, int x) { return any(a, x); }, exact, exact},
                        {"count_nonzero", [](const array& a, int x) { return count_nonzero(a, x); }, exact, exact},
                        {"sum", [](const array& a, int x) { return sum(a, x); }, sums, sums},
                        {"prod", [](const array& a, int x) { return prod(a, x); }, products, products},
                        {"mean", [](const array& a, int x) { return mean(a, x); }, sums, sums},
                        {"var", [](const array& a, int x) { return var(a, x); }, {12, 32, false}, {12, 32, false}},
                        {"std", [](const array& a, int x) { return std(a, x); }, {12, 8, false}, {12, 8, false}},
                        {"max", [](const array& a, int x) { return max(a, x); }, exact, exact},
                        {"min", [](const array& a, int x) { return min(a, x); }, exact, exact},
                        {"argmax", [](const array& a, int x) { return argmax(a, x); }, exact, exact},
                        {"argmin", [](const array& a, int x) { return argmin(a, x); }, exact, exact},
                        {"logsumexp", [](const array& a, int x) { return logsumexp(a, x); }, logs, {1, 8}, through},
                        {"softmax", [](const array& a, int x) { return softmax(a, x); }, {50, 0}, {2, 0}, through},
                        {"sort", [](const array& a, int x) { return sort(a, x); }, exact, exact},
                        {"argsort", [](const array& a, int x) { return argsort(a, x); }, exact, exact},
                        {"median", [](const array& a, int x) { return median(a, x); }, exact, {1, 0}}};
  for (const Line& line : lines)
    for (int axis : {0, 1})
      table[line.name + ("_" + std::to_string(axis))] = {
          [f = line.f, axis](const Arrays& in) { return Arrays{f(in[0], axis)}; }, line.bound, line.half, line.factor};
}

void add_scans(Table& table) {
  using Scan = array (*)(const array&, int, bool, bool);
  struct Line {
    const char* name;
    Scan f;
    Bound bound, half;
    double factor = 1;
  };
  const Bound sums{6, 16, false}, products{8, 0, true}, logs{8, 8, false};
  const Line lines[] = {
      {"cumsum", [](const array& a, int x, bool r, bool i) { return cumsum(a, x, r, i); }, sums, sums},
      {"cumprod", [](const array& a, int x, bool r, bool i) { return cumprod(a, x, r, i); }, products, products},
      {"cummax", [](const array& a, int x, bool r, bool i) { return cummax(a, x, r, i); }, exact, exact},
      {"cummin", [](const array& a, int x, bool r, bool i) { return cummin(a, x, r, i); }, exact, exact},
      {"logcumsumexp", [](const array& a, int x, bool r, bool i) { return logcumsumexp(a, x, r, i); }, logs, logs,
       through_float32}};
  for (const Line& line : lines) {
    auto put = [&](const char* suffix, int axis, bool reverse, bool inclusive) {
      table[std::string(line.name) + suffix] = {
          [=, f = line.f](const Arrays& in) { return Arrays{f(in[0], axis, reverse, inclusive)}; }, line.bound,
          line.half, line.factor};
    };
    put("", 1, false, true), put("_reverse", 0, true, true), put("_exclusive", 1, false, false);
  }
}

}  // namespace

const Table& operators() {
  static const Table table = [] {
    Table t;
    add_exact_unary(t), add_unary(t), add_binary(t), add_reductions(t), add_scans(t);
    // Formulas of several roundings, in an order of their own; a part that is 0 has the sign of a sum of products.
    for (const char* name : {"abs", "sign", "divide", "floor_divide", "power", "prod_0", "prod_1", "cumprod",
                             "cumprod_reverse", "cumprod_exclusive", "round_2"})
      t.at(name).complex_bound = Bound{std::max(4.0, t.at(name).bound.ulp), 0, false};
    return t;
  }();
  return table;
}

}  // namespace weft::test
