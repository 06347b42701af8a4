#pragma once
// What tests run on. The device: the CPU; with WEFT_TEST_DEVICE=cuda the first GPU (cuda:1: the second), which is then
// the default device as well; with WEFT_TEST_DEVICE=simt the CPU, which is given what the compiler makes for a GPU. The
// CPU's instructions: its own; with WEFT_TEST_ISA=avx512, avx2 or generic those alone, in generated code and in oneDNN.
// A program whose processor lacks them, or has no more than them, ends at once with `skipped`.
#include "target/target.h"

namespace weft::test {

inline constexpr int skipped = 77;  // SKIP_RETURN_CODE of the entries in tests/CMakeLists.txt

bool on_gpu();
int gpu_ordinal();  // 0 where tests do not run on one
bool on_simt();
target::Target& target_under_test();

}  // namespace weft::test
