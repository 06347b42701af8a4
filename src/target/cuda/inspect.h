#pragma once
// What the CUDA target makes of a kernel: source, PTX and machine code as text, registers, shared memory, occupancy.
// All of it needs NVRTC at most, and no GPU.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/tile.h"
#include "target/cuda/driver/nvrtc.h"
#include "target/machine.h"

namespace weft::target::cuda {

/// How many blocks of a kernel an SM holds at once.
struct Occupancy {
  int64_t blocks = 0;
  int64_t threads = 0;
  double share = 0;     // of the threads that it can hold
  std::string limiter;  // "registers", "shared memory", "threads" or "blocks": what more blocks lack
};
/// Computes the occupancy from the limits of the machine. `shared_bytes`: of a block, static and dynamic.
Occupancy occupancy(const Machine& machine, int64_t threads, int64_t registers, int64_t shared_bytes);

/// A kernel's machine code for one architecture.
struct KernelCode {
  std::string source;  // CUDA C++, without what precedes every kernel
  std::vector<char> cubin;
  KernelUsage usage;         // of a thread; shared_bytes: static
  int64_t threads = 0;       // of a block
  int64_t programs = 1;      // that a block runs at once
  int64_t blocks = 1;        // that run one program: a cluster
  int64_t shared_bytes = 0;  // of a block, static and dynamic
  Occupancy occupancy;
  bool serialized = false;  // ptxas lets the products of warpgroups wait for each other
};
/// Compiles a kernel as its launches with aligned arrays are. Throws std::runtime_error without NVRTC, and where it
/// does not compile.
KernelCode code_of(const kernel::Kernel& kernel, const Machine& machine);

/// Returns a kernel at a stage: "cuda", "ptx" or "sass"; the last needs nvdisasm or cuobjdump in WEFT_CUDA_PATH/bin or
/// PATH. Throws std::invalid_argument for other stages, std::runtime_error where a tool is missing.
std::string gpu_stage(const kernel::Kernel& kernel, std::string_view stage, const Machine& machine);

}  // namespace weft::target::cuda
