#pragma once
// GEMM of 16-bit matrices with a fused epilogue, for devices with wgmma (sm_90a). This is the host side; gemm.cu
// describes the kernel.
//
// It takes a matmul whose A, B and C have one 16-bit dtype and whose batch axes merge with rows. A and B are contiguous
// along one axis, C along its columns; lines begin at multiples of 16 bytes, and may end anywhere. The epilogue is a
// bias with relu or tanh gelu (also with the pre-activation stored, or with gelu's derivative as a factor), or a
// residual, and optionally the sums of each 128 rows of C. The sum is rounded to C's dtype before an activation or a
// residual.
#include <optional>
#include <string>

#include "kernel/describe/desc.h"
#include "target/cuda/handwritten/registry.h"

namespace weft::target::cuda {

/// What a kernel is specialized for; extents and strides are arguments.
struct GemmForm {
  static constexpr int64_t tile_m = 128, max_tile_n = 256, tile_k = 64, stages = 3, threads = 384;

  Dtype dtype = bfloat16;
  bool a_m_major = false, b_n_major = false;  // contiguous along m, along n, instead of along k
  bool bias = false, residual = false, sums = false;
  kernel::Activation activation = kernel::Activation::none;
  kernel::PreActivation argument = kernel::PreActivation::none;
  int64_t tile_n = max_tile_n;  // divides n so that tiles reach little past the matrix

  std::string symbol() const;  // of the kernel: "gemm_bf16_b_n_major_gelu_tanh_slope"
  int64_t shared_bytes() const;
};

/// Returns the form, or nothing if the kernel does not take the matmul. `merged` gets the matmul with batch axes merged
/// into rows.
std::optional<GemmForm> gemm_form(const kernel::DotDesc& desc, kernel::DotDesc* merged = nullptr);
/// Returns whether the kernel may beat cuBLASLt, so that compiling and measuring it is worthwhile: large matmuls whose
/// tiles keep all SMs busy. `merged`: without batch axes.
bool gemm_may_win(const kernel::DotDesc& merged, int64_t sms);
std::optional<Match> match_gemm(const Work& work, const Machine& machine);

}  // namespace weft::target::cuda
