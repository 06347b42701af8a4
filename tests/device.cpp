#include "device.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "compiler/cpu_target.h"
#include "compiler/pipeline.h"
#include "compiler/simt_target.h"
#include "target/cpu/codegen/options.h"
#include "weft/device.h"

namespace weft::test {

namespace {

std::string_view wanted() {
  static const char* const name = std::getenv("WEFT_TEST_DEVICE");
  return name ? name : "";
}

target::Target& simt_target() {
  static auto& target = *new SimtTarget;  // compiled programs may outlive static objects
  return target;
}

}  // namespace

bool on_gpu() { return wanted() == "cuda" || wanted().starts_with("cuda:"); }
int gpu_ordinal() { return wanted().starts_with("cuda:") ? std::atoi(wanted().substr(5).data()) : 0; }
bool on_simt() { return wanted() == "simt"; }

target::Target& target_under_test() {
  return on_gpu() ? target::gpu(gpu_ordinal()) : on_simt() ? simt_target() : target::cpu();
}

namespace {

/// Returns whether code for this set is what this processor's own code is, but for the order of instructions.
bool is_native(const char* isa) {
  const target::Isa own = target::resolve({"native", true}), named = target::resolve({isa, true});
  return own.vector_bits == named.vector_bits && own.half == named.half && !own.bf16 && !own.tiles;
}

/// Ends the program where the processor lacks the set, or has no more than it: the same tests run without a name. Names
/// that no processor knows are a mistake of the caller's, and fail.
void choose_isa(const char* isa) {
  try {
    target::set_cpu_isa(isa);
    if (is_native(isa)) {
      std::printf("%s is all that this processor has\n", isa);
      std::exit(skipped);
    }
  } catch (const std::invalid_argument& e) {
    std::printf("%s\n", e.what());
    const std::string_view name = isa;
    std::exit(name == "avx512" || name == "avx2" ? skipped : 1);
  }
}

const bool chosen = [] {
  if (const char* isa = std::getenv("WEFT_TEST_ISA")) choose_isa(isa);
  compiler::set_verification(true);
  if (on_gpu()) set_default_device(Device(Device::gpu, gpu_ordinal()));
  if (on_simt()) compiler::set_cpu_target(simt_target());
  return true;
}();

}  // namespace

}  // namespace weft::test
