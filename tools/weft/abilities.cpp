#include "abilities.h"

#include <fmt/format.h>

#include "target/cpu/codegen/options.h"
#include "target/cpu/libraries/onednn.h"
#include "target/target.h"

namespace weft::tool {

namespace {

std::string either(bool there, const std::string& yes, const std::string& no) { return there ? yes : no; }

/// A dtype of matrix products, and the instructions that oneDNN needs for it.
struct Products {
  const char* name;
  Dtype operands, result;
  const char* needs;
};
constexpr Products products[] = {{"f32 products", float32, float32, "SSE4.1"},
                                 {"bf16 products", bfloat16, bfloat16, "AVX-512"},
                                 {"f16 products", float16, float16, "AVX-512 FP16 and oneDNN 3"},
                                 {"int8 products", int8, int32, "AVX-512 VNNI: without it, sums saturate"}};

/// Returns what computes a plain product of two matrices: the target and oneDNN are asked as the compiler asks them.
std::string who(const Products& p) {
  kernel::DotDesc d;
  d.m = d.n = d.k = d.a_m = d.b_k = d.c_m = 256;
  d.a_k = d.b_n = d.c_n = 1;
  d.a = d.b = p.operands, d.c = p.result;
  if (target::cpu().library(d)) return fmt::format("oneDNN, with {}", target::onednn_isa().name);
  const std::string own = "generated kernels";
  if (!target::libraries_enabled() || target::onednn_version().empty()) return own;
  if (!target::onednn_dot(d)) return own + fmt::format("; oneDNN takes them: no (needs {})", p.needs);
  return own + "; oneDNN takes them: yes, but is quicker only with AMX, which is missing";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> cpu_abilities() {
  const target::Isa& isa = target::cpu_isa();
  std::vector<std::pair<std::string, std::string>> rows{
      {"vectors", fmt::format("{} bits; gathers: {}; scatters: {}", isa.vector_bits,
                              either(isa.gathers, "yes", "no (need AVX2), elements are read one by one"),
                              either(isa.scatters, "yes", "no (need AVX-512), elements are written one by one"))},
      {"float16",
       either(isa.half, "converted in hardware", "converted by integer operations (hardware needs F16C, of AVX2)")},
      {"bfloat16",
       either(isa.bf16, "rounded in hardware", "rounded by integer operations (hardware needs AVX-512 BF16)")}};
  for (const Products& p : products) rows.emplace_back(p.name, who(p));
  return rows;
}

}  // namespace weft::tool
