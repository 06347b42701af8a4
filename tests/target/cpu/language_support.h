#pragma once
// Runs a kernel of the language on the CPU target and in the interpreter, and compares their bits.
#include <algorithm>

#include "kernel/language/run.h"
#include "target/target.h"

namespace test_kernels {

inline void compare_on_cpu(const weft::k::Program& program, unsigned seed = 1, bool zeros = false) {
  const auto& data = program.data();
  std::vector<Bytes> arrays = random_arrays(program, seed);
  for (Bytes& a : arrays)
    if (zeros) std::fill(a.data.begin(), a.data.end(), 0);
  const std::vector<Bytes> wanted = interpreted(weft::kernel::expand(data.kernel), arrays, data.programs);
  weft::target::Target& cpu = weft::target::cpu();
  const weft::kernel::Kernel kernels[] = {data.kernel};
  const auto code = cpu.compile(kernels);
  std::vector<void*> pointers;
  for (Bytes& a : arrays) pointers.push_back(a.data.data());
  const weft::target::Segment segment{pointers, {}, data.programs};
  code[0]->run(std::span(&segment, 1), 1e9);
  for (size_t i = 0; i < arrays.size(); ++i) {
    CAPTURE(program.name());
    CAPTURE(i);
    CHECK(std::memcmp(arrays[i].data.data(), wanted[i].data.data(), arrays[i].data.size()) == 0);
  }
}

}  // namespace test_kernels
