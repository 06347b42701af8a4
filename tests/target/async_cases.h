#pragma once
// Kernels of the explicit level as cases for targets.
#include <vector>

#include "kernel/language/asynchronous_kernels.h"
#include "kernel/language/trace.h"
#include "target/cpu/cpu_support.h"

namespace weft::test {

inline RandomCase case_of(const k::Program& program) {
  std::vector<int64_t> elements;
  for (const k::Param& p : program.params()) {
    elements.push_back(1);
    for (const int64_t d : p.dims) elements.back() *= d;
  }
  return make_case(program.data().kernel, elements, {}, program.data().programs);
}

inline std::vector<RandomCase> async_cases() {
  std::vector<RandomCase> out;
  for (const test_kernels::AsyncKernel& c : test_kernels::asynchronous_kernels()) out.push_back(case_of(c.program));
  return out;
}

}  // namespace weft::test
