#include "target/cpu/codegen/jit.h"

#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/error.h"
#include "kernel/scalar.h"

namespace weft::target {
namespace {

using kernel::ScalarOp;

void require(LLVMErrorRef error, const char* what) {
  if (!error) return;
  char* text = LLVMGetErrorMessage(error);
  const std::string message = text;
  LLVMDisposeErrorMessage(text);
  throw_failure("cpu target", std::string(what) + ": " + message);
}

// float64 functions are the definition of the operator itself.
template <ScalarOp op>
double unary(double a) {
  const Number n = Number::of_real(a);
  return kernel::reference(op, float64, &n).f;
}
template <ScalarOp op>
double binary(double a, double b) {
  const Number n[] = {Number::of_real(a), Number::of_real(b)};
  return kernel::reference(op, float64, n).f;
}

struct Symbol {
  const char* name;
  void* address;
};

template <class Function>
void* address(Function* f) {
  return reinterpret_cast<void*>(f);
}
template <ScalarOp op>
void* f64_1() {
  return address(&unary<op>);
}

const auto symbols = std::to_array<Symbol>({
    {"fma", address<double(double, double, double)>(&::fma)},
    {"fmaf", address<float(float, float, float)>(&::fmaf)},
    {"fmod", address<double(double, double)>(&::fmod)},
    {"fmodf", address<float(float, float)>(&::fmodf)},
    {"floor", address<double(double)>(&::floor)},
    {"floorf", address<float(float)>(&::floorf)},
    {"ceil", address<double(double)>(&::ceil)},
    {"ceilf", address<float(float)>(&::ceilf)},
    {"trunc", address<double(double)>(&::trunc)},
    {"truncf", address<float(float)>(&::truncf)},
    {"roundeven", address<double(double)>(&::nearbyint)},
    {"roundevenf", address<float(float)>(&::nearbyintf)},
    {"memcpy", address<void*(void*, const void*, size_t)>(&::memcpy)},
    {"memmove", address<void*(void*, const void*, size_t)>(&::memmove)},
    {"memset", address<void*(void*, int, size_t)>(&::memset)},
    {"aligned_alloc", address<void*(size_t, size_t)>(&::aligned_alloc)},
    {"free", address<void(void*)>(&::free)},
    {"weft_f64_recip", f64_1<ScalarOp::recip>()},
    {"weft_f64_rsqrt", f64_1<ScalarOp::rsqrt>()},
    {"weft_f64_square", f64_1<ScalarOp::square>()},
    {"weft_f64_sign", f64_1<ScalarOp::sign>()},
    {"weft_f64_exp", f64_1<ScalarOp::exp>()},
    {"weft_f64_exp2", f64_1<ScalarOp::exp2>()},
    {"weft_f64_expm1", f64_1<ScalarOp::expm1>()},
    {"weft_f64_log", f64_1<ScalarOp::log>()},
    {"weft_f64_log2", f64_1<ScalarOp::log2>()},
    {"weft_f64_log10", f64_1<ScalarOp::log10>()},
    {"weft_f64_tan", f64_1<ScalarOp::tan>()},
    {"weft_f64_arcsin", f64_1<ScalarOp::arcsin>()},
    {"weft_f64_arccos", f64_1<ScalarOp::arccos>()},
    {"weft_f64_arctan", f64_1<ScalarOp::arctan>()},
    {"weft_f64_sinh", f64_1<ScalarOp::sinh>()},
    {"weft_f64_cosh", f64_1<ScalarOp::cosh>()},
    {"weft_f64_arcsinh", f64_1<ScalarOp::arcsinh>()},
    {"weft_f64_arccosh", f64_1<ScalarOp::arccosh>()},
    {"weft_f64_arctanh", f64_1<ScalarOp::arctanh>()},
    {"weft_f64_arctan2", address(&binary<ScalarOp::arctan2>)},
    {"weft_f64_logaddexp", address(&binary<ScalarOp::logaddexp>)},
    {"weft_f64_log1p", f64_1<ScalarOp::log1p>()},
    {"weft_f64_sin", f64_1<ScalarOp::sin>()},
    {"weft_f64_cos", f64_1<ScalarOp::cos>()},
    {"weft_f64_tanh", f64_1<ScalarOp::tanh>()},
    {"weft_f64_erf", f64_1<ScalarOp::erf>()},
    {"weft_f64_erfinv", f64_1<ScalarOp::erfinv>()},
    {"weft_f64_sigmoid", f64_1<ScalarOp::sigmoid>()},
    {"weft_f64_pow", address(&binary<ScalarOp::pow>)},
});

}  // namespace

void initialise_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
  });
}

Jit::Jit() {
  initialise_llvm();
  require(LLVMOrcCreateLLJIT(&jit_, nullptr), "the loader does not start");
  std::array<LLVMOrcCSymbolMapPair, std::tuple_size_v<decltype(symbols)>> map;
  for (size_t k = 0; k < map.size(); ++k) {
    const LLVMJITSymbolFlags flags{LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable, 0};
    map[k] = {LLVMOrcLLJITMangleAndIntern(jit_, symbols[k].name),
              {reinterpret_cast<LLVMOrcExecutorAddress>(symbols[k].address), flags}};
  }
  require(LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(jit_), LLVMOrcAbsoluteSymbols(map.data(), map.size())),
          "symbols are refused");
}

Jit::~Jit() {
  if (LLVMErrorRef error = LLVMOrcDisposeLLJIT(jit_)) LLVMConsumeError(error);
}

KernelFunction Jit::load(const std::vector<char>& object, const std::string& symbol) {
  const LLVMMemoryBufferRef buffer =
      LLVMCreateMemoryBufferWithMemoryRangeCopy(object.data(), object.size(), symbol.c_str());
  require(LLVMOrcLLJITAddObjectFile(jit_, LLVMOrcLLJITGetMainJITDylib(jit_), buffer), "an object is refused");
  LLVMOrcExecutorAddress result = 0;
  require(LLVMOrcLLJITLookup(jit_, &result, symbol.c_str()), "an object does not link");
  return reinterpret_cast<KernelFunction>(result);
}

}  // namespace weft::target
