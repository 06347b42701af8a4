#pragma once
// LLVM IR to object code. A CodeGenerator belongs to one thread; what it returns is a relocatable object with one
// function.
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

  /// Object code of an expanded kernel. Throws internal_error where LLVM refuses.
  std::vector<char> object(const kernel::Kernel& kernel, const std::string& symbol);
  /// The same as text, for people and tests.
  std::string assembly(const kernel::Kernel& kernel, const std::string& symbol);
  std::string ir(const kernel::Kernel& kernel, const std::string& symbol);

 private:
  std::vector<char> emit(const kernel::Kernel& kernel, const std::string& symbol, LLVMCodeGenFileType type);
  LLVMModuleRef optimised(LLVMContextRef context, const kernel::Kernel& kernel, const std::string& symbol);
  Isa isa_;
  LLVMTargetMachineRef machine_;
};

/// The object and its name between the code generator and the disk: a header with magic, length and checksum around the
/// bytes.
std::vector<char> seal(const std::vector<char>& object);
/// The object, or empty where the entry is truncated, foreign or damaged.
std::vector<char> unseal(const std::vector<char>& entry);

}  // namespace weft::target
