#include "target/cuda/codegen/wgmma.h"

#include <fmt/format.h>

namespace weft::target::cuda {

std::string wgmma_function(const Wgmma& form) {
  const int64_t sums = form.columns / 2;  // registers a thread
  std::string registers, operands;
  for (int64_t r = 0; r < sums; ++r) {
    registers += fmt::format("{}%{}", r ? ", " : "", r);
    operands += fmt::format("{}\"+f\"(sum[{}][{}])", r ? ", " : "", r / 4, r % 4);
  }
  const bool tf32 = form.operands == float32;
  const char* type = tf32 ? "tf32" : form.operands == bfloat16 ? "bf16" : "f16";
  const std::string major = tf32 ? "" : fmt::format(", {:d}, {:d}", form.a_m_major, form.b_n_major);
  return fmt::format(
      "static __device__ __forceinline__ void wgmma(float (&sum)[{}][4], const unsigned long long a,\n"
      "                                             const unsigned long long b, const int accumulate) {{\n"
      "  asm volatile(\"{{.reg .pred p; setp.ne.b32 p, %{}, 0; wgmma.mma_async.sync.aligned.m64n{}k{}.f32.{}.{} "
      "{{{}}}, %{}, %{}, p, 1, 1{};}}\"\n               : {}\n               : \"l\"(a), \"l\"(b), \"r\"(accumulate) : "
      "\"memory\");\n}}\n",
      form.accumulators, sums + 2, form.columns, tf32 ? 8 : 16, type, type, registers, sums, sums + 1, major, operands);
}

}  // namespace weft::target::cuda
