#include "target/machine.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/number.h"

namespace weft::target {
namespace {

/// Properties that all GPUs of a compute capability share.
struct Capability {
  int version;
  int64_t max_threads, shared_kib;
  int64_t cluster, max_cluster;
};
constexpr Capability capabilities[] = {
    // CUDA C++ programming guide, "Technical specifications per compute capability". The driver takes 1 KiB of shared
    // memory a block. Clusters of 16 need a whole data centre GPU.
    {75, 1024, 64, 1, 1},    {80, 2048, 163, 1, 1},   {86, 1536, 99, 1, 1},
    {87, 1536, 163, 1, 1},   {89, 1536, 99, 1, 1},    {90, 2048, 227, 8, 16},
    {100, 2048, 227, 8, 16}, {103, 2048, 227, 8, 16}, {120, 1536, 99, 8, 8},
};

/// Returns the number in an architecture's name: "sm_90a" → 90.
int version_of(std::string_view arch) {
  if (!arch.starts_with("sm_") || arch.size() < 5 || arch[3] < '1' || arch[3] > '9')
    throw_invalid("machine", fmt::format("'{}' is no GPU architecture: sm_80, sm_90a …", arch));
  return std::stoi(std::string(arch.substr(3)));
}

/// Returns what the compute capability of an architecture implies, with typical values for the rest.
Machine gpu_machine(std::string_view arch) {
  const int version = version_of(arch);
  const Capability* best = &capabilities[0];
  for (const Capability& c : capabilities)
    if (c.version <= version) best = &c;
  Machine m;
  m.name = fmt::format("GPU of {}", arch);
  m.arch = arch;
  m.simt = true;
  m.processors = 108;
  m.warp = 32;
  m.max_threads = best->max_threads;
  m.registers = 65536;
  m.vector_bytes = 1024;
  m.min_lanes = 64;
  m.shared_bytes = (version < 75 ? 48 : best->shared_kib) << 10;
  // Code for sm_90 without the letter may run on a partition of a device, which may lack room for a cluster of 16
  // blocks.
  const bool whole = arch == "sm_90a" || version == 100 || version == 103;
  m.cluster = best->cluster;
  m.max_cluster = whole ? best->max_cluster : best->cluster;
  m.launch_seconds = 2.5e-6;
  m.tensor_cores = version >= 80;
  return m;
}

struct StatedGpu {
  const char *name, *arch;
  int64_t processors, l2_mib;
  double terabytes;  // per second
  PeakFlops teraflops;
};
// NVIDIA's data sheets and architecture white papers; rates without sparsity, with float32 sums.
constexpr StatedGpu gpus[] = {
    {"NVIDIA A100", "sm_80", 108, 40, 2.039, {9.7, 19.5, 156, 312, 0}},
    {"NVIDIA GeForce RTX 4090", "sm_89", 128, 72, 1.008, {1.29, 82.6, 82.6, 165.2, 330.3}},
    {"NVIDIA L4", "sm_89", 58, 48, 0.3, {0.47, 30.3, 60, 121, 242}},
    {"NVIDIA H200", "sm_90a", 132, 50, 4.8, {34, 67, 494.7, 989.4, 1978.9}},
    {"NVIDIA H100", "sm_90a", 132, 50, 3.35, {34, 67, 494.7, 989.4, 1978.9}},
    {"NVIDIA B200", "sm_100a", 148, 126, 8, {37, 75, 1100, 2250, 4500}},
};

struct StatedCpu {
  const char *name, *arch;
  int64_t vector_bytes, vector_registers, cores, l2_kib;
  double gigabytes, gigahertz;
};
// Typical servers of their generations: EPYC 7543 and Xeon 8358.
constexpr StatedCpu cpus[] = {
    {"CPU with AVX2", "avx2", 32, 16, 32, 512, 204.8, 2.8},
    {"CPU with AVX-512", "avx512", 64, 32, 32, 1280, 204.8, 2.6},
};

std::vector<Machine> state_machines() {
  std::vector<Machine> all;
  for (const StatedGpu& g : gpus) {
    Machine m = gpu_machine(g.arch);
    m.name = g.name;
    m.processors = g.processors;
    m.l2_bytes = g.l2_mib << 20;
    m.bandwidth = 1e12 * g.terabytes;
    m.peak = {1e12 * g.teraflops.f64, 1e12 * g.teraflops.f32, 1e12 * g.teraflops.tf32, 1e12 * g.teraflops.f16,
              1e12 * g.teraflops.f8};
    all.push_back(m);
  }
  for (const StatedCpu& c : cpus) {
    Machine m;
    m.name = c.name;
    m.arch = c.arch;
    m.processors = c.cores;
    m.vector_bytes = c.vector_bytes;
    m.vector_registers = c.vector_registers;
    m.l2_bytes = c.l2_kib << 10;
    m.bandwidth = 1e9 * c.gigabytes;
    m.launch_seconds = 1e-6;
    // Each core has two units for fused multiply-adds.
    const int64_t cycle_flops = c.cores * c.vector_bytes / 4 * 2 * 2;
    m.peak.f32 = 1e9 * c.gigahertz * static_cast<double>(cycle_flops);
    m.peak.f64 = m.peak.f32 / 2;
    all.push_back(m);
  }
  return all;
}

}  // namespace

int64_t Machine::lanes(int64_t bytes) const { return std::clamp(vector_bytes / bytes, min_lanes, max_lanes); }

int64_t Machine::tensor_core_bytes(Dtype operands) const {
  if (!tensor_cores) return 0;
  const bool bytes = operands == int8 || operands == uint8 ||
                     (is_float8(operands) && arch.starts_with("sm_") && version_of(arch) >= 89);
  return bytes || operands == float16 || operands == bfloat16 || operands == float32 ? shared_bytes : 0;
}

Digest Machine::digest() const {
  Hasher h;
  h.text(name).text(arch).number(simt).number(tensor_cores);
  for (const int64_t field : {processors, warp, max_threads, registers, vector_bytes, min_lanes, max_lanes,
                              vector_registers, shared_bytes, cluster, max_cluster, l2_bytes})
    h.number(field);
  return h.finish();
}

double Machine::matmul_flops(Dtype operands, bool tf32) const {
  if (operands == float64) return peak.f64;
  double best = peak.f32;
  if (operands == float32) return tf32 ? std::max(best, peak.tf32) : best;
  if (operands == float16 || operands == bfloat16) best = std::max(best, peak.f16);
  if (is_float8(operands)) best = std::max({best, peak.f16, peak.f8});
  if (operands == int8 || operands == uint8) best = std::max(best, 2 * peak.f16);  // on all GPUs that have both
  return best;
}

std::span<const Machine> stated_machines() {
  static const std::vector<Machine> all = state_machines();
  return all;
}

const Machine& stated_machine(std::string_view name) {
  std::vector<std::string> known;
  for (const Machine& m : stated_machines()) {
    if (m.name == name || m.arch == name) return m;
    known.push_back(m.name);
  }
  throw_invalid("machine", fmt::format("'{}' is not stated: {}", name, fmt::join(known, ", ")));
}

Machine gpu_of(std::string_view arch) {
  for (const Machine& m : stated_machines())
    if (m.simt && m.arch == arch) return m;
  return gpu_machine(arch);
}

}  // namespace weft::target
