#pragma once
// Finds operands of dots that a generated kernel computes as it loads them: casts and dequantised weights, which then
// are never written to memory.
#include <array>
#include <optional>
#include <vector>

#include "compiler/region/dot_region.h"

namespace weft::compiler {

/// An operand that is computed as it is loaded.
struct ComputedOperand {
  std::vector<NodeId> made;  // what it reads that must lie in memory, and would be computed where it is read otherwise
  double operations = 0;     // basic ones, of each element
  double elements = 0;
  double read = 0;       // bytes of the arrays that it is made from
  double stored = 0;     // bytes of it in memory
  double readers = 1;    // that would share it in memory
  bool packed = false;   // several elements share an integer
  bool of_leaf = false;  // its arrays of its own size are inputs, else a kernel that comes before makes one
};
using ComputedOperands = std::array<std::optional<ComputedOperand>, 2>;

/// Returns whether and how operand `side` (0 or 1) of a dot is computed as it is loaded: where that moves fewer bytes
/// than storing it does, it takes few operations, and the arrays of its size that are read have another dtype and lie
/// in memory for other reasons. Nothing if it lies in memory anyway.
std::optional<ComputedOperand> computed_operand(const RegionContext& cx, NodeId dot, size_t side);

/// Returns the bytes of registers that the arrays of a prologue take for each element that a thread makes of it, if a
/// chunk along the axis on which its array of two axes is contiguous has `chunk` elements.
double loaded_bytes(const kernel::Epilogue& prologue, int64_t chunk);

/// Returns whether elements of an operand share what they are made from, as codes share a word: parts of each row, of
/// lengths that fill fragments of tensor cores or divide them.
bool shares_arrays(const kernel::Epilogue& prologue);

/// Returns the basic operations of a prologue for each element.
double prologue_operations(const kernel::Epilogue& prologue);

}  // namespace weft::compiler
