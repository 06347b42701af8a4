#pragma once
// Loads object code into the process. The symbols that generated code may use (some of libm and libc, the float64
// functions) are defined here alone, so that it does not matter how the process itself was linked.
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
  /// Loads an object and returns its function. Thread-safe; a symbol may be loaded once. Throws std::runtime_error if
  /// the object does not link.
  KernelFunction load(const std::vector<char>& object, const std::string& symbol);

 private:
  LLVMOrcLLJITRef jit_ = nullptr;
};

/// Initialises LLVM's code generator for this machine. Call it before anything else of LLVM; later calls do nothing.
void initialise_llvm();

}  // namespace weft::target
