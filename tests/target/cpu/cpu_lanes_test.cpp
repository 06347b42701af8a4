// Functions of lanes, atomics and counterparts of code on the CPU target: the interpreter's bits.
#include <doctest/doctest.h>

#include "kernel/language/atomic_programs.h"
#include "kernel/language/code_programs.h"
#include "kernel/language/lane_programs.h"
#include "target/cpu/language_support.h"

TEST_CASE("functions of lanes give the interpreter's bits on a CPU") {
  for (const weft::Dtype t : {weft::bool_, weft::uint32, weft::int8, weft::float16, weft::float32, weft::float64})
    test_kernels::compare_on_cpu(test_kernels::LaneProgram(t).make(), 3);
}

TEST_CASE("programs agree by locks and counters on a CPU") {
  for (int round = 0; round < 5; ++round) test_kernels::compare_on_cpu(test_kernels::agreed(), 1, true);
}

TEST_CASE("counterparts of code give the interpreter's bits on a CPU") {
  test_kernels::compare_on_cpu(test_kernels::coded(1));
}
