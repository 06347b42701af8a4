#include "target/cpu/codegen/ir.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace weft::target {

Ir::Ir(LLVMContextRef cx, const std::string& module_name)
    : context(cx), module(LLVMModuleCreateWithNameInContext(module_name.c_str(), cx)),
      b(LLVMCreateBuilderInContext(cx)), i1(LLVMInt1TypeInContext(cx)), i8(LLVMInt8TypeInContext(cx)),
      i16(LLVMInt16TypeInContext(cx)), i32(LLVMInt32TypeInContext(cx)), i64(LLVMInt64TypeInContext(cx)),
      f16(LLVMHalfTypeInContext(cx)), f32(LLVMFloatTypeInContext(cx)), f64(LLVMDoubleTypeInContext(cx)),
      ptr(LLVMPointerTypeInContext(cx, 0)) {}

Ir::~Ir() { LLVMDisposeBuilder(b); }

int64_t Ir::lanes(IrValue v) {
  const IrType t = LLVMTypeOf(v);
  return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetVectorSize(t) : 1;
}

IrType Ir::element(IrValue v) {
  const IrType t = LLVMTypeOf(v);
  return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t;
}

static IrValue constant_splat(IrValue scalar, int64_t lane_count) {
  if (lane_count == 1) return scalar;
  std::vector<IrValue> all(static_cast<size_t>(lane_count), scalar);
  return LLVMConstVector(all.data(), static_cast<unsigned>(lane_count));
}

IrValue Ir::integer_splat(IrType t, int64_t v, int64_t n) const {
  return constant_splat(LLVMConstInt(t, static_cast<unsigned long long>(v), 1), n);
}
IrValue Ir::real_splat(IrType t, double v, int64_t n) const { return constant_splat(LLVMConstReal(t, v), n); }

IrValue Ir::iota(IrType t, int64_t n, int64_t step) const {
  std::vector<IrValue> all;
  for (int64_t k = 0; k < n; ++k) all.push_back(LLVMConstInt(t, static_cast<unsigned long long>(k * step), 1));
  return n == 1 ? all[0] : LLVMConstVector(all.data(), static_cast<unsigned>(n));
}

bool Ir::known(IrValue v, int64_t& out) {
  if (!v || !LLVMIsAConstantInt(v)) return false;
  out = LLVMConstIntGetSExtValue(v);
  return true;
}

bool Ir::known_splat(IrValue v, double& out) {
  if (!LLVMIsConstant(v)) return false;
  const IrValue first = lanes(v) == 1 ? v : LLVMGetAggregateElement(v, 0);
  if (!first || !LLVMIsAConstantFP(first) || v != constant_splat(first, lanes(v))) return false;
  LLVMBool inexact = 0;
  out = LLVMConstRealGetDouble(first, &inexact);
  return true;
}

IrValue Ir::splat(IrValue scalar, int64_t n) {
  if (n == 1) return scalar;
  if (LLVMIsConstant(scalar)) return constant_splat(scalar, n);
  const IrValue one = LLVMBuildInsertElement(b, LLVMGetPoison(vec(LLVMTypeOf(scalar), n)), scalar, index(0), "");
  const std::vector<int> zeros(static_cast<size_t>(n), 0);
  return shuffle(one, one, zeros);
}

IrValue Ir::extract(IrValue v, int64_t lane) {
  return lanes(v) == 1 ? v : LLVMBuildExtractElement(b, v, index(lane), "");
}
IrValue Ir::insert(IrValue v, IrValue scalar, int64_t lane) {
  return lanes(v) == 1 ? scalar : LLVMBuildInsertElement(b, v, scalar, index(lane), "");
}

IrValue Ir::shuffle(IrValue v, IrValue w, std::span<const int> mask) {
  std::vector<IrValue> m;
  for (int k : mask) m.push_back(LLVMConstInt(i32, static_cast<unsigned long long>(k), 0));
  return LLVMBuildShuffleVector(b, v, w, LLVMConstVector(m.data(), static_cast<unsigned>(m.size())), "");
}

IrValue Ir::slice(IrValue v, int64_t begin, int64_t count) {
  if (count == lanes(v)) return v;
  if (count == 1) return extract(v, begin);
  std::vector<int> mask;
  for (int64_t k = 0; k < count; ++k) mask.push_back(static_cast<int>(begin + k));
  return shuffle(v, LLVMGetPoison(LLVMTypeOf(v)), mask);
}

IrValue Ir::resize(IrValue v, int64_t count) {
  const int64_t n = lanes(v);
  if (count <= n) return slice(v, 0, count);
  const IrType wide = vec(element(v), count);
  if (n == 1) return insert(LLVMGetPoison(wide), v, 0);
  std::vector<int> mask;
  for (int64_t k = 0; k < count; ++k) mask.push_back(static_cast<int>(std::min(k, n)));  // lane n: an undefined lane
  return shuffle(v, LLVMGetPoison(LLVMTypeOf(v)), mask);
}

IrValue Ir::join(const std::vector<IrValue>& parts) {
  IrValue all = parts[0];
  const int64_t each = lanes(all);
  int64_t held = each;
  for (size_t k = 1; k < parts.size(); ++k) {
    const int64_t more = lanes(parts[k]);
    std::vector<int> mask;
    for (int64_t j = 0; j < held + more; ++j) mask.push_back(static_cast<int>(j));
    all = shuffle(all, resize(parts[k], held), mask);
    held += more;
  }
  return all;
}

IrValue Ir::concat(IrValue v, IrValue w) {
  const int64_t n = lanes(v);
  if (n == 1) return insert(insert(LLVMGetPoison(vec(LLVMTypeOf(v), 2)), v, 0), w, 1);
  std::vector<int> mask;
  for (int64_t k = 0; k < 2 * n; ++k) mask.push_back(static_cast<int>(k));
  return shuffle(v, w, mask);
}

IrValue Ir::at(IrType element_type, IrValue base, IrValue offset) {
  return LLVMBuildGEP2(b, element_type, base, &offset, 1, "");
}

IrValue Ir::load(IrType type, IrValue address, unsigned align) {
  const IrValue v = LLVMBuildLoad2(b, type, address, "");
  LLVMSetAlignment(v, align);
  return v;
}

IrValue Ir::store(IrValue value, IrValue address, unsigned align) {
  const IrValue v = LLVMBuildStore(b, value, address);
  LLVMSetAlignment(v, align);
  return v;
}

IrValue Ir::local(IrType element_type, int64_t elements, unsigned align) {
  const LLVMBasicBlockRef back = here(), entry = LLVMGetEntryBasicBlock(function);
  LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(entry));
  const IrValue v = LLVMBuildAlloca(b, LLVMArrayType(element_type, static_cast<unsigned>(elements)), "");
  LLVMSetAlignment(v, align);
  go(back);
  return v;
}

IrValue Ir::intrinsic(const std::string& name, std::initializer_list<IrType> types, std::span<const IrValue> args) {
  const unsigned id = LLVMLookupIntrinsicID(name.c_str(), name.size());
  check(id != 0, "cpu render", "no intrinsic " + name);
  IrType* overloads = const_cast<IrType*>(types.begin());
  const IrValue f = LLVMGetIntrinsicDeclaration(module, id, overloads, types.size());
  const IrType t = LLVMIntrinsicGetType(context, id, overloads, types.size());
  return LLVMBuildCall2(b, t, f, const_cast<IrValue*>(args.data()), static_cast<unsigned>(args.size()), "");
}

IrValue Ir::masked(const std::string& name, IrType data, IrType pointers, std::vector<IrValue> args, unsigned address,
                   unsigned align) {
  const unsigned id = LLVMLookupIntrinsicID(name.c_str(), name.size());
  IrType overloads[] = {data, pointers};
  const IrType t = LLVMIntrinsicGetType(context, id, overloads, 2);
  const bool operand = LLVMCountParamTypes(t) == args.size() + 1;
  if (operand) args.insert(args.begin() + address + 1, LLVMConstInt(i32, align, 0));
  const IrValue f = LLVMGetIntrinsicDeclaration(module, id, overloads, 2);
  const IrValue call = LLVMBuildCall2(b, t, f, args.data(), static_cast<unsigned>(args.size()), "");
  if (!operand)
    LLVMAddCallSiteAttribute(call, address + 1,
                             LLVMCreateEnumAttribute(context, LLVMGetEnumAttributeKindForName("align", 5), align));
  return call;
}

IrValue Ir::call_external(const std::string& name, IrType result, std::span<const IrValue> args) {
  std::vector<IrType> types;
  for (IrValue a : args) types.push_back(LLVMTypeOf(a));
  const IrType t = LLVMFunctionType(result, types.data(), static_cast<unsigned>(types.size()), 0);
  IrValue f = LLVMGetNamedFunction(module, name.c_str());
  if (!f) f = LLVMAddFunction(module, name.c_str(), t);
  const IrValue call =
      LLVMBuildCall2(b, t, f, const_cast<IrValue*>(args.data()), static_cast<unsigned>(args.size()), "");
  for (const char* a : {"nobuiltin", "nounwind"})
    LLVMAddCallSiteAttribute(call, static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex),
                             LLVMCreateEnumAttribute(context, LLVMGetEnumAttributeKindForName(a, std::strlen(a)), 0));
  return call;
}

void Ir::attribute(const char* name, uint64_t value) {
  LLVMAddAttributeAtIndex(
      function, static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex),
      LLVMCreateEnumAttribute(context, LLVMGetEnumAttributeKindForName(name, std::strlen(name)), value));
}

void Ir::attribute(const char* name, const std::string& value) {
  LLVMAddAttributeAtIndex(function, static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex),
                          LLVMCreateStringAttribute(context, name, static_cast<unsigned>(std::strlen(name)),
                                                    value.data(), static_cast<unsigned>(value.size())));
}

}  // namespace weft::target
