#pragma once
// The device that tests run on: the CPU; with WEFT_TEST_DEVICE=cuda the first GPU (cuda:1: the second), which is then the default device as well; with WEFT_TEST_DEVICE=many the CPU, which is given what the
// compiler makes for a GPU of many threads.
#include "target/target.h"

namespace weft::test {

bool on_gpu();
int gpu_ordinal();  // 0 where tests do not run on one
bool on_many_threads();
target::Target& target_under_test();

}  // namespace weft::test
