#include <algorithm>
#include <utility>

#include "compiler/lower/lower.h"

namespace weft::compiler {

LoweredRoutine routine_of(std::vector<Lowered> kernels, int64_t scratch_bytes) {
  LoweredRoutine out;
  out.routine.scratch = {scratch_bytes};
  const auto position = [&](NodeId node) { return std::find(out.operands.begin(), out.operands.end(), node); };
  for (const Lowered& lowered : kernels)
    for (const NodeId node : lowered.params)
      if (node >= 0 && position(node) == out.operands.end()) out.operands.push_back(node);
  for (Lowered& lowered : kernels) {
    std::vector<int> buffers;  // the scratch follows the operands
    for (const NodeId node : lowered.params)
      buffers.push_back(static_cast<int>(node >= 0 ? position(node) - out.operands.begin() : std::ssize(out.operands)));
    kernel::Routine::Launch launch{out.routine.kernels.size(), std::move(buffers), {}, lowered.grid};
    launch.count = lowered.count;
    for (const SymbolArgument& argument : lowered.symbols) {
      const auto found = std::find(out.lengths.begin(), out.lengths.end(), argument.symbol);
      launch.lengths.push_back(static_cast<size_t>(found - out.lengths.begin()));
      if (found == out.lengths.end()) out.lengths.push_back(argument.symbol);
    }
    out.routine.launches.push_back(std::move(launch));
    out.routine.kernels.push_back(std::move(lowered.kernel));
  }
  return out;
}

}  // namespace weft::compiler
