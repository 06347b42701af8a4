#pragma once
// Which instruction set generated code may use: in goes a name, out come LLVM's CPU and feature strings and the few
// facts that the renderer decides by. All of it is part of a kernel's key in the object cache.
#include <cstdint>
#include <string>

namespace weft::target {

struct CpuOptions {
  std::string isa =
      "native";  // or "generic" (the baseline of the architecture), "avx2", "avx512": for tests and for portable caches
  bool disk_cache = true;
};

struct Isa {
  std::string name;      // as asked for
  std::string cpu;       // LLVM's name of the processor
  std::string features;  // LLVM's feature list
  int vector_bits = 128;
  bool gathers = false;   // vector gathers of 4- and 8-byte elements
  bool scatters = false;  // vector scatters of the same
  bool half = false;      // conversion between float16 and float32 in hardware
  bool tiles = false;     // products of bfloat16 on tiles (AMX)
  bool bf16 = false;      // conversion from float32 to bfloat16 in hardware
  bool scales = false;    // vscalefps: ldexp is one instruction
  bool range = false;     // vrangeps: one instruction for the order of ±0 in max and min
};

/// The instruction set of this process's CPU target and of the libraries it calls: once, before anything is computed.
/// Sums in generated code are as wide as vectors are, so results of different sets differ in rounding. Throws
/// std::invalid_argument where `resolve` would, or where the target is in use with another.
void set_cpu_isa(const std::string& isa);

/// The one that this process uses; from then on no other can be chosen.
const Isa& cpu_isa();

/// Throws std::invalid_argument for an unknown name, or one that this processor cannot run.
Isa resolve(const CpuOptions& options);

}  // namespace weft::target
