#pragma once
// Generates CUDA C++ functions around wgmma.mma_async. The instruction's operand list depends on the number of columns,
// which a C++ template cannot express.
#include <cstdint>
#include <functional>
#include <string>

#include "weft/dtype.h"

namespace weft::target::cuda {

/// One instruction of a warpgroup: 64 x `columns` sums from operands in shared memory, A also from registers. Sums are
/// float32, of 8-bit integers int32.
struct Wgmma {
  // bfloat16 or float16 (k = 16), float32 (k = 8, of which TF32's bits are read), 8-bit floats or integers (k = 32).
  Dtype operands = bfloat16;
  int64_t columns = 256;                      // a multiple of 16 up to 256
  bool a_m_major = false, b_n_major = false;  // 16-bit operands that are not contiguous along k
  bool a_in_registers = false;                // 16 bits: A is four registers a thread
};

/// Returns the name of the operands' type in PTX.
const char* operand_name(Dtype operands);

/// Returns the statement of the instruction: sums = a · b, plus the sums where `accumulate` is not 0. a and b are
/// matrix descriptors (PTX ISA, wgmma), or `a` an array of four registers. `sum` gives the text of sum `r` of a thread.
std::string wgmma_statement(const Wgmma& form, const std::function<std::string(int64_t r)>& sum);

/// Returns the text of `void wgmma(float (&sum)[accumulators][4], u64 a, u64 b, int accumulate)`, whose array has at
/// least columns / 8 groups of float32 sums.
std::string wgmma_function(const Wgmma& form, int64_t accumulators);

}  // namespace weft::target::cuda
