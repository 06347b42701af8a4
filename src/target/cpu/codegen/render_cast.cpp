// Renders conversions between dtypes. Each first rounds once to float32 or float64; narrower floats are rounded from
// float32.
#include <cmath>

#include "base/half.h"
#include "target/cpu/codegen/renderer.h"

namespace weft::target {

IrValue Renderer::convert(IrValue v, Dtype from, Dtype to) {
  if (from == to) return v;
  if (is_low_float(from)) {
    v = widen(v, from);
    from = float32;
    if (to == float32) return v;
  }
  if (is_low_float(to)) return narrow(convert(v, from, float32), to);
  const IrType target = ir_.like(v, element(to));
  if (to == bool_) {
    const IrValue zero = LLVMConstNull(LLVMTypeOf(v));
    return is_float(from) ? ir_.compare(LLVMRealUNE, v, zero) : ir_.compare(LLVMIntNE, v, zero);
  }
  if (is_float(from)) {
    if (to == float64) return LLVMBuildFPExt(ir_.b, v, target, "");
    if (to == float32) return LLVMBuildFPTrunc(ir_.b, v, target, "");
    if (to.size() < 4) return ir_.trunc(to_small_integer(v, from, to), element(to));
    return ir_.intrinsic(is_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat", {target, LLVMTypeOf(v)}, {v});
  }
  if (is_float(to))
    return is_signed(from) ? LLVMBuildSIToFP(ir_.b, v, target, "") : LLVMBuildUIToFP(ir_.b, v, target, "");
  if (from == bool_) return ir_.zext(v, element(to));
  if (from.size() == to.size()) return v;
  if (from.size() > to.size()) return ir_.trunc(v, element(to));
  return is_signed(from) ? ir_.sext(v, element(to)) : ir_.zext(v, element(to));
}

// Converts to the integers of a dtype of 8 or 16 bits, as i32: the nearest in its range, 0 for NaN. LLVM's saturating
// conversions to such integers go through the elements one by one.
IrValue Renderer::to_small_integer(IrValue v, Dtype from, Dtype to) {
  const int bits = static_cast<int>(to.size() * 8) - is_signed(to);
  const int64_t lanes = ir_.lanes(v);
  const auto splat = [&](double x) { return ir_.real_splat(element(from), x, lanes); };
  const IrValue lowest = splat(is_signed(to) ? -std::ldexp(1.0, bits) : 0), highest = splat(std::ldexp(1.0, bits) - 1);
  v = ir_.select(ir_.compare(LLVMRealORD, v, v), v, splat(0));
  v = ir_.select(ir_.compare(LLVMRealOGT, v, lowest), v, lowest);
  v = ir_.select(ir_.compare(LLVMRealOLT, v, highest), v, highest);
  return LLVMBuildFPToSI(ir_.b, v, ir_.like(v, ir_.i32), "");
}

IrValue Renderer::widen(IrValue v, Dtype from) {
  const IrValue wide = ir_.zext(v, ir_.i32);
  if (from == bfloat16) return ir_.bits(ir_.shl(wide, 16), ir_.f32);
  if (is_float8(from)) return widen_float8(wide, from);
  if (isa_.half) return LLVMBuildFPExt(ir_.b, ir_.bits(v, ir_.f16), ir_.like(v, ir_.f32), "");
  // The bits are shifted into place and scaled by 2^112, which is exact and normalises subnormals; infinity and NaN get
  // their exponent back.
  const IrValue magnitude = ir_.bit_and(wide, ir_.same(wide, 0x7fff)), moved = ir_.shl(magnitude, 13);
  const IrValue scaled = ir_.bits(
      LLVMBuildFMul(ir_.b, ir_.bits(moved, ir_.f32), ir_.real_splat(ir_.f32, 0x1p112, ir_.lanes(v)), ""), ir_.i32);
  const IrValue special = ir_.compare(LLVMIntUGE, magnitude, ir_.same(wide, 0x7c00));
  const IrValue value = ir_.select(special, ir_.bit_or(moved, ir_.same(wide, 0x7f800000)), scaled);
  return ir_.bits(ir_.bit_or(value, ir_.shl(ir_.bit_and(wide, ir_.same(wide, 0x8000)), 16)), ir_.f32);
}

IrValue Renderer::narrow(IrValue v, Dtype to) {
  const IrValue x = ir_.bits(v, ir_.i32);
  auto k = [&](int64_t value) { return ir_.same(x, value); };
  if (to == bfloat16 && isa_.bf16 && ir_.lanes(v) % 32 == 0) return narrow_in_hardware(v);
  if (to == bfloat16) return narrow_to_bf16(v);
  if (is_float8(to)) return narrow_float8(v, to);
  if (isa_.half) return ir_.bits(LLVMBuildFPTrunc(ir_.b, v, ir_.like(v, ir_.f16), ""), ir_.i16);
  const IrValue sign = ir_.bit_and(ir_.lshr(x, 16), k(0x8000)), size = ir_.bit_and(x, k(0x7fffffff));
  const IrValue odd = ir_.bit_and(ir_.lshr(size, 13), k(1));
  const IrValue normal = ir_.lshr(ir_.add(ir_.add(ir_.sub(size, k(112 << 23)), k(0xfff)), odd), 13);
  // Adding 0.5 puts the last bit of a float16 subnormal at the last bit of the float32: the addition rounds.
  const IrValue half = ir_.real_splat(ir_.f32, 0.5, ir_.lanes(v));
  const IrValue subnormal =
      ir_.sub(ir_.bits(LLVMBuildFAdd(ir_.b, ir_.bits(size, ir_.f32), half, ""), ir_.i32), k(0x3f000000));
  const IrValue finite = ir_.select(ir_.compare(LLVMIntULT, size, k(0x38800000)), subnormal, normal);
  const IrValue nan = ir_.compare(LLVMIntUGT, size, k(0x7f800000)),
                large = ir_.compare(LLVMIntUGE, size, k(0x47800000));
  const IrValue value = ir_.select(nan, k(0x7e00), ir_.select(large, k(0x7c00), finite));
  return ir_.trunc(ir_.bit_or(sign, value), ir_.i16);
}

IrValue Renderer::narrow_to_bf16(IrValue v) {
  const IrValue x = ir_.bits(v, ir_.i32);
  auto k = [&](int64_t value) { return ir_.same(x, value); };
  const IrValue odd = ir_.bit_and(ir_.lshr(x, 16), k(1));
  const IrValue rounded = ir_.lshr(ir_.add(ir_.add(x, k(0x7fff)), odd), 16);
  const IrValue quiet = ir_.bit_or(ir_.lshr(x, 16), k(0x40));
  return ir_.trunc(ir_.select(ir_.compare(LLVMRealUNO, v, v), quiet, rounded), ir_.i16);
}

// Converts float32 to bfloat16 by the instruction, which treats subnormal numbers as zero: a tile that has any takes
// the general path.
IrValue Renderer::narrow_in_hardware(IrValue v) {
  const int64_t n = ir_.lanes(v);
  IrValue tiny = nullptr;
  std::vector<IrValue> parts;
  constexpr int subnormal = 0x20;
  for (int64_t at = 0; at < n; at += 32) {
    const IrValue low = ir_.slice(v, at, 16), high = ir_.slice(v, at + 16, 16);
    for (IrValue half : {low, high}) {
      const IrValue is =
          ir_.intrinsic("llvm.x86.avx512.fpclass.ps.512", {}, {half, LLVMConstInt(ir_.i32, subnormal, 0)});
      tiny = tiny ? ir_.bit_or(tiny, is) : is;
    }
    parts.push_back(LLVMBuildBitCast(ir_.b, ir_.intrinsic("llvm.x86.avx512bf16.cvtne2ps2bf16.512", {}, {high, low}),
                                     ir_.vec(ir_.i16, 32), ""));
  }
  const IrValue fast = ir_.join(parts);
  const IrValue any = ir_.compare(LLVMIntNE, LLVMBuildBitCast(ir_.b, tiny, ir_.i16, ""), LLVMConstInt(ir_.i16, 0, 0));
  const LLVMBasicBlockRef before = ir_.here(), slow = ir_.block("subnormal"), after = ir_.block("narrowed");
  LLVMBuildCondBr(ir_.b, any, slow, after);
  ir_.go(slow);
  const IrValue exact = narrow_to_bf16(v);
  const LLVMBasicBlockRef slow_end = ir_.here();
  LLVMBuildBr(ir_.b, after);
  LLVMMoveBasicBlockAfter(after, slow_end);
  ir_.go(after);
  const IrValue result = LLVMBuildPhi(ir_.b, LLVMTypeOf(fast), "");
  IrValue values[] = {fast, exact};
  LLVMBasicBlockRef blocks[] = {before, slow_end};
  LLVMAddIncoming(result, values, blocks, 2);
  return result;
}

// Converts 8-bit floats to float32 as base/half.h does, lane by lane: integer steps, and one float operation that is
// exact or rounds correctly.
IrValue Renderer::widen_float8(IrValue wide, Dtype from) {
  const Float8& f = from == float8_e4m3 ? e4m3 : e5m2;
  auto k = [&](int64_t value) { return ir_.same(wide, value); };
  const IrValue magnitude = ir_.bit_and(wide, k(0x7f)), moved = ir_.shl(magnitude, 23 - f.mantissa);
  const double scale = std::ldexp(1.0, 127 - f.bias);
  const IrValue number = ir_.bits(
      LLVMBuildFMul(ir_.b, ir_.bits(moved, ir_.f32), ir_.real_splat(ir_.f32, scale, ir_.lanes(wide)), ""), ir_.i32);
  const IrValue value =
      ir_.select(ir_.compare(LLVMIntUGT, magnitude, k(f.largest)), ir_.bit_or(moved, k(0x7f800000)), number);
  return ir_.bits(ir_.bit_or(value, ir_.shl(ir_.bit_and(wide, k(0x80)), 24)), ir_.f32);
}

// Converts float32 to 8-bit floats as base/half.h does: rounds to nearest even and saturates at the largest number;
// infinity and NaN become the patterns of the format.
IrValue Renderer::narrow_float8(IrValue v, Dtype to) {
  const Float8& f = to == float8_e4m3 ? e4m3 : e5m2;
  const IrValue x = ir_.bits(v, ir_.i32);
  auto k = [&](int64_t value) { return ir_.same(x, value); };
  const int shift = 23 - f.mantissa;
  const IrValue size = ir_.bit_and(x, k(0x7fffffff)), sign = ir_.bit_and(ir_.lshr(x, 24), k(0x80));
  const IrValue odd = ir_.bit_and(ir_.lshr(size, shift), k(1));
  const IrValue normal = ir_.lshr(
      ir_.add(ir_.add(ir_.sub(size, k(int64_t{127 - f.bias} << 23)), k((int64_t{1} << (shift - 1)) - 1)), odd), shift);
  const IrValue power = ir_.real_splat(ir_.f32, std::ldexp(1.0, 1 - f.bias + shift), ir_.lanes(v));
  const IrValue subnormal = ir_.sub(ir_.bits(LLVMBuildFAdd(ir_.b, ir_.bits(size, ir_.f32), power, ""), ir_.i32),
                                    k(int64_t{128 - f.bias + shift} << 23));
  const IrValue rounded = ir_.select(ir_.compare(LLVMIntULT, size, k(int64_t{128 - f.bias} << 23)), subnormal, normal);
  const IrValue bounded = ir_.select(ir_.compare(LLVMIntULT, rounded, k(f.largest)), rounded, k(f.largest));
  const IrValue nan = ir_.bit_or(ir_.bit_and(ir_.lshr(size, 21), k(1)), k(f.quiet));
  const IrValue finite = ir_.select(ir_.compare(LLVMIntEQ, size, k(0x7f800000)), k(f.infinity), bounded);
  const IrValue value = ir_.select(ir_.compare(LLVMIntUGT, size, k(0x7f800000)), nan, finite);
  return ir_.trunc(ir_.bit_or(sign, value), ir_.i8);
}

IrValue Renderer::bitcast(IrValue v, Dtype, Dtype to) { return ir_.bits(v, element(to)); }

}  // namespace weft::target
