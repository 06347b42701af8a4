#pragma once
// Loads object code into the process. The symbols that generated code may need (a few of libm and libc, the float64
// functions) are given here and nowhere else, so that it does not matter how the process itself was linked.
#include <llvm-c/LLJIT.h>

#include <string>
#include <vector>

namespace weft::target {

using KernelFunction = void (*)(void* const* buffers, const int64_t* symbols, int64_t begin, int64_t end);

class Jit {
 public:
  Jit();
  ~Jit();
  Jit(const Jit&) = delete;
  Jit& operator=(const Jit&) = delete;
  /// Thread-safe; a symbol may be loaded once. Throws std::runtime_error where the object does not link.
  KernelFunction load(const std::vector<char>& object, const std::string& symbol);

 private:
  LLVMOrcLLJITRef jit_ = nullptr;
};

/// Makes LLVM's code generator for this machine known; called once by the process before anything else of LLVM.
void initialise_llvm();

}  // namespace weft::target
