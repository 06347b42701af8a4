#pragma once
// GEMM of 16-bit matrices with a fused epilogue, for devices with wgmma (sm_90a): the host side of gemm.cu, which says
// how it works.
//
// It takes a product where A, B and C have one 16-bit dtype and no batch axes that do not merge with rows; A and B are
// contiguous along one axis, C along its columns; lines begin at multiples of 16 bytes; the epilogue is a bias and
// relu, tanh's gelu (also with its argument stored, or its derivative as a factor) or a residual, and beside C the sums
// of each 128 of its rows. The sum is rounded to C's dtype before an activation or a residual.
#include <optional>
#include <string>

#include "kernel/describe/desc.h"
#include "target/cuda/handwritten/registry.h"

namespace weft::target::cuda {

/// What code is made for; extents and strides are arguments.
struct GemmForm {
  static constexpr int64_t tile_m = 128, max_tile_n = 256, tile_k = 64, stages = 3, threads = 384;

  Dtype dtype = bfloat16;
  bool a_m_major = false, b_n_major = false;  // contiguous along m, along n, not along k
  bool bias = false, residual = false, sums = false;
  kernel::Activation activation = kernel::Activation::none;
  kernel::PreActivation argument = kernel::PreActivation::none;
  int64_t tile_n = max_tile_n;  // divides n into tiles that leave little beside the matrix

  std::string symbol() const;  // of the kernel: "gemm_bf16_b_n_major_gelu_tanh_slope"
  int64_t shared_bytes() const;
};

/// Returns the form, or nothing where the kernel does not take the product. `merged`: the product with its batch axes
/// as rows.
std::optional<GemmForm> gemm_form(const kernel::DotDesc& desc, kernel::DotDesc* merged = nullptr);
/// Whether it is likely to beat cuBLASLt, so that it is worth compiling and measuring: large products whose tiles keep
/// all SMs busy. `merged`: without batch axes.
bool gemm_may_win(const kernel::DotDesc& merged, int64_t sms);
std::optional<Match> match_gemm(const Work& work, const Machine& machine);

}  // namespace weft::target::cuda
