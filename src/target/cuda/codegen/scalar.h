#pragma once
// Types, constants, operators and conversions as CUDA C++ text.
#include <span>
#include <string>

#include "kernel/tile.h"

namespace weft::target::cuda {

/// "f32", "i64"; float16, bfloat16 and the 8-bit floats by their bits; what a register holds and, but for bool, what
/// lies in memory.
const char* type_name(Dtype t);
std::string literal(Number number, Dtype t);
/// `op` on values of dtype `t`, which is no low float but for select.
std::string expression(kernel::ScalarOp op, Dtype t, std::span<const std::string> args);
std::string conversion(const std::string& v, Dtype from, Dtype to);
/// Bits of `from` as a `to` of the same width.
std::string reinterpretation(const std::string& v, Dtype from, Dtype to);

}  // namespace weft::target::cuda
