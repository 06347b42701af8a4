#pragma once
// wgmma.mma_async as a function of CUDA C++. Its operands are as many registers as there are columns, which no CUDA C++
// can say for a parameter: its text is made here.
#include <cstdint>
#include <string>

#include "weft/dtype.h"

namespace weft::target::cuda {

/// One instruction of a warpgroup: 64 x `columns` sums in float32, with operands in shared memory.
struct Wgmma {
  Dtype operands = bfloat16;                  // bfloat16 or float16 (16 of k), float32 (8 of k, as TF32)
  int64_t columns = 256;                      // a multiple of 8 up to 256
  int64_t accumulators = 32;                  // of 8 columns each, in the array of sums: at least columns / 8
  bool a_m_major = false, b_n_major = false;  // 16-bit operands that are not contiguous along k
};

/// Returns the text of `void wgmma(float (&sum)[accumulators][4], u64 a, u64 b, int accumulate)`: sum = a · b, plus sum
/// where `accumulate` is not 0; a and b are matrix descriptors (PTX ISA, wgmma).
std::string wgmma_function(const Wgmma& form);

}  // namespace weft::target::cuda
