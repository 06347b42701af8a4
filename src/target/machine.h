#pragma once
// A machine as data: what scheduling, fusion and lowering ask of the device that a program runs on. A target fills it
// in from the driver or the CPU; stated machines are for tests and for compiling without a device.
//
// Two kinds differ in more than numbers. A CPU runs a program on one core, with tiles in vector registers. A GPU runs a
// program by a block of threads that share the lanes of its tiles (SIMT); many programs hide the latency of memory.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "weft/dtype.h"

namespace weft::target {

/// Dense peaks in operations per second; a multiplication and an addition are two. 0: unknown, or not there.
struct PeakFlops {
  double f64 = 0, f32 = 0;           // vector units
  double tf32 = 0, f16 = 0, f8 = 0;  // tensor cores or tile units, float32 sums; f16 is bfloat16 as well
};

struct Machine {
  std::string name;           // "NVIDIA H200"
  std::string arch;           // "sm_90a", "avx512": what code is made for
  bool simt = false;          // a program is run by a block of threads
  int64_t processors = 1;     // SMs or cores
  int64_t warp = 1;           // threads that execute one instruction together
  int64_t max_threads = 1;    // of one processor at a time
  int64_t registers = 0;      // 32-bit registers of an SM; CPUs: see vector_registers
  int64_t vector_bytes = 16;  // bytes of a tile row that the machine computes at once: a vector register's, a block's
  int64_t min_lanes = 1;      // bounds of lanes()
  int64_t max_lanes = INT64_MAX;
  int64_t vector_registers = 16;     // tiles of vector_bytes that stay in registers
  int64_t shared_bytes = INT64_MAX;  // shared memory that one block may ask for; no bound where scratch is memory
  int64_t cluster = 1;               // blocks of a cluster that any program may have; 1: there are no clusters
  int64_t max_cluster = 1;           // the same for programs that need most of an SM, or as many blocks as possible
  int64_t l2_bytes = 0;
  double bandwidth = 0;       // of memory, bytes per second
  double launch_seconds = 0;  // from one launch to the next
  PeakFlops peak;
  bool tensor_cores = false;  // kernel::Op::matmul has instructions of its own

  /// Lanes of a tile for elements of `bytes` bytes.
  int64_t lanes(int64_t bytes) const;
  /// Shared memory for a program that multiplies operands of this dtype on tensor cores (float32 is rounded to TF32);
  /// 0: there are none for them.
  int64_t tensor_core_bytes(Dtype operands) const;
  /// Peak operations per second of matmuls with operands of this dtype; `tf32`: float32 may be rounded to it.
  double matmul_flops(Dtype operands, bool tf32 = false) const;
  bool has_clusters() const { return cluster > 1; }
  /// The digest of all fields but the rates: what programs for this machine depend on.
  Digest digest() const;

  // What follows answers questions of fusion and lowering, each with the reason.

  /// A launch costs the host more than a small program costs the device, and launches queue up: small ones are merged,
  /// and a kernel may begin before the one before it has ended.
  bool queues_launches() const { return simt; }
  /// A lane whose condition does not hold reads nothing and gets zero, at no cost.
  bool masks_loads() const { return simt; }
  /// Rows that several passes read are kept in shared memory as they were loaded, since memory is what limits. A CPU
  /// finds them in its caches, and keeps what was expensive to compute instead.
  bool keeps_loads() const { return simt; }
  /// Copies to shared memory run beside the computation without taking registers.
  bool copies_asynchronously() const { return simt; }
  /// Prefetch instructions help: one program has a core to itself, and nobody else hides its waiting.
  bool prefetches() const { return !simt; }
  /// Latency is hidden by loads under way: many partial results, and loads that begin early.
  bool wants_loads_in_flight() const { return simt; }
  /// A multiplication and an addition of tiles become one instruction of a thread.
  bool fuses_multiply_add() const { return simt; }
  /// Threads exchange elements through shared memory: tiles are transposed there, row by row.
  bool transposes_in_shared_memory() const { return simt; }
  /// Only many programs fill the machine: owners of parts of the result, columns beside rows, chains cut shorter.
  bool wants_many_programs() const { return simt; }
  /// Attention of many queries keeps its tiles in registers. With 16 vector registers separate kernels do better (and
  /// LLVM 19 fails on some of its code for AVX2).
  bool holds_attention_tiles() const { return vector_registers >= 32; }
};

/// Machines as their makers state them: A100, H100, H200, B200, RTX 4090, L4, and CPUs with AVX2 and AVX-512.
std::span<const Machine> stated_machines();
/// By name ("NVIDIA H100") or architecture ("sm_90a": the first one that has it). Throws std::invalid_argument with the
/// names that are known.
const Machine& stated_machine(std::string_view name);
/// A GPU of an architecture ("sm_86"): the stated one where there is one, else what its capability implies.
Machine gpu_of(std::string_view arch);

}  // namespace weft::target
