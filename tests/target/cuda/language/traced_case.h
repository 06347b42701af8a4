#pragma once
// A traced kernel as a case that runs in the interpreter, on the host and on the device.
#include <utility>
#include <vector>

#include "kernel/language/run.h"
#include "target/cpu/cpu_support.h"

namespace weft::test {

/// Returns a case of a kernel on arrays of small random numbers; of `zeros` on zeros. `extents`: of its symbols.
inline RandomCase traced_case(const k::Program& program, bool zeros = false, std::vector<int64_t> extents = {}) {
  std::vector<int64_t> elements;
  for (const k::Param& p : program.params()) {
    elements.push_back(1);
    for (const int64_t d : p.dims) elements.back() *= d;
  }
  const int64_t programs = program.programs(extents);
  RandomCase c = make_case(program.data().kernel, elements, std::move(extents), programs, 5);
  const std::vector<test_kernels::Bytes> arrays = test_kernels::random_arrays(program, 5);
  for (size_t k = 0; k < arrays.size(); ++k) {
    if (zeros) std::memset(c.buffers[k].data(), 0, c.buffers[k].size());
    else std::memcpy(c.buffers[k].data(), arrays[k].data.data(), c.buffers[k].size());
  }
  return c;
}

}  // namespace weft::test
