#include "target/cpu/codegen/compile.h"

#include <fmt/format.h>
#include <llvm-c/Core.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Config/llvm-config.h>

#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/hash.h"
#include "target/cpu/codegen/render.h"

namespace weft::target {
namespace {

// The passes that run on rendered IR. The renderer emits vectors and rotated loops itself, so little is left to do:
// fold addresses, share equal subexpressions, hoist loop invariants. The full O2 pipeline takes twice as long and gives
// the same code.
#if LLVM_VERSION_MAJOR >= 18
#define WEFT_INSTCOMBINE "instcombine<no-verify-fixpoint>"
#else
#define WEFT_INSTCOMBINE "instcombine"
#endif
constexpr const char* passes =
    "function(early-cse<memssa>," WEFT_INSTCOMBINE ",loop-mssa(licm<allowspeculation>),early-cse)";
constexpr const char* least_passes = "function(early-cse)";

std::string take(char* text) {
  std::string copy = text ? text : "";
  LLVMDisposeMessage(text);
  return copy;
}

struct ContextDeleter {
  void operator()(LLVMContextRef c) const { LLVMContextDispose(c); }
};
struct ModuleDeleter {
  void operator()(LLVMModuleRef m) const { LLVMDisposeModule(m); }
};
using Context = std::unique_ptr<LLVMOpaqueContext, ContextDeleter>;
using Module = std::unique_ptr<LLVMOpaqueModule, ModuleDeleter>;

}  // namespace

CodeGenerator::CodeGenerator(const Isa& isa) : isa_(isa) {
  const std::string triple = take(LLVMGetDefaultTargetTriple());
  LLVMTargetRef target = nullptr;
  char* message = nullptr;
  if (LLVMGetTargetFromTriple(triple.c_str(), &target, &message))
    throw_failure("cpu target", "LLVM has no code generator for this machine: " + take(message));
  const LLVMCodeGenOptLevel level = isa.optimised ? LLVMCodeGenLevelAggressive : LLVMCodeGenLevelNone;
  machine_ = LLVMCreateTargetMachine(target, triple.c_str(), isa.cpu.c_str(), isa.features.c_str(), level, LLVMRelocPIC,
                                     LLVMCodeModelSmall);
}

CodeGenerator::~CodeGenerator() { LLVMDisposeTargetMachine(machine_); }

LLVMModuleRef CodeGenerator::optimised(LLVMContextRef context, const kernel::Kernel& kernel,
                                       const std::string& symbol) {
  const LLVMModuleRef module = render(context, kernel, symbol, isa_);
  const std::string triple = take(LLVMGetTargetMachineTriple(machine_));
  LLVMSetTarget(module, triple.c_str());
  const LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine_);
  LLVMSetModuleDataLayout(module, layout);
  LLVMDisposeTargetData(layout);
  const LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  const LLVMErrorRef error = LLVMRunPasses(module, isa_.optimised ? passes : least_passes, machine_, options);
  LLVMDisposePassBuilderOptions(options);
  if (error) {
    char* text = LLVMGetErrorMessage(error);
    const std::string message = text;
    LLVMDisposeErrorMessage(text);
    LLVMDisposeModule(module);
    throw_internal("cpu compile", message);
  }
  return module;
}

std::vector<char> CodeGenerator::emit(const kernel::Kernel& kernel, const std::string& symbol,
                                      LLVMCodeGenFileType type) {
  const Context context(LLVMContextCreate());
  const Module module(optimised(context.get(), kernel, symbol));
  char* message = nullptr;
  LLVMMemoryBufferRef buffer = nullptr;
  if (LLVMTargetMachineEmitToMemoryBuffer(machine_, module.get(), type, &message, &buffer))
    throw_internal("cpu compile", fmt::format("kernel {}: {}", kernel.name, take(message)));
  const char* begin = LLVMGetBufferStart(buffer);
  std::vector<char> bytes(begin, begin + LLVMGetBufferSize(buffer));
  LLVMDisposeMemoryBuffer(buffer);
  return bytes;
}

std::vector<char> CodeGenerator::object(const kernel::Kernel& kernel, const std::string& symbol) {
  return emit(kernel, symbol, LLVMObjectFile);
}

std::string CodeGenerator::assembly(const kernel::Kernel& kernel, const std::string& symbol) {
  const std::vector<char> text = emit(kernel, symbol, LLVMAssemblyFile);
  return {text.begin(), text.end()};
}

std::string CodeGenerator::ir(const kernel::Kernel& kernel, const std::string& symbol) {
  const Context context(LLVMContextCreate());
  const Module module(optimised(context.get(), kernel, symbol));
  return take(LLVMPrintModuleToString(module.get()));
}

namespace {

struct Header {
  char magic[8] = {'w', 'e', 'f', 't', 'o', 'b', 'j', '1'};
  uint64_t bytes = 0;
  uint64_t checksum[2] = {};
};

Header header_of(const char* object, size_t bytes) {
  Header h;
  h.bytes = bytes;
  const Digest d = Hasher().bytes(object, bytes).finish();
  h.checksum[0] = d.hi;
  h.checksum[1] = d.lo;
  return h;
}

}  // namespace

std::vector<char> seal(const std::vector<char>& object) {
  const Header h = header_of(object.data(), object.size());
  std::vector<char> entry(sizeof h + object.size());
  std::memcpy(entry.data(), &h, sizeof h);
  std::memcpy(entry.data() + sizeof h, object.data(), object.size());
  return entry;
}

std::vector<char> unseal(const std::vector<char>& entry) {
  if (entry.size() <= sizeof(Header)) return {};
  const Header h = header_of(entry.data() + sizeof(Header), entry.size() - sizeof(Header));
  if (std::memcmp(&h, entry.data(), sizeof h) != 0) return {};
  return {entry.begin() + sizeof(Header), entry.end()};
}

}  // namespace weft::target
