#pragma once
// Resolves the name of an instruction set to LLVM's CPU and feature strings and the facts that the renderer needs. All
// of them are part of a kernel's key in the object cache.
#include <cstdint>
#include <string>

namespace weft::target {

struct CpuOptions {
  // "native", "generic" (the baseline of the architecture), "avx2" or "avx512": for tests and for portable caches.
  std::string isa = "native";
  bool disk_cache = true;
  // Whether LLVM optimises. It compiles five times as fast without: for kernels that run once, in tests.
  bool optimised = true;
};

struct Isa {
  std::string name;      // as requested
  std::string cpu;       // LLVM's name of the processor
  std::string features;  // LLVM's feature list
  int vector_bits = 128;
  bool gathers = false;   // vector gathers of 4- and 8-byte elements
  bool scatters = false;  // vector scatters of the same, and gathers by mask
  // The smallest element, in bytes, of which vectors are loaded and stored by mask. LLVM makes a branch for each lane
  // of what the processor lacks, and takes time with the square of the lanes for it.
  int masked_bytes = 16;
  bool half = false;    // conversion between float16 and float32 in hardware
  bool tiles = false;   // matmuls of bfloat16 on tiles (AMX)
  bool bf16 = false;    // conversion from float32 to bfloat16 in hardware
  bool scales = false;  // vscalefps: ldexp is one instruction
  bool range = false;   // vrangeps: orders ±0 in max and min by one instruction
  bool optimised = true;
};

/// Sets the instruction set of this process's CPU target and of the libraries that it calls. Call it once, before
/// anything is computed. Sums in generated code are as wide as vectors, so results of different sets differ in
/// rounding. Throws std::invalid_argument if `resolve` does, or if the target is already in use with another set.
void set_cpu_isa(const std::string& isa);

/// Returns the instruction set of this process; from then on no other can be chosen.
const Isa& cpu_isa();

/// Resolves options for this processor. Throws std::invalid_argument if the name is unknown or the processor does not
/// support the set.
Isa resolve(const CpuOptions& options);

}  // namespace weft::target
