// Machines as data: what is stated of them, and what is answered from it.
#include <doctest/doctest.h>

#include <set>
#include <stdexcept>
#include <string>

#include "target/target.h"

using namespace weft;
using target::Machine;

TEST_CASE("stated machines have names of their own and no field left open") {
  std::set<std::string> names;
  for (const Machine& m : target::stated_machines()) {
    CAPTURE(m.name);
    CHECK(names.insert(m.name).second);
    CHECK_FALSE(m.arch.empty());
    CHECK(m.processors > 1);
    CHECK(m.l2_bytes > 0);
    CHECK(m.bandwidth > 1e11);
    CHECK(m.launch_seconds > 0);
    CHECK(m.peak.f32 > m.peak.f64);
    CHECK(m.max_cluster >= m.cluster);
    CHECK(m.simt == (m.warp == 32));
    CHECK(m.simt == m.arch.starts_with("sm_"));
    CHECK(m.simt == (m.registers > 0));
    CHECK(m.tensor_cores == (m.peak.f16 > 0));
  }
  CHECK(names.size() == 8);
}

TEST_CASE("a stated machine is found by its name and by its architecture, others are refused with the names") {
  CHECK(target::stated_machine("NVIDIA H100").bandwidth < target::stated_machine("NVIDIA H200").bandwidth);
  CHECK(target::stated_machine("sm_80").name == "NVIDIA A100");
  CHECK_THROWS_WITH_AS(target::stated_machine("sm_61"), doctest::Contains("NVIDIA A100, "), std::invalid_argument);
}

TEST_CASE("an architecture that no stated GPU has follows from its capability") {
  const Machine small = target::gpu_of("sm_86");
  CHECK(small.simt);
  CHECK(small.shared_bytes == 99 << 10);
  CHECK(small.max_threads == 1536);
  CHECK_FALSE(small.has_clusters());
  CHECK(target::gpu_of("sm_70").tensor_core_bytes(float16) == 0);
  CHECK(target::gpu_of("sm_90").max_cluster == 8);  // may be a part of a device
  CHECK(target::gpu_of("sm_90a").max_cluster == 16);
  CHECK_THROWS_AS(target::gpu_of("avx2"), std::invalid_argument);
  CHECK_THROWS_AS(target::gpu_of("sm_x"), std::invalid_argument);
}

TEST_CASE("lanes fill vectors of a CPU and blocks of a GPU") {
  const Machine &wide = target::stated_machine("avx512"), &gpu = target::stated_machine("sm_90a");
  CHECK(wide.lanes(4) == 16);
  CHECK(wide.lanes(8) == 8);
  CHECK(wide.lanes(128) == 1);
  CHECK(gpu.lanes(2) == 512);
  CHECK(gpu.lanes(4) == 256);
  CHECK(gpu.lanes(16) == 64);
  CHECK(gpu.lanes(32) == 64);
}

TEST_CASE("peaks of matmuls are those of the fastest unit that the dtype and the precision allow") {
  const Machine &gpu = target::stated_machine("NVIDIA H100"), &old = target::stated_machine("NVIDIA A100");
  CHECK(gpu.matmul_flops(bfloat16) == gpu.peak.f16);
  CHECK(gpu.matmul_flops(float32) == gpu.peak.f32);
  CHECK(gpu.matmul_flops(float32, true) == gpu.peak.tf32);
  CHECK(gpu.matmul_flops(float8_e4m3) == gpu.peak.f8);
  CHECK(old.matmul_flops(float8_e4m3) == old.peak.f16);  // widened: there are no units for them
  CHECK(gpu.matmul_flops(float64) == gpu.peak.f64);
  CHECK(gpu.tensor_core_bytes(bfloat16) == 227 << 10);
  CHECK(gpu.tensor_core_bytes(float64) == 0);
  CHECK(gpu.tensor_core_bytes(float8_e4m3) == 227 << 10);
  CHECK(gpu.tensor_core_bytes(int8) == 227 << 10);
  CHECK(gpu.tensor_core_bytes(int16) == 0);
  CHECK(target::gpu_of("sm_86").tensor_core_bytes(uint8) > 0);
  CHECK(target::gpu_of("sm_86").tensor_core_bytes(float8_e5m2) == 0);  // from sm_89 on
  CHECK(target::gpu_of("sm_89").tensor_core_bytes(float8_e5m2) > 0);
}

TEST_CASE("this process's CPU is described as it is") {
  const Machine& m = target::cpu().machine();
  CHECK_FALSE(m.simt);
  CHECK(m.processors >= 1);
  CHECK(m.lanes(4) * 4 == m.vector_bytes);
  CHECK((m.vector_registers == 32) == (m.vector_bytes == 64));
}
