#pragma once
// Kernels whose programs wait for each other as cases for targets, with flags that begin at 0.
#include <algorithm>
#include <vector>

#include "kernel/language/waiting_kernels.h"
#include "target/async_cases.h"

namespace weft::test {

/// Programs of clusters, which reach each other's shared memory.
inline std::vector<RandomCase> cluster_cases() {
  return {case_of(test_kernels::sums_of_clusters()), case_of(test_kernels::sums_of_clusters(2, 5)),
          case_of(test_kernels::sums_of_clusters(8, 2)), case_of(test_kernels::sums_of_clusters(1, 2))};
}

inline std::vector<RandomCase> waiting_cases() {
  std::vector<RandomCase> out;
  for (const k::Program& program :
       {test_kernels::chain(), test_kernels::chain_by_roles(), test_kernels::look_back(),
        test_kernels::look_back(70, 32), test_kernels::rounds(), test_kernels::rounds(40, 2)}) {
    RandomCase c = case_of(program);
    for (size_t k = 0; k < c.buffers.size(); ++k)
      if (program.params()[k].use == k::Use::in_out) std::fill(c.buffers[k].begin(), c.buffers[k].end(), std::byte{0});
    out.push_back(std::move(c));
  }
  return out;
}

}  // namespace weft::test
