#pragma once
// Looking into a kernel of a user: its stages on the way to machine code as text, and its results in the interpreter.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/calls/kernel_call.h"
#include "kernel/language/trace.h"
#include "weft/array.h"
#include "weft/kernel/debug.h"

namespace weft {

struct KernelStage {
  enum class Of : uint8_t { all, cpu, gpu };
  std::string_view name;
  Of of;
  std::string_view what;
};
std::span<const KernelStage> kernel_stages();

/// Returns the architecture of this machine's first GPU; "sm_90a" where there is none.
std::string usual_arch();
/// Returns a kernel at a stage, as k::show.
std::string stage_text(const graph::KernelProgram& program, std::string_view stage, const std::string& machine);
/// Returns a traced program as the graph has it.
std::shared_ptr<const graph::KernelProgram> graph_program(const k::Program& program,
                                                          std::vector<std::vector<int>> factors = {});

/// Returns a program of the graph as one that was traced.
k::Program traced_program(const graph::KernelProgram& program);

/// Computes the results of a kernel in the interpreter under a debugger.
std::vector<array> debugged(const k::Program& program, const std::vector<array>& inputs, const k::Debugger& debugger);
/// Computes the results of a kernel in the interpreter, which reports what is wrong as std::runtime_error.
std::vector<array> interpreted(const graph::KernelProgram& program, const std::vector<array>& inputs);

}  // namespace weft
