#pragma once
// Types, constants, operators and conversions as CUDA C++ text.
#include <span>
#include <string>

#include "kernel/tile.h"

namespace weft::target::cuda {

/// Returns the name of the type that a register holds: "f32", "i64"; bits for float16, bfloat16 and 8-bit floats.
/// Memory holds the same, except for bool.
const char* type_name(Dtype t);
std::string literal(Number number, Dtype t);
/// Returns the text of `op` on values of dtype `t`. Low floats are allowed for select only.
std::string expression(kernel::ScalarOp op, Dtype t, std::span<const std::string> args);
std::string conversion(const std::string& v, Dtype from, Dtype to);
/// Returns the text that reinterprets the bits of a `from` as a `to` of the same width.
std::string reinterpretation(const std::string& v, Dtype from, Dtype to);

}  // namespace weft::target::cuda
