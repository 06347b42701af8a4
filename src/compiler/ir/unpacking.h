#pragma once
// What it takes to compute an operand that is unpacked from integers of several numbers each, before values are
// grouped.
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Returns the bytes of an array.
double bytes(const IrNode& n);
/// Returns the operations of an operator for each element: of an instruction or a conversion; `expanded` for one that
/// is expanded.
double operations_of(const IrNode& n, double expanded);

/// For each element of an operand: the operations that make it, and the bytes that they read.
struct Unpacking {
  double operations = 0, bytes = 0;
};
/// Returns what computing an operand takes; nothing unless several of its elements share an integer.
Unpacking unpacking(const Ir& ir, NodeId operand);

}  // namespace weft::compiler
