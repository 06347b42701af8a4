#pragma once
// A thin layer over LLVM's C API for code on lanes. A value is a scalar (one lane) or a vector, and every helper takes
// either. An Ir holds one module under construction and its insertion point.
#include <llvm-c/Core.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace weft::target {

using IrValue = LLVMValueRef;
using IrType = LLVMTypeRef;

class Ir {
 public:
  Ir(LLVMContextRef context, const std::string& module_name);
  ~Ir();
  Ir(const Ir&) = delete;
  Ir& operator=(const Ir&) = delete;

  LLVMContextRef context;
  LLVMModuleRef module;  // the caller disposes of it
  LLVMBuilderRef b;
  IrType i1, i8, i16, i32, i64, f16, f32, f64, ptr;

  // Types.
  IrType vec(IrType element, int64_t lanes) const {
    return lanes == 1 ? element : LLVMVectorType(element, static_cast<unsigned>(lanes));
  }
  IrType integer(int bits) const { return LLVMIntTypeInContext(context, static_cast<unsigned>(bits)); }
  static int64_t lanes(IrValue v);
  static IrType element(IrValue v);
  // The type with as many lanes of another element type.
  IrType like(IrValue v, IrType of) const { return vec(of, lanes(v)); }

  // Constants.
  IrValue index(int64_t v) const { return LLVMConstInt(i64, static_cast<unsigned long long>(v), 1); }
  IrValue integer_splat(IrType element_type, int64_t v, int64_t lane_count) const;
  IrValue real_splat(IrType element_type, double v, int64_t lane_count) const;
  /// Returns an integer constant of v's type.
  IrValue same(IrValue v, int64_t k) const { return integer_splat(element(v), k, lanes(v)); }
  IrValue iota(IrType element_type, int64_t lane_count, int64_t step = 1) const;
  /// Returns whether v is a constant integer scalar, and its value in `out`.
  static bool known(IrValue v, int64_t& out);
  /// Returns whether v is a floating constant with one value in all lanes, and that value in `out`.
  static bool known_splat(IrValue v, double& out);

  // Lanes.
  IrValue splat(IrValue scalar, int64_t lane_count);
  IrValue extract(IrValue v, int64_t lane);
  IrValue insert(IrValue v, IrValue scalar, int64_t lane);
  IrValue shuffle(IrValue v, IrValue w, std::span<const int> mask);
  IrValue slice(IrValue v, int64_t begin, int64_t count);
  IrValue resize(IrValue v, int64_t count);         // the first lanes, or undefined lanes appended
  IrValue concat(IrValue v, IrValue w);             // of equal lane counts
  IrValue join(const std::vector<IrValue>& parts);  // all but the last of equal lane counts

  // Integers.
  IrValue add(IrValue x, IrValue y) { return LLVMBuildAdd(b, x, y, ""); }
  IrValue sub(IrValue x, IrValue y) { return LLVMBuildSub(b, x, y, ""); }
  IrValue mul(IrValue x, IrValue y) { return LLVMBuildMul(b, x, y, ""); }
  IrValue bit_and(IrValue x, IrValue y) { return LLVMBuildAnd(b, x, y, ""); }
  IrValue bit_or(IrValue x, IrValue y) { return LLVMBuildOr(b, x, y, ""); }
  IrValue bit_xor(IrValue x, IrValue y) { return LLVMBuildXor(b, x, y, ""); }
  IrValue shl(IrValue x, int64_t k) { return LLVMBuildShl(b, x, same(x, k), ""); }
  IrValue lshr(IrValue x, int64_t k) { return LLVMBuildLShr(b, x, same(x, k), ""); }
  IrValue zext(IrValue x, IrType of) { return LLVMBuildZExt(b, x, like(x, of), ""); }
  IrValue sext(IrValue x, IrType of) { return LLVMBuildSExt(b, x, like(x, of), ""); }
  IrValue trunc(IrValue x, IrType of) { return LLVMBuildTrunc(b, x, like(x, of), ""); }
  IrValue bits(IrValue x, IrType of) { return LLVMBuildBitCast(b, x, like(x, of), ""); }
  IrValue compare(LLVMIntPredicate p, IrValue x, IrValue y) { return LLVMBuildICmp(b, p, x, y, ""); }
  IrValue compare(LLVMRealPredicate p, IrValue x, IrValue y) { return LLVMBuildFCmp(b, p, x, y, ""); }
  IrValue select(IrValue condition, IrValue x, IrValue y) { return LLVMBuildSelect(b, condition, x, y, ""); }

  // Memory.
  /// Returns the address of an element; a vector of offsets gives a vector of addresses.
  IrValue at(IrType element_type, IrValue base, IrValue offset);
  IrValue load(IrType type, IrValue address, unsigned align);
  IrValue store(IrValue value, IrValue address, unsigned align);
  IrValue local(IrType element_type, int64_t elements, unsigned align);  // in the entry block

  /// Emits a call of intrinsic "llvm.…", overloaded on `types`.
  IrValue intrinsic(const std::string& name, std::initializer_list<IrType> types, std::span<const IrValue> args);
  IrValue intrinsic(const std::string& name, std::initializer_list<IrType> types, std::initializer_list<IrValue> args) {
    return intrinsic(name, types, std::span<const IrValue>(args.begin(), args.size()));
  }
  /// Emits the same, overloaded on the type of the first argument alone.
  IrValue intrinsic(const std::string& name, std::initializer_list<IrValue> args) {
    return intrinsic(name, {LLVMTypeOf(*args.begin())}, args);
  }
  /// Emits a masked memory intrinsic; `address` is the position of the pointer operand. (LLVM 22 moved the alignment
  /// from an operand to an attribute.)
  IrValue masked(const std::string& name, IrType data, IrType pointers, std::vector<IrValue> args, unsigned address,
                 unsigned align);
  /// Emits a call of an external function `result name(args...)`, which is never treated as a known library function.
  IrValue call_external(const std::string& name, IrType result, std::span<const IrValue> args);

  // Control flow.
  LLVMBasicBlockRef block(const char* name) { return LLVMAppendBasicBlockInContext(context, function, name); }
  LLVMBasicBlockRef here() const { return LLVMGetInsertBlock(b); }
  void go(LLVMBasicBlockRef to) { LLVMPositionBuilderAtEnd(b, to); }
  void attribute(const char* name, uint64_t value = 0);
  void attribute(const char* name, const std::string& value);
  IrValue function = nullptr;
};

}  // namespace weft::target
