#pragma once
// Renders tile IR as LLVM IR: an expanded kernel becomes a module with one function
//
//   void symbol(void* const* buffers, const int64_t* symbols, int64_t begin, int64_t end)
//
// that runs the program ids begin … end-1.
#include <llvm-c/Types.h>

#include <string>

#include "kernel/tile.h"
#include "target/cpu/codegen/options.h"

namespace weft::target {

LLVMModuleRef render(LLVMContextRef context, const kernel::Kernel& kernel, const std::string& symbol, const Isa& isa);

}  // namespace weft::target
