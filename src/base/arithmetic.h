#pragma once
// The kinds of arithmetic whose peak rates differ on a machine.
#include <cstdint>

namespace weft {

/// `vector`: elementwise operators and reductions, by vector units. The others are matmuls, convolutions and attention
/// by the dtype of their operands; f16 is bfloat16 as well, f8 both 8-bit formats.
enum class Arithmetic : uint8_t { vector, f64, f32, tf32, f16, f8 };

}  // namespace weft
