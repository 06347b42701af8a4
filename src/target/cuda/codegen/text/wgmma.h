#pragma once
// Generates a CUDA C++ function around wgmma.mma_async. The instruction's operand list depends on the number of
// columns, which a C++ template cannot express.
#include <cstdint>
#include <string>

#include "weft/dtype.h"

namespace weft::target::cuda {

/// One instruction of a warpgroup: 64 x `columns` float32 sums from operands in shared memory.
struct Wgmma {
  Dtype operands = bfloat16;                  // bfloat16, float16 (k = 16) or float32 (k = 8, as TF32)
  int64_t columns = 256;                      // a multiple of 8 up to 256
  int64_t accumulators = 32;                  // groups of 8 columns in the array of sums: at least columns / 8
  bool a_m_major = false, b_n_major = false;  // 16-bit operands that are not contiguous along k
};

/// Returns the text of `void wgmma(float (&sum)[accumulators][4], u64 a, u64 b, int accumulate)`: sum = a · b, plus sum
/// where `accumulate` is not 0; a and b are matrix descriptors (PTX ISA, wgmma).
std::string wgmma_function(const Wgmma& form);

}  // namespace weft::target::cuda
