#pragma once
// What groups of lanes compute (kernel/forms/lane_op.h): by values, and in other instructions.
#include "kernel/tile_values.h"

namespace weft::kernel {

/// Returns whether lanes reduce and scan by an operator: add, mul, min, max, bit_and, bit_or, bit_xor, on a dtype.
bool lanes_combine(ScalarOp op, Dtype t);
/// Returns the number that stands for a lane that does not take part. It fits the dtype.
Number neutral_of_lanes(ScalarOp op, Dtype t);
/// Returns the mask of all lanes of a group.
constexpr uint32_t all_lanes(int64_t width) { return width == 32 ? 0xffffffffU : (1U << width) - 1; }

/// Computes an Op::lanes; `t`: the argument's dtype, `other`: the second argument, or null. Throws MemoryFault where
/// lanes do not agree on which of them belong together.
TileValue lanes_value(const Inst& inst, Dtype t, const TileValue& v, const TileValue* other);

/// Returns the kernel with all Op::lanes in other instructions; the same bits.
Kernel lanes_as_tiles(Kernel kernel);

}  // namespace weft::kernel
