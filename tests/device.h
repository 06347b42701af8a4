#pragma once
// The device that tests run on: the CPU, or with WEFT_TEST_DEVICE=cuda the first GPU, which is then the default device as well.
#include "target/target.h"

namespace weft::test {

bool on_gpu();
target::Target& target_under_test();

}  // namespace weft::test
