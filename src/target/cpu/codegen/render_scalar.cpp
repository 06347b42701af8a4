// Renders scalar operators on rows of lanes. No fast-math flags and no contraction: each is exactly the operation that
// kernel/scalar.h defines.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "target/cpu/codegen/renderer.h"

namespace weft::target {

using namespace kernel;

void Renderer::scalar(const Inst& inst) {
  const Dtype t = type(inst.args.size() == 1 ? inst.args[0] : inst.args[1]).dtype;
  Rows out;
  for (size_t r = 0; r < static_cast<size_t>(rows_of(inst.type)); ++r) {
    std::array<IrValue, most_arguments> args;
    for (size_t k = 0; k < inst.args.size(); ++k) args[k] = rows(inst.args[k])[r];
    out.push_back(inst.scalar_op == ScalarOp::select
                      ? ir_.select(args[0], args[1], args[2])
                      : apply(inst.scalar_op, t, std::span(args.data(), inst.args.size())));
  }
  define(inst, std::move(out));
}

IrValue Renderer::apply(ScalarOp op, Dtype t, std::span<const IrValue> args) {
  if (op == ScalarOp::eq || op == ScalarOp::ne || op == ScalarOp::lt || op == ScalarOp::le)
    return compare(op, t, args[0], args[1]);
  if (is_low_float(t)) {
    std::array<IrValue, 4> wide;
    for (size_t k = 0; k < args.size(); ++k) wide[k] = widen(args[k], t);
    return narrow(apply_float(op, std::span(wide.data(), args.size())), t);
  }
  return is_float(t) ? apply_float(op, args) : apply_integer(op, t, args);
}

IrValue Renderer::apply_float(ScalarOp op, std::span<const IrValue> args) {
  const IrValue a = args[0], b = args.size() > 1 ? args[1] : nullptr;
  const bool wide = ir_.element(a) == ir_.f64;
  switch (op) {
    case ScalarOp::neg: return LLVMBuildFNeg(ir_.b, a, "");
    case ScalarOp::abs: return ir_.intrinsic("llvm.fabs", {a});
    case ScalarOp::add: return LLVMBuildFAdd(ir_.b, a, b, "");
    case ScalarOp::sub: return LLVMBuildFSub(ir_.b, a, b, "");
    case ScalarOp::mul: return LLVMBuildFMul(ir_.b, a, b, "");
    case ScalarOp::div: return LLVMBuildFDiv(ir_.b, a, b, "");
    case ScalarOp::max: return extremum(true, a, b);
    case ScalarOp::min: return extremum(false, a, b);
    case ScalarOp::fma: return ir_.intrinsic("llvm.fma", {a, b, args[2]});
    case ScalarOp::sqrt: return ir_.intrinsic("llvm.sqrt", {a});
    case ScalarOp::floor: return ir_.intrinsic("llvm.floor", {a});
    case ScalarOp::ceil: return ir_.intrinsic("llvm.ceil", {a});
    case ScalarOp::trunc: return ir_.intrinsic("llvm.trunc", {a});
    case ScalarOp::ldexp: return scaled(a, b);
    case ScalarOp::round: return ir_.intrinsic("llvm.roundeven", {a});
    case ScalarOp::floordiv: return ir_.intrinsic("llvm.floor", {LLVMBuildFDiv(ir_.b, a, b, "")});
    case ScalarOp::mod: {  // the result has the sign of the divisor
      const IrValue r = by_lane(wide ? "fmod" : "fmodf", args), zero = LLVMConstNull(LLVMTypeOf(a));
      const IrValue differ = ir_.bit_xor(ir_.compare(LLVMRealOLT, r, zero), ir_.compare(LLVMRealOLT, b, zero));
      const IrValue adjust = ir_.bit_and(ir_.compare(LLVMRealUNE, r, zero), differ);
      return ir_.select(adjust, LLVMBuildFAdd(ir_.b, r, b, ""), r);
    }
    default: break;
  }
  // Float64 operators that `expand` leaves whole call the C library, through the operator's own definition (see
  // jit.cpp).
  check(wide, "cpu render", "kernel " + kernel_.name + " is not expanded");
  return by_lane("weft_f64_" + std::string(info(op).name), args);
}

IrValue Renderer::apply_integer(ScalarOp op, Dtype t, std::span<const IrValue> args) {
  const IrValue a = args[0], b = args.size() > 1 ? args[1] : nullptr;
  const bool sign = is_signed(t);
  switch (op) {
    case ScalarOp::neg: return LLVMBuildNeg(ir_.b, a, "");
    case ScalarOp::abs: return sign ? ir_.intrinsic("llvm.abs", {LLVMTypeOf(a)}, {a, LLVMConstInt(ir_.i1, 0, 0)}) : a;
    case ScalarOp::add: return ir_.add(a, b);
    case ScalarOp::sub: return ir_.sub(a, b);
    case ScalarOp::mul: return ir_.mul(a, b);
    case ScalarOp::max: return ir_.intrinsic(sign ? "llvm.smax" : "llvm.umax", {a, b});
    case ScalarOp::min: return ir_.intrinsic(sign ? "llvm.smin" : "llvm.umin", {a, b});
    case ScalarOp::floordiv: return divide(false, sign, a, b);
    case ScalarOp::mod: return divide(true, sign, a, b);
    case ScalarOp::bit_and: return ir_.bit_and(a, b);
    case ScalarOp::bit_or: return ir_.bit_or(a, b);
    case ScalarOp::bit_xor: return ir_.bit_xor(a, b);
    case ScalarOp::bit_not: return LLVMBuildNot(ir_.b, a, "");
    case ScalarOp::shl:
    case ScalarOp::shr: return shift(op, sign, a, b);
    case ScalarOp::mulhi: {
      const int width = t.size() * 8;
      const IrType twice = ir_.integer(2 * width);
      return ir_.trunc(ir_.lshr(ir_.mul(ir_.zext(a, twice), ir_.zext(b, twice)), width), ir_.integer(width));
    }
    default:
      throw_internal("cpu render",
                     "kernel " + kernel_.name + ": " + std::string(info(op).name) + " on an integer is not expanded");
  }
}

IrValue Renderer::compare(ScalarOp op, Dtype t, IrValue a, IrValue b) {
  if (is_low_float(t)) a = widen(a, t), b = widen(b, t);
  const bool eq = op == ScalarOp::eq, ne = op == ScalarOp::ne, lt = op == ScalarOp::lt;
  if (is_float(t)) return ir_.compare(eq ? LLVMRealOEQ : ne ? LLVMRealUNE : lt ? LLVMRealOLT : LLVMRealOLE, a, b);
  if (eq || ne) return ir_.compare(eq ? LLVMIntEQ : LLVMIntNE, a, b);
  return is_signed(t) ? ir_.compare(lt ? LLVMIntSLT : LLVMIntSLE, a, b)
                      : ir_.compare(lt ? LLVMIntULT : LLVMIntULE, a, b);
}

// Renders IEEE maximum and minimum: NaN wins, -0 is below +0. Uses comparisons, since llvm.maximum is longer on
// AVX-512, and LLVM 19 loses a NaN in it if AVX2 code takes its operands from float16.
IrValue Renderer::extremum(bool greatest, IrValue a, IrValue b) {
  double k = 0;
  if (Ir::known_splat(a, k) && k == k) return bounded(greatest, b, a, k);
  if (Ir::known_splat(b, k) && k == k) return bounded(greatest, a, b, k);
  const IrValue either = ir_.compare(LLVMRealUNO, a, b);
  if (isa_.range) {
    const IrValue nan = ir_.real_splat(ir_.element(a), std::numeric_limits<double>::quiet_NaN(), ir_.lanes(a));
    return ir_.select(either, nan, ordered(greatest, a, b));
  }
  // Both orders of the processor's own maximum, which gives its second operand where neither is greater, agree but for
  // zeros, of which one bit operation leaves the right one, and NaN, where all bits are set.
  const IrType bits = ir_.integer(ir_.element(a) == ir_.f64 ? 64 : 32);
  const LLVMRealPredicate further = greatest ? LLVMRealOGT : LLVMRealOLT;
  const IrValue x = ir_.bits(ir_.select(ir_.compare(further, a, b), a, b), bits),
                y = ir_.bits(ir_.select(ir_.compare(further, b, a), b, a), bits);
  return ir_.bits(ir_.bit_or(greatest ? ir_.bit_and(x, y) : ir_.bit_or(x, y), ir_.sext(either, bits)), ir_.element(a));
}

// Renders the same for a constant k: one comparison, which is false for NaN, so that x stays.
IrValue Renderer::bounded(bool greatest, IrValue x, IrValue k, double value) {
  const bool takes_equal = value == 0 && std::signbit(value) != greatest;  // the zero that wins over the other
  const LLVMRealPredicate p =
      greatest ? (takes_equal ? LLVMRealOGE : LLVMRealOGT) : (takes_equal ? LLVMRealOLE : LLVMRealOLT);
  return ir_.select(ir_.compare(p, k, x), k, x);
}

// Renders them by AVX-512's vrange, which orders zeros, and returns the number of a NaN and a number.
IrValue Renderer::ordered(bool greatest, IrValue a, IrValue b) { return by_register("range", a, b, greatest ? 5 : 4); }

// Renders a 2^floor(b), rounded once. Without the instruction it is computed in float64, where the product is exact,
// and only the conversion to float32 rounds.
IrValue Renderer::scaled(IrValue a, IrValue b) {
  if (isa_.scales) return by_register("scalef", a, b, -1);
  const int64_t n = ir_.lanes(a);
  const IrValue low = ir_.real_splat(ir_.f32, -400, n), high = ir_.real_splat(ir_.f32, 400, n);
  const IrValue whole = bounded(false, bounded(true, ir_.intrinsic("llvm.floor", {b}), low, -400), high, 400);
  const IrType integers = ir_.like(a, ir_.i64);
  const IrValue exponent = ir_.intrinsic("llvm.fptosi.sat", {integers, LLVMTypeOf(a)}, {whole});
  const IrValue power = ir_.bits(ir_.shl(ir_.add(exponent, ir_.same(exponent, 1023)), 52), ir_.f64);
  const IrValue product = LLVMBuildFMul(ir_.b, LLVMBuildFPExt(ir_.b, a, ir_.like(a, ir_.f64), ""), power, "");
  return ir_.select(ir_.compare(LLVMRealUNO, b, b), b, LLVMBuildFPTrunc(ir_.b, product, LLVMTypeOf(a), ""));
}

// Renders an AVX-512 instruction of two vectors, and of `number` if that is not negative, register by register.
IrValue Renderer::by_register(const char* instruction, IrValue a, IrValue b, int number) {
  const bool wide = ir_.element(a) == ir_.f64;
  const int64_t n = ir_.lanes(a), most = wide ? 8 : 16, least = wide ? 2 : 4;
  std::vector<IrValue> parts;
  for (int64_t at = 0; at < n; at += most) {
    const int64_t count = std::min(most, n - at),
                  padded = std::max(least, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count))));
    const IrValue x = ir_.resize(ir_.slice(a, at, count), padded), y = ir_.resize(ir_.slice(b, at, count), padded);
    const IrType mask = ir_.integer(static_cast<int>(std::max<int64_t>(padded, 8)));
    std::vector<IrValue> args{x, y};
    if (number >= 0) args.push_back(LLVMConstInt(ir_.i32, static_cast<unsigned long long>(number), 0));
    args.insert(args.end(), {x, LLVMConstAllOnes(mask)});
    if (padded == most) args.push_back(LLVMConstInt(ir_.i32, 4, 0));  // the current rounding mode
    const std::string name = std::string("llvm.x86.avx512.mask.") + instruction + (wide ? ".pd." : ".ps.") +
                             std::to_string(padded * (wide ? 64 : 32));
    parts.push_back(ir_.resize(ir_.intrinsic(name, {}, args), count));
  }
  return ir_.join(parts);
}

// Renders integer division, which rounds toward minus infinity; division by zero gives zero. The hardware traps on zero
// and on lowest / -1, so those divisors are replaced by 1.
IrValue Renderer::divide(bool remainder, bool sign, IrValue a, IrValue b) {
  const IrValue zero = ir_.same(a, 0), one = ir_.same(a, 1);
  const IrValue first = ir_.extract(b, 0);
  int64_t k = 0;
  if (Ir::known(first, k) && b == ir_.same(a, k) && k > 0 && std::has_single_bit(static_cast<uint64_t>(k))) {
    if (remainder) return ir_.bit_and(a, ir_.same(a, k - 1));
    const IrValue count = ir_.same(a, std::countr_zero(static_cast<uint64_t>(k)));
    return sign ? LLVMBuildAShr(ir_.b, a, count, "") : LLVMBuildLShr(ir_.b, a, count, "");
  }
  const IrValue by_zero = ir_.compare(LLVMIntEQ, b, zero);
  if (!sign) {
    const IrValue d = ir_.select(by_zero, one, b);
    const IrValue quotient = truncated_quotient(false, a, d);
    return ir_.select(by_zero, zero, remainder ? ir_.sub(a, ir_.mul(quotient, d)) : quotient);
  }
  const IrValue by_minus_one = ir_.compare(LLVMIntEQ, b, ir_.same(a, -1));
  const IrValue d = ir_.select(ir_.bit_or(by_zero, by_minus_one), one, b);
  const IrValue quotient = truncated_quotient(true, a, d), rest = ir_.sub(a, ir_.mul(quotient, d));
  const IrValue negative = ir_.compare(LLVMIntSLT, ir_.bit_xor(rest, d), zero);
  const IrValue low = ir_.bit_and(ir_.compare(LLVMIntNE, rest, zero), negative);  // truncation went up
  if (remainder) return ir_.select(low, ir_.add(rest, d), rest);                  // by ±1, and by 0 as 1: rest is 0
  const IrValue floored = ir_.select(low, ir_.sub(quotient, one), quotient);
  return ir_.select(by_zero, zero, ir_.select(by_minus_one, LLVMBuildNeg(ir_.b, a, ""), floored));
}

// Renders the truncated quotient. Processors only divide vectors of floating-point numbers. The float64 quotient of
// 32-bit integers (the float32 quotient of 16-bit ones) is within q · 2^-53 of the exact one, which, unless it is an
// integer, is at least 1/b away from the next: truncation gives the same result.
IrValue Renderer::truncated_quotient(bool sign, IrValue a, IrValue b) {
  const int width = static_cast<int>(LLVMGetIntTypeWidth(ir_.element(a)));
  if (ir_.lanes(a) < 4 || width > 32) return sign ? LLVMBuildSDiv(ir_.b, a, b, "") : LLVMBuildUDiv(ir_.b, a, b, "");
  const IrType real = ir_.like(a, width == 32 ? ir_.f64 : ir_.f32);
  const auto widened = [&](IrValue v) {
    return sign ? LLVMBuildSIToFP(ir_.b, v, real, "") : LLVMBuildUIToFP(ir_.b, v, real, "");
  };
  const IrValue quotient = LLVMBuildFDiv(ir_.b, widened(a), widened(b), "");
  return sign ? LLVMBuildFPToSI(ir_.b, quotient, LLVMTypeOf(a), "")
              : LLVMBuildFPToUI(ir_.b, quotient, LLVMTypeOf(a), "");
}

// Renders a shift. A count of the width or more leaves nothing but the sign (LLVM's own shifts are undefined there).
IrValue Renderer::shift(ScalarOp op, bool sign, IrValue a, IrValue count) {
  const int64_t width = LLVMGetIntTypeWidth(ir_.element(a));
  const IrValue inside = ir_.compare(LLVMIntULT, count, ir_.same(a, width));
  if (op == ScalarOp::shr && sign)
    return LLVMBuildAShr(ir_.b, a, ir_.select(inside, count, ir_.same(a, width - 1)), "");
  const IrValue zero = ir_.same(a, 0), safe = ir_.select(inside, count, zero);
  const IrValue v = op == ScalarOp::shl ? LLVMBuildShl(ir_.b, a, safe, "") : LLVMBuildLShr(ir_.b, a, safe, "");
  return ir_.select(inside, v, zero);
}

IrValue Renderer::by_lane(const std::string& external, std::span<const IrValue> args) {
  IrValue out = LLVMGetPoison(LLVMTypeOf(args[0]));
  for (int64_t lane = 0; lane < ir_.lanes(args[0]); ++lane) {
    std::array<IrValue, 4> one;
    for (size_t k = 0; k < args.size(); ++k) one[k] = ir_.extract(args[k], lane);
    out = ir_.insert(out, ir_.call_external(external, ir_.element(args[0]), std::span(one.data(), args.size())), lane);
  }
  return out;
}

}  // namespace weft::target
