// Conversions between dtypes. Every one of them rounds once to float32 or float64 first; float16 and bfloat16 are rounded from float32.
#include "target/cpu/renderer.h"

namespace weft::target {

IrValue Renderer::convert(IrValue v, Dtype from, Dtype to) {
  if (from == to) return v;
  if (from == float16 || from == bfloat16) {
    v = widen(v, from);
    from = float32;
    if (to == float32) return v;
  }
  if (to == float16 || to == bfloat16) return narrow(convert(v, from, float32), to);
  const IrType target = ir_.like(v, element(to));
  if (to == bool_) {
    const IrValue zero = LLVMConstNull(LLVMTypeOf(v));
    return is_float(from) ? ir_.compare(LLVMRealUNE, v, zero) : ir_.compare(LLVMIntNE, v, zero);
  }
  if (is_float(from)) {
    if (to == float64) return LLVMBuildFPExt(ir_.b, v, target, "");
    if (to == float32) return LLVMBuildFPTrunc(ir_.b, v, target, "");
    return ir_.intrinsic(is_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat", {target, LLVMTypeOf(v)}, {v});
  }
  if (is_float(to)) return is_signed(from) ? LLVMBuildSIToFP(ir_.b, v, target, "") : LLVMBuildUIToFP(ir_.b, v, target, "");
  if (from == bool_) return ir_.zext(v, element(to));
  if (from.size == to.size) return v;
  if (from.size > to.size) return ir_.trunc(v, element(to));
  return is_signed(from) ? ir_.sext(v, element(to)) : ir_.zext(v, element(to));
}

IrValue Renderer::widen(IrValue v, Dtype from) {
  const IrValue wide = ir_.zext(v, ir_.i32);
  if (from == bfloat16) return ir_.bits(ir_.shl(wide, 16), ir_.f32);
  if (isa_.half) return LLVMBuildFPExt(ir_.b, ir_.bits(v, ir_.f16), ir_.like(v, ir_.f32), "");
  // Moved into place and scaled by 2^112, which is exact and normalises subnormals; infinity and NaN get their exponent back.
  const IrValue magnitude = ir_.bit_and(wide, ir_.same(wide, 0x7fff)), moved = ir_.shl(magnitude, 13);
  const IrValue scaled = ir_.bits(LLVMBuildFMul(ir_.b, ir_.bits(moved, ir_.f32), ir_.real_splat(ir_.f32, 0x1p112, ir_.lanes(v)), ""), ir_.i32);
  const IrValue special = ir_.compare(LLVMIntUGE, magnitude, ir_.same(wide, 0x7c00));
  const IrValue value = ir_.select(special, ir_.bit_or(moved, ir_.same(wide, 0x7f800000)), scaled);
  return ir_.bits(ir_.bit_or(value, ir_.shl(ir_.bit_and(wide, ir_.same(wide, 0x8000)), 16)), ir_.f32);
}

IrValue Renderer::narrow(IrValue v, Dtype to) {
  const IrValue x = ir_.bits(v, ir_.i32);
  auto k = [&](int64_t value) { return ir_.same(x, value); };
  if (to == bfloat16) {
    const IrValue odd = ir_.bit_and(ir_.lshr(x, 16), k(1));
    const IrValue rounded = ir_.lshr(ir_.add(ir_.add(x, k(0x7fff)), odd), 16);
    const IrValue quiet = ir_.bit_or(ir_.lshr(x, 16), k(0x40));
    return ir_.trunc(ir_.select(ir_.compare(LLVMRealUNO, v, v), quiet, rounded), ir_.i16);
  }
  if (isa_.half) return ir_.bits(LLVMBuildFPTrunc(ir_.b, v, ir_.like(v, ir_.f16), ""), ir_.i16);
  const IrValue sign = ir_.bit_and(ir_.lshr(x, 16), k(0x8000)), size = ir_.bit_and(x, k(0x7fffffff));
  const IrValue odd = ir_.bit_and(ir_.lshr(size, 13), k(1));
  const IrValue normal = ir_.lshr(ir_.add(ir_.add(ir_.sub(size, k(112 << 23)), k(0xfff)), odd), 13);
  // Adding 0.5 puts the last bit of a float16 subnormal at the last bit of the float32: the addition rounds.
  const IrValue half = ir_.real_splat(ir_.f32, 0.5, ir_.lanes(v));
  const IrValue subnormal = ir_.sub(ir_.bits(LLVMBuildFAdd(ir_.b, ir_.bits(size, ir_.f32), half, ""), ir_.i32), k(0x3f000000));
  const IrValue finite = ir_.select(ir_.compare(LLVMIntULT, size, k(0x38800000)), subnormal, normal);
  const IrValue nan = ir_.compare(LLVMIntUGT, size, k(0x7f800000)), large = ir_.compare(LLVMIntUGE, size, k(0x47800000));
  const IrValue value = ir_.select(nan, k(0x7e00), ir_.select(large, k(0x7c00), finite));
  return ir_.trunc(ir_.bit_or(sign, value), ir_.i16);
}

IrValue Renderer::bitcast(IrValue v, Dtype, Dtype to) { return ir_.bits(v, element(to)); }

}  // namespace weft::target
