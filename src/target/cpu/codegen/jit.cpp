#include "target/cpu/codegen/jit.h"

#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernel/scalar.h"
#include "target/cpu/codegen/programs.h"
#include "target/cpu/codegen/report.h"
#include "target/cpu/codegen/roles.h"

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

// Float64 functions that are not expanded: the operator's own definition.
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
  std::string name;
  void* address;
};

template <class Function>
void* address(Function* f) {
  return reinterpret_cast<void*>(f);
}
const auto library_symbols = std::to_array<Symbol>({
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
    {"weft_print", address<void(const char*, int64_t, const int64_t*)>(&print_values)},
    {"weft_fail", address<void(const char*)>(&report_failure)},
    {"weft_arrive", address<void(int64_t*, int64_t)>(&arrive_at_barrier)},
    {"weft_await", address<void(const int64_t*, int64_t, const char*)>(&await_phase)},
    {"weft_wait", address<void()>(&wait_for_programs)},
    {"weft_share", address<void(int64_t, void*)>(&share_local)},
    {"weft_neighbour", address<void*(int64_t, int64_t)>(&neighbour_local)},
    {"weft_meet", address<void(const char*)>(&meet_programs)},
    {"weft_roles", address<void(RoleBody const*, int64_t, void*)>(&run_roles)},
});

template <size_t... k>
std::vector<Symbol> all_symbols(std::index_sequence<k...>) {
  std::vector<Symbol> out(library_symbols.begin(), library_symbols.end());
  const auto add = [&](ScalarOp op, void* of_one, void* of_two) {
    const kernel::ScalarInfo& row = kernel::info(op);
    if (row.float64) out.push_back({"weft_f64_" + std::string(row.name), row.arity == 1 ? of_one : of_two});
  };
  (add(static_cast<ScalarOp>(k), address(&unary<static_cast<ScalarOp>(k)>), address(&binary<static_cast<ScalarOp>(k)>)),
   ...);
  return out;
}

}  // namespace

void initialise_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
#if defined(__x86_64__)
    // This pass of LLVM 19 ends the process at a masked load that became a copy: the size of its access is unknown.
    const char* const options[] = {"weft", "-x86-disable-avoid-SFB"};
    LLVMParseCommandLineOptions(2, options, nullptr);
#endif
  });
}

// Creates the loader and defines the symbols that generated code may use.
Jit::Jit() {
  initialise_llvm();
  require(LLVMOrcCreateLLJIT(&jit_, nullptr), "the loader does not start");
  static const std::vector<Symbol> symbols =
      all_symbols(std::make_index_sequence<static_cast<size_t>(ScalarOp::count_)>());
  std::vector<LLVMOrcCSymbolMapPair> map(symbols.size());
  for (size_t k = 0; k < map.size(); ++k) {
    const LLVMJITSymbolFlags flags{LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable, 0};
    map[k] = {LLVMOrcLLJITMangleAndIntern(jit_, symbols[k].name.c_str()),
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
