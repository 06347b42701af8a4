#pragma once
// Describes a machine as data: what scheduling, fusion and lowering ask about the device that a program runs on. A
// target fills it in from the driver or the CPU; stated machines serve tests and compiling without a device.
//
// Machines come in two kinds. A CPU runs a program on one core, with tiles in vector registers. A GPU runs a program by
// a block of threads that share the lanes of its tiles (SIMT), and hides the latency of memory by running many
// programs.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "weft/dtype.h"

namespace weft::target {

/// Dense peak rates in operations per second; a multiplication and an addition count as two. 0: unknown or unsupported.
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
  int64_t vector_bytes = 16;  // bytes of a tile row computed at once: by a vector register, or by a block
  int64_t min_lanes = 1;      // bounds of lanes()
  int64_t max_lanes = INT64_MAX;
  int64_t vector_registers = 16;     // tiles of vector_bytes that stay in registers
  int64_t shared_bytes = INT64_MAX;  // most shared memory of a block; CPUs have no bound
  int64_t cluster = 1;               // largest cluster that any program may use; 1: no clusters
  int64_t max_cluster = 1;  // largest cluster for programs that need most of an SM, or as many blocks as possible
  int64_t l2_bytes = 0;
  double bandwidth = 0;       // of memory, bytes per second
  double launch_seconds = 0;  // from one launch to the next
  PeakFlops peak;
  bool tensor_cores = false;  // of which products of tiles are made

  /// Returns the number of lanes of a tile for elements of `bytes` bytes.
  int64_t lanes(int64_t bytes) const;
  /// Returns the bytes of shared memory for a program that multiplies operands of this dtype on tensor cores (float32
  /// is rounded to TF32), or 0 if they do not support it.
  int64_t tensor_core_bytes(Dtype operands) const;
  /// Returns the peak operations per second of matmuls with operands of this dtype. `tf32`: float32 may be rounded to
  /// it.
  double matmul_flops(Dtype operands, bool tf32 = false) const;
  bool has_clusters() const { return cluster > 1; }
  /// Returns the digest of all fields except the rates: programs for this machine depend on these.
  Digest digest() const;

  // The functions below answer questions of fusion and lowering, each with its reason.

  /// True if a launch costs the host more than a small program costs the device, and launches queue up. Small launches
  /// are then merged, and a kernel may begin before the previous one has ended.
  bool queues_launches() const { return simt; }
  /// True if a lane whose condition is false reads nothing and gets zero, at no cost.
  bool masks_loads() const { return simt; }
  /// True if rows that several passes read are kept in shared memory as they were loaded, since memory bandwidth is the
  /// limit. A CPU finds them in its caches, and keeps values that were expensive to compute instead.
  bool keeps_loads() const { return simt; }
  /// True if copies to shared memory run asynchronously and take no registers.
  bool copies_asynchronously() const { return simt; }
  /// True if prefetch instructions help: one program has a core to itself, and no other program hides its latency.
  bool prefetches() const { return !simt; }
  /// True if loads in flight hide the latency of memory. Lowering then uses many partial results and issues loads
  /// early.
  bool wants_loads_in_flight() const { return simt; }
  /// True if a multiplication and an addition of tiles become one instruction.
  bool fuses_multiply_add() const { return simt; }
  /// True if threads exchange elements through shared memory: tiles are transposed there, row by row.
  bool transposes_in_shared_memory() const { return simt; }
  /// True if only many programs fill the machine. Lowering then divides a result among several owners, sums columns in
  /// the same kernel as rows, and cuts long chains into parts.
  bool wants_many_programs() const { return simt; }
  /// True if a matmul sums an operand along k at little cost (the gradient of a bias beside that of its weight): the
  /// core that multiplies the operand has it in its cache. On a GPU a pass of its own is faster: cuBLASLt's sums make a
  /// TF32 or 16-bit matmul a third to a half longer, exact float32 ones up to many times
  /// (docs/notes/matmul-epilogues.md).
  bool sums_operands() const { return !simt; }
  /// True if a warp has whole rows of a product of 16-bit floats, as wgmma leaves them. Lowering then computes the
  /// epilogue some columns at a time.
  bool whole_rows_of_products() const { return arch == "sm_90a"; }
};

/// Returns machines as their vendors specify them: A100, H100, H200, B200, RTX 4090, L4, and CPUs with AVX2 and
/// AVX-512.
std::span<const Machine> stated_machines();
/// Finds a stated machine by name ("NVIDIA H100") or architecture ("sm_90a": the first match). Throws
/// std::invalid_argument with the known names.
const Machine& stated_machine(std::string_view name);
/// Returns a GPU of an architecture ("sm_86"): the stated one if there is one, else what its compute capability
/// implies.
Machine gpu_of(std::string_view arch);

}  // namespace weft::target
