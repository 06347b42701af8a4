// One CUDA C++ expression for each basic scalar operator. Sources are compiled without contraction, so that an operator
// rounds once.
#include "target/cuda/codegen/text/scalar.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/half.h"

namespace weft::target::cuda {

using kernel::ScalarOp;

const char* type_name(Dtype t) {
  switch (t.val()) {
    case Dtype::Val::bool_: return "bool";
    case Dtype::Val::uint8: return "u8";
    case Dtype::Val::uint16: return "u16";
    case Dtype::Val::uint32: return "u32";
    case Dtype::Val::uint64: return "u64";
    case Dtype::Val::int8: return "i8";
    case Dtype::Val::int16: return "i16";
    case Dtype::Val::int32: return "i32";
    case Dtype::Val::int64: return "i64";
    case Dtype::Val::float32: return "f32";
    case Dtype::Val::float64: return "f64";
    case Dtype::Val::float16:
    case Dtype::Val::bfloat16: return "u16";
    case Dtype::Val::float8_e4m3:
    case Dtype::Val::float8_e5m2: return "u8";
    default: throw_internal("cuda render", std::string("no registers for ") + dtype_name(t));
  }
}

std::string literal(Number number, Dtype t) {
  if (t == bool_) return (number.integral ? number.i != 0 : number.f != 0) ? "true" : "false";
  if (t == float32) {
    const float v = static_cast<float>(number.real());
    if (std::isfinite(v) && std::fabs(v) < 1e7f && v == std::trunc(v) && !(v == 0 && std::signbit(v)))
      return fmt::format("{:.0f}.0f", v);
    return fmt::format("real({:#x}u)", std::bit_cast<uint32_t>(v)) +
           (std::isfinite(v) ? fmt::format("/*{:.9g}*/", v) : "");
  }
  if (t == float64) return fmt::format("real((u64){:#x}ull)", std::bit_cast<uint64_t>(number.real()));
  if (is_low_float(t))
    return fmt::format("({}){:#x}", type_name(t), float_to_low(static_cast<float>(number.real()), t));
  const int64_t v = number.integral ? number.i : static_cast<int64_t>(number.f);
  if (t == uint64) return fmt::format("{}ull", static_cast<uint64_t>(v));
  if (t == uint32) return fmt::format("{}u", static_cast<uint32_t>(v));
  if (t == int64) return v == INT64_MIN ? "(i64)(1ull << 63)" : fmt::format("{}ll", v);
  if (t == int32) return v == INT32_MIN ? "(i32)(1u << 31)" : fmt::format("{}", static_cast<int32_t>(v));
  return fmt::format("({}){}", type_name(t), v);
}

namespace {

std::string on_floats(ScalarOp op, Dtype t, std::span<const std::string> a) {
  const bool wide = t == float64;
  const char* f = wide ? "" : "f";  // of the C library's functions
  switch (op) {
    case ScalarOp::neg:
      return wide ? fmt::format("real(bits({}) ^ (1ull << 63))", a[0])
                  : fmt::format("real(bits({}) ^ 0x80000000u)", a[0]);
    case ScalarOp::abs: return fmt::format("fabs{}({})", f, a[0]);
    case ScalarOp::add: return fmt::format("{} + {}", a[0], a[1]);
    case ScalarOp::sub: return fmt::format("{} - {}", a[0], a[1]);
    case ScalarOp::mul: return fmt::format("{} * {}", a[0], a[1]);
    case ScalarOp::div: return fmt::format("{} / {}", a[0], a[1]);
    case ScalarOp::max: return fmt::format("fmaximum({}, {})", a[0], a[1]);
    case ScalarOp::min: return fmt::format("fminimum({}, {})", a[0], a[1]);
    case ScalarOp::fma: return fmt::format("fma{}({}, {}, {})", f, a[0], a[1], a[2]);
    case ScalarOp::floordiv: return fmt::format("ffloordiv({}, {})", a[0], a[1]);
    case ScalarOp::mod: return fmt::format("fmodulo({}, {})", a[0], a[1]);
    case ScalarOp::sqrt: return fmt::format("sqrt{}({})", f, a[0]);
    case ScalarOp::ldexp: return fmt::format("fldexp({}, {})", a[0], a[1]);
    case ScalarOp::floor: return fmt::format("floor{}({})", f, a[0]);
    case ScalarOp::ceil: return fmt::format("ceil{}({})", f, a[0]);
    case ScalarOp::trunc: return fmt::format("trunc{}({})", f, a[0]);
    case ScalarOp::round: return fmt::format("rint{}({})", f, a[0]);
    // MUFU: relative error 2^-22.
    case ScalarOp::rsqrt:
      if (!wide) return fmt::format("frsqrt({})", a[0]);
      break;
    case ScalarOp::exp2:
      if (!wide) return fmt::format("fexp2({})", a[0]);
      break;
    case ScalarOp::recip:
      if (!wide) return fmt::format("frecip({})", a[0]);
      break;
    default: break;
  }
  const char* function = kernel::info(op).float64;
  check(wide && function, "cuda render", std::string(kernel::info(op).name) + " is not expanded");
  return fmt::format("{}({})", function, fmt::join(a, ", "));
}

/// Returns the text of integer arithmetic in the unsigned type: signed overflow is undefined in C++.
std::string wrapped(char op, Dtype t, const std::string& a, const std::string& b) {
  if (t.size() < 4) return fmt::format("({})({} {} {})", type_name(t), a, op, b);
  const char* u = t.size() == 8 ? "u64" : "u32";
  return is_signed(t) ? fmt::format("({})(({}){} {} ({}){})", type_name(t), u, a, op, u, b)
                      : fmt::format("{} {} {}", a, op, b);
}

std::string on_integers(ScalarOp op, Dtype t, std::span<const std::string> a) {
  const char* name = type_name(t);
  const bool sign = is_signed(t);
  const std::string both = fmt::format("<{}, u{}>", name, t.size() * 8);
  switch (op) {
    case ScalarOp::neg: return wrapped('-', t, literal(Number::of_int(0), t), a[0]);
    case ScalarOp::abs:
      return sign ? fmt::format("({} < ({})0 ? {} : {})", a[0], name,
                                wrapped('-', t, literal(Number::of_int(0), t), a[0]), a[0])
                  : a[0];
    case ScalarOp::add: return wrapped('+', t, a[0], a[1]);
    case ScalarOp::sub: return wrapped('-', t, a[0], a[1]);
    case ScalarOp::mul:
      return t.size() < 4 ? fmt::format("({})((u32){} * (u32){})", name, a[0], a[1]) : wrapped('*', t, a[0], a[1]);
    case ScalarOp::max: return fmt::format("imax<{}>({}, {})", name, a[0], a[1]);
    case ScalarOp::min: return fmt::format("imin<{}>({}, {})", name, a[0], a[1]);
    case ScalarOp::floordiv:
      return sign ? fmt::format("sfloordiv{}({}, {})", both, a[0], a[1])
                  : fmt::format("ufloordiv<{}>({}, {})", name, a[0], a[1]);
    case ScalarOp::mod: return fmt::format("{}modulo<{}>({}, {})", sign ? 's' : 'u', name, a[0], a[1]);
    case ScalarOp::bit_and: return fmt::format("({})({} & {})", name, a[0], a[1]);
    case ScalarOp::bit_or: return fmt::format("({})({} | {})", name, a[0], a[1]);
    case ScalarOp::bit_xor: return fmt::format("({})({} ^ {})", name, a[0], a[1]);
    case ScalarOp::bit_not: return fmt::format("({})~{}", name, a[0]);
    case ScalarOp::shl: return fmt::format("shiftleft{}({}, {})", both, a[0], a[1]);
    case ScalarOp::shr: return fmt::format("shiftright{}({}, {})", both, a[0], a[1]);
    case ScalarOp::mulhi: return fmt::format("({})upperhalf(({}){}, ({}){})", name, name, a[0], name, a[1]);
    default: throw_internal("cuda render", std::string(kernel::info(op).name) + " on an integer is not expanded");
  }
}

std::string on_bools(ScalarOp op, std::span<const std::string> a) {
  switch (op) {
    case ScalarOp::bit_and:
    case ScalarOp::mul:
    case ScalarOp::min: return fmt::format("(bool)({} & {})", a[0], a[1]);
    case ScalarOp::bit_or:
    case ScalarOp::add:
    case ScalarOp::max: return fmt::format("(bool)({} | {})", a[0], a[1]);
    case ScalarOp::bit_xor: return fmt::format("(bool)({} ^ {})", a[0], a[1]);
    case ScalarOp::bit_not: return "!" + a[0];
    default: throw_internal("cuda render", std::string(kernel::info(op).name) + " on bools");
  }
}

}  // namespace

std::string expression(ScalarOp op, Dtype t, std::span<const std::string> a) {
  switch (op) {
    case ScalarOp::select: return fmt::format("{} ? {} : {}", a[0], a[1], a[2]);
    case ScalarOp::eq: return fmt::format("{} == {}", a[0], a[1]);
    case ScalarOp::ne: return fmt::format("{} != {}", a[0], a[1]);
    case ScalarOp::lt: return fmt::format("{} < {}", a[0], a[1]);
    case ScalarOp::le: return fmt::format("{} <= {}", a[0], a[1]);
    default: break;
  }
  if (t == bool_) return on_bools(op, a);
  return is_float(t) ? on_floats(op, t, a) : on_integers(op, t, a);
}

std::string conversion(const std::string& v, Dtype from, Dtype to) {
  if (from == to) return v;
  auto low = [](Dtype t) { return t == bfloat16 ? "bf16" : t == float16 ? "f16" : t == float8_e4m3 ? "e4m3" : "e5m2"; };
  if (is_low_float(from)) return conversion(fmt::format("from_{}({})", low(from), v), float32, to);
  if (is_low_float(to)) return fmt::format("to_{}({})", low(to), conversion(v, from, float32));
  const char* name = type_name(to);
  if (to == bool_) return fmt::format("{} != {}", v, from == bool_ ? "false" : literal(Number::of_int(0), from));
  if (!is_float(from) || is_float(to)) return fmt::format("({}){}", name, v);
  if (to == int64 || to == uint64) return fmt::format("to_{}<{}>({})", name, type_name(from), v);
  const int width = to.size() * 8;
  const int64_t high = is_signed(to) ? (int64_t{1} << (width - 1)) - 1 : (int64_t{1} << width) - 1;
  if (is_signed(to)) return fmt::format("({})to_signed<{}>({}, {}ll, {}ll)", name, type_name(from), v, -high - 1, high);
  return fmt::format("({})to_unsigned<{}>({}, {}ll)", name, type_name(from), v, high);
}

std::string reinterpretation(const std::string& v, Dtype from, Dtype to) {
  if (from == to) return v;
  if (is_float(from) && !is_low_float(from))
    return reinterpretation(fmt::format("bits({})", v), from == float64 ? uint64 : uint32, to);
  if (to == float32) return fmt::format("real((u32){})", v);
  if (to == float64) return fmt::format("real((u64){})", v);
  return fmt::format("({}){}", type_name(to), v);
}

}  // namespace weft::target::cuda
