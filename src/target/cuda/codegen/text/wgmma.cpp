#include "target/cuda/codegen/text/wgmma.h"

#include <fmt/format.h>

namespace weft::target::cuda {

const char* operand_name(Dtype operands) {
  switch (operands) {
    case Dtype::Val::float32: return "tf32";
    case Dtype::Val::bfloat16: return "bf16";
    case Dtype::Val::float8_e4m3: return "e4m3";
    case Dtype::Val::float8_e5m2: return "e5m2";
    case Dtype::Val::int8: return "s8";
    case Dtype::Val::uint8: return "u8";
    default: return "f16";
  }
}

std::string wgmma_statement(const Wgmma& form, const std::function<std::string(int64_t)>& sum) {
  const int64_t n = form.columns / 2;  // sums of a thread
  const bool integers = is_integer(form.operands);
  std::string registers, operands;
  for (int64_t r = 0; r < n; ++r) {
    registers += fmt::format("{}%{}", r ? ", " : "", r);
    operands += fmt::format("{}\"+{}\"({})", r ? ", " : "", integers ? 'r' : 'f', sum(r));
  }
  const bool halves = form.operands.size() == 2, in_registers = form.a_in_registers;
  const std::string a = in_registers ? fmt::format("{{%{}, %{}, %{}, %{}}}", n, n + 1, n + 2, n + 3)
                                     : fmt::format("%{}", n),
                    inputs = in_registers ? R"("r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]))" : R"("l"(a))";
  const std::string major = !halves        ? ""
                            : in_registers ? fmt::format(", {:d}", form.b_n_major)
                                           : fmt::format(", {:d}, {:d}", form.a_m_major, form.b_n_major);
  const int64_t b = n + (in_registers ? 4 : 1);
  return fmt::format(
      "  asm volatile(\"{{.reg .pred p; setp.ne.b32 p, %{}, 0; wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} "
      "{{{}}}, {}, %{}, p{}{};}}\"\n               : {}\n               : {}, \"l\"(b), \"r\"(accumulate) : "
      "\"memory\");\n",
      b + 1, form.columns, 32 / form.operands.size(), integers ? "s32" : "f32", operand_name(form.operands),
      operand_name(form.operands), registers, a, b, integers ? "" : ", 1, 1", major, operands, inputs);
}

std::string wgmma_function(const Wgmma& form, int64_t accumulators) {
  const auto sum = [](int64_t r) { return fmt::format("sum[{}][{}]", r / 4, r % 4); };
  return fmt::format(
      "static __device__ __forceinline__ void wgmma(float (&sum)[{}][4], const unsigned long long a,\n"
      "                                             const unsigned long long b, const int accumulate) {{\n{}}}\n",
      accumulators, wgmma_statement(form, sum));
}

}  // namespace weft::target::cuda
