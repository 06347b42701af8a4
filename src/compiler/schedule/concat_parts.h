#pragma once
// Cuts the domain of a map at the borders between the operands of its concats. A program then computes the elements of
// all parts at one position: each part reads the one operand that it lies in, without conditions, and parts share what
// several of them read, such as both halves of a rotation or the activations of a cell's gates.
#include "compiler/ir/grouping.h"
#include "target/machine.h"

namespace weft::compiler {

/// Returns whether a group reads a concat.
bool reads_concat(const Ir& ir, const Grouping& grouping, const Group& group);

/// Splits an axis of a map's domain (row axes of static extent) into parts of equal extent that each lie in one operand
/// of every concat along that axis. In the group's domain the axis becomes two: the number of the part, then the
/// position in it. Returns the place of the former in the domain, or -1, with the group as it was: without such
/// concats, or where parts would be too many or too narrow.
int cut_at_concats(const Ir& ir, const Grouping& grouping, Group& group, const target::Machine& machine);

}  // namespace weft::compiler
