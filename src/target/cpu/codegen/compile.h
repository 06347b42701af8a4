#pragma once
// Compiles kernels to object code by LLVM. A CodeGenerator belongs to one thread; its result is a relocatable object
// with one function.
#include <llvm-c/TargetMachine.h>

#include <string>
#include <vector>

#include "kernel/tile.h"
#include "target/cpu/codegen/options.h"

namespace weft::target {

class CodeGenerator {
 public:
  explicit CodeGenerator(const Isa& isa);
  ~CodeGenerator();
  CodeGenerator(const CodeGenerator&) = delete;
  CodeGenerator& operator=(const CodeGenerator&) = delete;

  /// Returns object code of an expanded kernel. Throws internal_error if LLVM rejects it.
  std::vector<char> object(const kernel::Kernel& kernel, const std::string& symbol);
  /// Return the same as assembly, and the LLVM IR: for debugging and tests.
  std::string assembly(const kernel::Kernel& kernel, const std::string& symbol);
  std::string ir(const kernel::Kernel& kernel, const std::string& symbol);

 private:
  std::vector<char> emit(const kernel::Kernel& kernel, const std::string& symbol, LLVMCodeGenFileType type);
  LLVMModuleRef optimised(LLVMContextRef context, const kernel::Kernel& kernel, const std::string& symbol);
  Isa isa_;
  LLVMTargetMachineRef machine_;
};

/// Wraps an object for the disk cache: adds a header with magic, length and checksum.
std::vector<char> seal(const std::vector<char>& object);
/// Unwraps a cache entry. Returns an empty vector if it is truncated, foreign or damaged.
std::vector<char> unseal(const std::vector<char>& entry);

}  // namespace weft::target
