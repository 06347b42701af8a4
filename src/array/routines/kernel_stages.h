#pragma once
// The stages of a kernel on its way to machine code, as text.
#include <span>
#include <string>
#include <string_view>

#include "graph/calls/kernel_call.h"
#include "kernel/language/trace.h"

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
std::shared_ptr<const graph::KernelProgram> graph_program(const k::Program& program);

}  // namespace weft
