// The table of scalar operators and what each means, element by element.
#include "kernel/scalar.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "base/error.h"
#include "base/half.h"

namespace weft::kernel {
namespace {

constexpr auto same = ScalarResult::same;
constexpr auto boolean = ScalarResult::boolean;
constexpr size_t op_count = static_cast<size_t>(ScalarOp::count_);

// op, name, arity, result, basic, floats, integers, booleans, flops, ulp
constexpr auto table = std::to_array<ScalarInfo>({
    {ScalarOp::neg, "neg", 1, same, true, true, true, false, 1, 0},
    {ScalarOp::abs, "abs", 1, same, true, true, true, false, 1, 0},
    {ScalarOp::add, "add", 2, same, true, true, true, false, 1, 0},
    {ScalarOp::sub, "sub", 2, same, true, true, true, false, 1, 0},
    {ScalarOp::mul, "mul", 2, same, true, true, true, false, 1, 0},
    {ScalarOp::div, "div", 2, same, true, true, false, false, 4, 0},
    {ScalarOp::max, "max", 2, same, true, true, true, false, 1, 0},
    {ScalarOp::min, "min", 2, same, true, true, true, false, 1, 0},
    {ScalarOp::fma, "fma", 3, same, true, true, false, false, 2, 0},
    {ScalarOp::floordiv, "floordiv", 2, same, true, true, true, false, 8, 0},
    {ScalarOp::mod, "mod", 2, same, true, true, true, false, 10, 0},
    {ScalarOp::sqrt, "sqrt", 1, same, true, true, false, false, 4, 0},
    {ScalarOp::floor, "floor", 1, same, true, true, false, false, 1, 0},
    {ScalarOp::ceil, "ceil", 1, same, true, true, false, false, 1, 0},
    {ScalarOp::trunc, "trunc", 1, same, true, true, false, false, 1, 0},
    {ScalarOp::round, "round", 1, same, true, true, false, false, 1, 0},
    {ScalarOp::bit_and, "bit_and", 2, same, true, false, true, true, 1, 0},
    {ScalarOp::bit_or, "bit_or", 2, same, true, false, true, true, 1, 0},
    {ScalarOp::bit_xor, "bit_xor", 2, same, true, false, true, true, 1, 0},
    {ScalarOp::bit_not, "bit_not", 1, same, true, false, true, true, 1, 0},
    {ScalarOp::shl, "shl", 2, same, true, false, true, false, 1, 0},
    {ScalarOp::shr, "shr", 2, same, true, false, true, false, 1, 0},
    {ScalarOp::eq, "eq", 2, boolean, true, true, true, true, 1, 0},
    {ScalarOp::ne, "ne", 2, boolean, true, true, true, true, 1, 0},
    {ScalarOp::lt, "lt", 2, boolean, true, true, true, true, 1, 0},
    {ScalarOp::le, "le", 2, boolean, true, true, true, true, 1, 0},
    {ScalarOp::select, "select", 3, same, true, true, true, true, 1, 0},
    {ScalarOp::mulhi, "mulhi", 2, same, true, false, true, false, 2, 0},
    {ScalarOp::ldexp, "ldexp", 2, same, true, true, false, false, 1, 0},
    {ScalarOp::recip, "recip", 1, same, false, true, false, false, 4, 0},
    {ScalarOp::rsqrt, "rsqrt", 1, same, false, true, false, false, 8, 1.5},
    {ScalarOp::square, "square", 1, same, false, true, true, false, 1, 0},
    {ScalarOp::sign, "sign", 1, same, false, true, true, false, 3, 0},
    {ScalarOp::exp, "exp", 1, same, false, true, false, false, 12, 1},
    {ScalarOp::exp2, "exp2", 1, same, false, true, false, false, 11, 1},
    {ScalarOp::expm1, "expm1", 1, same, false, true, false, false, 18, 1.5},
    {ScalarOp::log, "log", 1, same, false, true, false, false, 18, 1},
    {ScalarOp::log2, "log2", 1, same, false, true, false, false, 18, 1},
    {ScalarOp::log10, "log10", 1, same, false, true, false, false, 20, 2},
    {ScalarOp::log1p, "log1p", 1, same, false, true, false, false, 22, 1.5},
    {ScalarOp::sin, "sin", 1, same, false, true, false, false, 30, 2},
    {ScalarOp::cos, "cos", 1, same, false, true, false, false, 30, 2},
    {ScalarOp::tan, "tan", 1, same, false, true, false, false, 36, 4.5},
    {ScalarOp::arcsin, "arcsin", 1, same, false, true, false, false, 24, 3},
    {ScalarOp::arccos, "arccos", 1, same, false, true, false, false, 26, 2.5},
    {ScalarOp::arctan, "arctan", 1, same, false, true, false, false, 26, 2},
    {ScalarOp::sinh, "sinh", 1, same, false, true, false, false, 26, 3},
    {ScalarOp::cosh, "cosh", 1, same, false, true, false, false, 22, 3},
    {ScalarOp::tanh, "tanh", 1, same, false, true, false, false, 20, 2.5},
    {ScalarOp::arcsinh, "arcsinh", 1, same, false, true, false, false, 34, 4},
    {ScalarOp::arccosh, "arccosh", 1, same, false, true, false, false, 34, 4},
    {ScalarOp::arctanh, "arctanh", 1, same, false, true, false, false, 30, 4},
    {ScalarOp::erf, "erf", 1, same, false, true, false, false, 24, 1.5},
    {ScalarOp::erfinv, "erfinv", 1, same, false, true, false, false, 40, 3.5},
    {ScalarOp::sigmoid, "sigmoid", 1, same, false, true, false, false, 17, 2.5},
    {ScalarOp::pow, "pow", 2, same, false, true, false, false, 50, 8},
    {ScalarOp::arctan2, "arctan2", 2, same, false, true, false, false, 32, 3},
    {ScalarOp::logaddexp, "logaddexp", 2, same, false, true, false, false, 40, 4},
    {ScalarOp::threefry0, "threefry0", 4, same, false, false, true, false, 75, 0},
    {ScalarOp::threefry1, "threefry1", 4, same, false, false, true, false, 75, 0},
    {ScalarOp::philox0, "philox0", 6, same, false, false, true, false, 120, 0},
    {ScalarOp::philox1, "philox1", 6, same, false, false, true, false, 120, 0},
    {ScalarOp::philox2, "philox2", 6, same, false, false, true, false, 120, 0},
    {ScalarOp::philox3, "philox3", 6, same, false, false, true, false, 120, 0},
});

consteval bool in_enum_order() {
  for (size_t k = 0; k < table.size(); ++k)
    if (static_cast<size_t>(table[k].op) != k || table[k].name.empty() || table[k].arity < 1 ||
        table[k].arity > most_arguments)
      return false;
  return true;
}
static_assert(table.size() == op_count, "every ScalarOp has a row");
static_assert(in_enum_order(), "rows stand in the order of the enum");

int64_t wrap(int64_t v, Dtype t) {
  switch (t.val()) {
    case Dtype::Val::bool_: return v != 0;
    case Dtype::Val::uint8: return static_cast<uint8_t>(v);
    case Dtype::Val::uint16: return static_cast<uint16_t>(v);
    case Dtype::Val::uint32: return static_cast<uint32_t>(v);
    case Dtype::Val::int8: return static_cast<int8_t>(v);
    case Dtype::Val::int16: return static_cast<int16_t>(v);
    case Dtype::Val::int32: return static_cast<int32_t>(v);
    default: return v;
  }
}

// float16 and bfloat16 are rounded from float32: their arithmetic is float32 arithmetic with a rounding after each
// operation.
double round_float(double v, Dtype t) {
  if (t == float64) return v;
  const float f = static_cast<float>(v);
  if (is_low_float(t)) return low_to_float(float_to_low(f, t), t);
  return f;
}

int64_t saturate(double v, Dtype t) {
  if (std::isnan(v)) return 0;
  v = std::trunc(v);
  const int bits = t.size() * 8 - (is_signed(t) ? 1 : 0);
  const double end = std::ldexp(1.0, bits);  // one past the largest value
  if (v >= end) return bits == 64 ? -1 : static_cast<int64_t>((uint64_t{1} << bits) - 1);
  if (is_unsigned(t)) return v <= 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(v));
  return v <= -end ? static_cast<int64_t>(~uint64_t{0} << bits) : static_cast<int64_t>(v);
}

uint32_t threefry(const Number* args, int word) {
  const uint32_t k0 = static_cast<uint32_t>(args[0].i), k1 = static_cast<uint32_t>(args[1].i);
  const std::array<uint32_t, 3> key{k0, k1, k0 ^ k1 ^ 0x1BD11BDAu};
  constexpr int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  uint32_t x0 = static_cast<uint32_t>(args[2].i) + key[0], x1 = static_cast<uint32_t>(args[3].i) + key[1];
  for (uint32_t group = 0; group < 5; ++group) {
    for (int r : rotations[group % 2]) {
      x0 += x1;
      x1 = std::rotl(x1, r) ^ x0;
    }
    x0 += key[(group + 1) % 3];
    x1 += key[(group + 2) % 3] + group + 1;
  }
  return word == 0 ? x0 : x1;
}

uint32_t philox(const Number* args, int word) {
  uint32_t key[2] = {static_cast<uint32_t>(args[0].i), static_cast<uint32_t>(args[1].i)}, x[4];
  for (int k = 0; k < 4; ++k) x[k] = static_cast<uint32_t>(args[2 + k].i);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * x[0], b = uint64_t{0xCD9E8D57u} * x[2];
    const uint32_t next[4] = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ key[0], static_cast<uint32_t>(b),
                              static_cast<uint32_t>(a >> 32) ^ x[3] ^ key[1], static_cast<uint32_t>(a)};
    std::copy(next, next + 4, x);
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return x[word];
}

// max + log1p(exp(-|a - b|)); equal arguments, infinite ones among them, are log(2) above both.
double log_add_exp(double a, double b) {
  if (a == b) return a + std::numbers::ln2;
  return std::isnan(a) || std::isnan(b) ? a + b : std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}

// A closed-form start (Winitzki, 2008), then Halley's method on erf, or on erfc where erf is close to 1 and would
// cancel.
double erf_inverse(double x) {
  const double size = std::fabs(x);
  if (!(size < 1))
    return size == 1 ? std::copysign(std::numeric_limits<double>::infinity(), x)
                     : std::numeric_limits<double>::quiet_NaN();
  if (size < 1e-8) return x * (std::sqrt(std::numbers::pi) / 2);  // the next term is π x² / 12, below half an ulp
  const double rest = 1 - size;
  const double log_term = std::log(rest) + std::log1p(size), c = 2 / (std::numbers::pi * 0.147) + log_term / 2;
  double y = std::sqrt(std::sqrt(c * c - log_term / 0.147) - c);
  for (int step = 0; step < 4; ++step) {
    const double error = size > 0.5 ? rest - std::erfc(y) : std::erf(y) - size;
    const double u = error * std::exp(y * y) * (std::sqrt(std::numbers::pi) / 2);
    y -= u / (1 + y * u);
  }
  return std::copysign(y, x);
}

// IEEE 754-2019 maximum and minimum: NaN wins, and -0 is less than +0.
double float_max(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
double float_min(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

// The sign of the divisor, as in Python; the addition is the only rounding.
double float_mod(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

[[noreturn]] void refuse(ScalarOp op, Dtype t) {
  throw_internal("scalar", std::string(info(op).name) + " is not defined on " + dtype_name(t));
}

Number float_reference(ScalarOp op, Dtype t, const Number* args) {
  const double a = args[0].real(), b = info(op).arity > 1 ? args[1].real() : 0,
               c = info(op).arity > 2 ? args[2].real() : 0;
  const bool narrow = t != float64;
  auto real = [](double v) { return Number::of_real(v); };
  switch (op) {
    case ScalarOp::neg: return real(-a);
    case ScalarOp::abs: return real(std::fabs(a));
    case ScalarOp::add: return real(a + b);
    case ScalarOp::sub: return real(a - b);
    case ScalarOp::mul: return real(a * b);
    case ScalarOp::div: return real(a / b);
    case ScalarOp::max: return real(float_max(a, b));
    case ScalarOp::min: return real(float_min(a, b));
    // One rounding: float32 must not go through double, which would round twice.
    case ScalarOp::fma:
      return real(narrow ? std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c))
                         : std::fma(a, b, c));
    case ScalarOp::floordiv: return real(std::floor(narrow ? static_cast<float>(a / b) : a / b));
    case ScalarOp::mod: return real(float_mod(a, b));
    case ScalarOp::sqrt: return real(std::sqrt(a));
    case ScalarOp::floor: return real(std::floor(a));
    case ScalarOp::ceil: return real(std::ceil(a));
    case ScalarOp::trunc: return real(std::trunc(a));
    case ScalarOp::round: return real(std::nearbyint(a));
    case ScalarOp::ldexp:  // in double the product is exact, whatever comes out in float32
      if (!narrow) refuse(op, t);
      return real(std::isnan(b) ? b : std::ldexp(a, static_cast<int>(std::clamp(std::floor(b), -400.0, 400.0))));
    case ScalarOp::recip: return real(1 / a);
    case ScalarOp::rsqrt: return real(1 / std::sqrt(a));
    case ScalarOp::square: return real(a * a);
    case ScalarOp::sign: return real(a > 0 ? 1 : a < 0 ? -1 : 0);
    case ScalarOp::exp: return real(std::exp(a));
    case ScalarOp::exp2: return real(std::exp2(a));
    case ScalarOp::expm1: return real(std::expm1(a));
    case ScalarOp::log: return real(std::log(a));
    case ScalarOp::log2: return real(std::log2(a));
    case ScalarOp::log10: return real(std::log10(a));
    case ScalarOp::log1p: return real(std::log1p(a));
    case ScalarOp::sin: return real(std::sin(a));
    case ScalarOp::cos: return real(std::cos(a));
    case ScalarOp::tan: return real(std::tan(a));
    case ScalarOp::arcsin: return real(std::asin(a));
    case ScalarOp::arccos: return real(std::acos(a));
    case ScalarOp::arctan: return real(std::atan(a));
    case ScalarOp::sinh: return real(std::sinh(a));
    case ScalarOp::cosh: return real(std::cosh(a));
    case ScalarOp::tanh: return real(std::tanh(a));
    case ScalarOp::arcsinh: return real(std::asinh(a));
    case ScalarOp::arccosh: return real(std::acosh(a));
    case ScalarOp::arctanh: return real(std::atanh(a));
    case ScalarOp::erf: return real(std::erf(a));
    case ScalarOp::erfinv: return real(erf_inverse(a));
    case ScalarOp::sigmoid: return real(1 / (1 + std::exp(-a)));
    case ScalarOp::pow: return real(std::pow(a, b));
    case ScalarOp::arctan2: return real(std::atan2(a, b));
    case ScalarOp::logaddexp: return real(log_add_exp(a, b));
    case ScalarOp::eq: return Number::of_int(a == b);
    case ScalarOp::ne: return Number::of_int(a != b);
    case ScalarOp::lt: return Number::of_int(a < b);
    case ScalarOp::le: return Number::of_int(a <= b);
    default: refuse(op, t);
  }
}

uint64_t shift(ScalarOp op, Dtype t, int64_t a, uint64_t count) {
  const uint64_t width = t.size() * 8u;
  if (op == ScalarOp::shl) return count >= width ? 0 : static_cast<uint64_t>(a) << count;
  if (is_unsigned(t)) return count >= width ? 0 : static_cast<uint64_t>(a) >> count;
  return static_cast<uint64_t>(a >> (count >= width ? 63 : count));
}

// Operands come sign- or zero-extended to 64 bits, so that wrapping the 64-bit result gives the result of the narrow
// type.
Number integer_reference(ScalarOp op, Dtype t, const Number* args) {
  const int64_t a = args[0].i, b = info(op).arity > 1 ? args[1].i : 0;
  const uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const bool sign = is_signed(t);
  const bool less = sign ? a < b : ua < ub;
  auto whole = [&](uint64_t v) { return Number::of_int(wrap(static_cast<int64_t>(v), t)); };
  switch (op) {
    case ScalarOp::neg: return whole(0 - ua);
    case ScalarOp::abs: return whole(sign && a < 0 ? 0 - ua : ua);
    case ScalarOp::add: return whole(ua + ub);
    case ScalarOp::sub: return whole(ua - ub);
    case ScalarOp::mul: return whole(ua * ub);
    case ScalarOp::square: return whole(ua * ua);
    case ScalarOp::max: return whole(less ? ub : ua);
    case ScalarOp::min: return whole(less ? ua : ub);
    case ScalarOp::floordiv:
      if (b == 0) return whole(0);
      if (!sign) return whole(ua / ub);
      if (b == -1) return whole(0 - ua);
      return whole(static_cast<uint64_t>(a / b - (a % b != 0 && (a % b < 0) != (b < 0))));
    case ScalarOp::mod:
      if (b == 0 || (sign && b == -1)) return whole(0);
      if (!sign) return whole(ua % ub);
      return whole(static_cast<uint64_t>(a % b + (a % b != 0 && (a % b < 0) != (b < 0) ? b : 0)));
    case ScalarOp::bit_and: return whole(ua & ub);
    case ScalarOp::bit_or: return whole(ua | ub);
    case ScalarOp::bit_xor: return whole(ua ^ ub);
    case ScalarOp::bit_not: return t == bool_ ? Number::of_int(a == 0) : whole(~ua);
    case ScalarOp::shl:
    case ScalarOp::shr: return whole(shift(op, t, a, ub));
    case ScalarOp::eq: return Number::of_int(a == b);
    case ScalarOp::ne: return Number::of_int(a != b);
    case ScalarOp::lt: return Number::of_int(less);
    case ScalarOp::le: return Number::of_int(less || a == b);
    case ScalarOp::sign: return whole(static_cast<uint64_t>(sign ? (a > 0) - (a < 0) : a != 0));
    case ScalarOp::mulhi:
      if (!is_unsigned(t)) refuse(op, t);
      return whole(static_cast<uint64_t>((static_cast<unsigned __int128>(ua) * ub) >> (t.size() * 8)));
    case ScalarOp::threefry0:
    case ScalarOp::threefry1:
      if (t != uint32) refuse(op, t);
      return whole(threefry(args, op == ScalarOp::threefry1));
    case ScalarOp::philox0:
    case ScalarOp::philox1:
    case ScalarOp::philox2:
    case ScalarOp::philox3:
      if (t != uint32) refuse(op, t);
      return whole(philox(args, static_cast<int>(op) - static_cast<int>(ScalarOp::philox0)));
    default: refuse(op, t);
  }
}

}  // namespace

const ScalarInfo& info(ScalarOp op) { return table.at(static_cast<size_t>(op)); }

Number reference(ScalarOp op, Dtype t, const Number* args) {
  if (op == ScalarOp::select) return args[0].i != 0 ? args[1] : args[2];
  const ScalarInfo& row = info(op);
  if (!(is_float(t) ? row.floats : is_integer(t) ? row.integers : t == bool_ && row.booleans)) refuse(op, t);
  return is_float(t) ? float_reference(op, t, args) : integer_reference(op, t, args);
}

Number reference_cast(Number v, Dtype from, Dtype to) {
  if (is_float(from)) {
    if (is_float(to)) return Number::of_real(round_float(v.real(), to));
    return Number::of_int(to == bool_ ? v.real() != 0 : saturate(v.real(), to));
  }
  if (!is_float(to)) return Number::of_int(wrap(v.i, to));
  // One rounding to float32 or float64, straight from the integer.
  const bool wide = from == uint64;
  if (to == float64)
    return Number::of_real(wide ? static_cast<double>(static_cast<uint64_t>(v.i)) : static_cast<double>(v.i));
  const float f = wide ? static_cast<float>(static_cast<uint64_t>(v.i)) : static_cast<float>(v.i);
  return Number::of_real(round_float(f, to));
}

Number round_to(Number v, Dtype t) { return reference_cast(v, v.integral ? int64 : float64, t); }

std::string_view name(Reducer r) {
  constexpr std::string_view names[] = {"sum", "prod", "max", "min", "all", "any"};
  return names[static_cast<size_t>(r)];
}

ScalarOp combine(Reducer r) {
  constexpr ScalarOp ops[] = {ScalarOp::add, ScalarOp::mul,     ScalarOp::max,
                              ScalarOp::min, ScalarOp::bit_and, ScalarOp::bit_or};
  return ops[static_cast<size_t>(r)];
}

Number identity(Reducer r, Dtype t) {
  const double infinity = std::numeric_limits<double>::infinity();
  const bool smallest = r == Reducer::max;
  switch (r) {
    case Reducer::sum: return round_to(Number::of_int(0), t);
    case Reducer::prod: return round_to(Number::of_int(1), t);
    case Reducer::all: return Number::of_int(1);
    case Reducer::any: return Number::of_int(0);
    default: break;
  }
  if (is_float(t)) return round_to(Number::of_real(smallest ? -infinity : infinity), t);
  if (t == bool_) return Number::of_int(!smallest);
  return Number::of_int(saturate(smallest ? -infinity : infinity, t));
}

}  // namespace weft::kernel
