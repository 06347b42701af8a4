#pragma once
// The work of a launch, from the graph alone: bytes and operations. Times are predicted from it (schedule/cost.h);
// profiles, traces and `weft explain` compare times with it.
#include <map>
#include <string>

#include "base/arithmetic.h"
#include "compiler/ir/grouping.h"

namespace weft::compiler {

struct LaunchWork {
  // Bytes of memory: the part of each buffer that is read counts once, and every result once.
  double bytes = 0;
  // Operations on elements as the graph has them: a multiplication and an addition are two, an exponential is one,
  // movement and casts are none.
  double flops = 0;
  double products = 0;                         // of these, the operations of matmuls, convolutions and attention
  Arithmetic arithmetic = Arithmetic::vector;  // of the products
  // Basic operations of everything else, as the code has them: an exponential counts its expansion.
  double operations = 0;
  double row_sums = 0;  // results of reductions along the last axis, whose lanes are combined for each
};

/// The work of a group with the bytes of each buffer.
struct GroupWork {
  LaunchWork launch;
  std::map<NodeId, double> buffers;  // by the node whose buffer it is: bytes read and written
  std::string what;  // "max sub exp sum div -> f32(64,64)": the operators in order, and the largest result
};

/// Where the values of a program lie. `buffer_owner[node]`: the node whose buffer a root lies in. `has_buffer[node]`:
/// the root is read outside its own group.
struct BufferView {
  const Ir& ir;
  const Grouping& grouping;
  const IndexedVector<NodeId, NodeId>& buffer_owner;
  const NodeFlags& has_buffer;
};

/// Returns the work of a group. Symbolic lengths count at their bounds. Recomputation inside a kernel, and algorithms
/// with fewer operations than the graph states, are not considered.
GroupWork work_of(const BufferView& view, const Group& group);

/// Returns the kind of a matmul with operands of this dtype. `tf32`: float32 may be rounded to it.
Arithmetic arithmetic_of(Dtype operands, bool tf32);

/// Returns the basic operations of an element of a node's result, its operands being in registers: 1 for an addition,
/// the length of its expansion for an exponential, 0 for movement. A reduction's count for each element of its operand.
double operations_of(const IrNode& node);

}  // namespace weft::compiler
