// One fuzzer: libFuzzer brings main and calls this; WEFT_FUZZ_TARGET names what it calls.
#include <cstddef>
#include <cstdint>

#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const weft::fuzz::Target& target = weft::fuzz::target(WEFT_FUZZ_TARGET);
  target.run({reinterpret_cast<const char*>(data), size});
  return 0;
}
