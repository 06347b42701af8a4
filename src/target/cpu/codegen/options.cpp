#include "target/cpu/codegen/options.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include <string_view>

#include "base/error.h"

namespace weft::target {
namespace {

bool has(const std::string& features, std::string_view feature) {
  return ("," + features + ",").find(",+" + std::string(feature) + ",") != std::string::npos;
}

bool has_avx2(const std::string& f) { return has(f, "avx2") && has(f, "fma") && has(f, "f16c") && has(f, "bmi2"); }
bool has_avx512(const std::string& f) {
  return has_avx2(f) && has(f, "avx512f") && has(f, "avx512bw") && has(f, "avx512dq") && has(f, "avx512vl");
}

std::string owned_text(char* text) {
  std::string copy = text;
  LLVMDisposeMessage(text);
  return copy;
}

Isa with_vectors(std::string name, std::string cpu, std::string features, bool avx2, bool avx512) {
  Isa isa{std::move(name), std::move(cpu), std::move(features)};
  isa.vector_bits = avx512 ? 512 : avx2 ? 256 : 128;
  isa.gathers = avx2;
  isa.scatters = isa.range = isa.scales = avx512;
  isa.half = avx2;
  if (avx2) isa.masked_bytes = avx512 ? 1 : 4;
  return isa;
}

Isa named_isa(const CpuOptions& options) {
  const std::string host = owned_text(LLVMGetHostCPUFeatures());
  const bool avx2 = has_avx2(host), avx512 = has_avx512(host);
  if (options.isa == "native") {
    Isa isa = with_vectors("native", owned_text(LLVMGetHostCPUName()), host, avx2, avx512);
    isa.bf16 = avx512 && has(host, "avx512bf16");
    isa.tiles = avx512 && has(host, "amx-bf16");
    return isa;
  }
#if defined(__x86_64__)
  const char* baseline = "x86-64";
#else
  const char* baseline = "generic";
#endif
  if (options.isa == "generic") return with_vectors("generic", baseline, "", false, false);
  const bool wide = options.isa == "avx512";
  if (!wide && options.isa != "avx2")
    throw_invalid("cpu target",
                  "unknown instruction set '" + options.isa + "'; known are native, generic, avx2, avx512");
  if (wide ? !avx512 : !avx2)
    throw_invalid("cpu target", "this processor has no " + options.isa + "; use native or generic");
  return with_vectors(options.isa, wide ? "x86-64-v4" : "x86-64-v3", "", true, wide);
}

}  // namespace

Isa resolve(const CpuOptions& options) {
  Isa isa = named_isa(options);
  isa.optimised = options.optimised;
  return isa;
}

}  // namespace weft::target
