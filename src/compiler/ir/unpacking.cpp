#include "compiler/ir/unpacking.h"

#include <algorithm>
#include <vector>

#include "compiler/ir/index_map.h"
#include "graph/table.h"

namespace weft::compiler {

double bytes(const IrNode& n) {
  return static_cast<double>(volume(n.type.shape)) * static_cast<double>(n.type.dtype.size());
}

double operations_of(const IrNode& n, double expanded) {
  constexpr double conversion = 2;
  if (n.op == graph::Op::cast) return conversion;
  const int scalar = graph::row(n.op).scalar;
  if (scalar < 0) return 0;
  const kernel::ScalarInfo& info = kernel::info(static_cast<kernel::ScalarOp>(scalar));
  return info.basic ? info.flops : expanded;
}

Unpacking unpacking(const Ir& ir, NodeId operand) {
  constexpr size_t most_visited = 64;
  constexpr double expanded = 20;
  const int64_t elements = volume(ir[operand].type.shape);
  std::vector<NodeId> pending{operand}, seen;
  Unpacking out;
  bool packed = false;
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    if (std::find(seen.begin(), seen.end(), id) != seen.end()) continue;
    if (seen.size() == most_visited) return {};
    seen.push_back(id);
    const IrNode& n = ir[id];
    const bool computed = is_elementwise(n.op) && volume(n.type.shape) == elements;
    if (computed) out.operations += operations_of(n, expanded);
    if (computed || (is_movement(n.op) && n.op != graph::Op::concat)) {
      pending.insert(pending.end(), n.inputs.begin(), n.inputs.end());
    } else if (n.op != graph::Op::constant) {
      out.bytes += bytes(n) / static_cast<double>(elements);
      packed = packed || (is_integer(n.type.dtype) && volume(n.type.shape) < elements && 8 * bytes(n) >= elements);
    }
  }
  return packed ? out : Unpacking();
}

}  // namespace weft::compiler
