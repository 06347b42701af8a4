#include "array/routines/kernel_stages.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "array/routines/kernel_schedule.h"
#include "base/error.h"
#include "graph/calls/kernel_text.h"
#include "target/cpu/inspect.h"
#include "target/cuda/driver/context.h"
#include "target/cuda/inspect.h"
#include "weft/kernel_function.h"

namespace weft {
namespace {

using Of = KernelStage::Of;
constexpr KernelStage stages[] = {
    {"tile", Of::all, "tile IR, as traced"},
    {"schedule", Of::all, "steps of its loops and its launch"},
    {"legalized", Of::cpu, "tile IR of vector registers"},
    {"llvm", Of::cpu, "optimised LLVM IR"},
    {"assembly", Of::cpu, "assembly of the CPU"},
    {"cuda", Of::gpu, "CUDA C++"},
    {"ptx", Of::gpu, "PTX"},
    {"sass", Of::gpu, "machine code of the GPU"},
};

}  // namespace

std::span<const KernelStage> kernel_stages() { return stages; }

std::string usual_arch() { return target::cuda::device_count() > 0 ? target::cuda::device_info(0).arch() : "sm_90a"; }

std::string stage_text(const graph::KernelProgram& program, std::string_view stage, const std::string& machine) {
  std::string known;
  for (const KernelStage& s : stages) {
    known += (known.empty() ? "" : ", ") + std::string(s.name);
    if (s.name != stage) continue;
    if (s.name == "schedule") {
      const schedule::Steps steps = k::detail::steps_of_kernel(program.kernel);
      return (steps.empty() ? std::string("# as the compiler chooses") : to_string(steps)) + "\n";
    }
    if (s.of == Of::all) return graph::text_of(program);
    if (s.of == Of::cpu) return target::cpu_stage(program.kernel, stage, machine.empty() ? "native" : machine);
    const target::Machine gpu = target::gpu_of(machine.empty() ? usual_arch() : machine);
    return target::cuda::gpu_stage(program.kernel, stage, gpu);
  }
  throw_invalid("kernel " + program.kernel.name, fmt::format("there is no stage {}: known are {}", stage, known));
}

std::shared_ptr<const graph::KernelProgram> graph_program(const k::Program& program,
                                                          std::vector<std::vector<int>> factors) {
  graph::KernelProgram out{program.data().kernel, {}, program.programs(), program.data().count, program.symbols()};
  for (const k::Param& p : program.params()) {
    const graph::KernelUse use = p.use == k::Use::in    ? graph::KernelUse::in
                                 : p.use == k::Use::out ? graph::KernelUse::out
                                                        : graph::KernelUse::in_out;
    Shape shape(p.dims.begin(), p.dims.end());
    for (size_t axis = 0; axis < p.symbols.size(); ++axis)
      if (p.symbols[axis]) shape[axis] = p.symbols[axis];
    out.arrays.push_back({use, {std::move(shape), p.dtype}});
  }
  out.factors = std::move(factors);
  return graph::kernel_program(std::move(out));
}

namespace {

/// The memory of a call on the host: copies of the inputs, and room for results.
class CallMemory {
 public:
  CallMemory(const graph::KernelProgram& program, const std::vector<array>& inputs) : program_(program) {
    size_t next = 0;
    for (const graph::KernelArray& a : program.arrays) {
      const int64_t elements = num_elements(a.type.shape);
      std::vector<std::byte>& data = memory_.emplace_back(static_cast<size_t>(elements) * a.type.dtype.size());
      if (a.use == graph::KernelUse::out) continue;
      if (elements > 0) std::memcpy(data.data(), inputs[next].raw_data(), data.size());
      ++next;
    }
  }
  std::vector<void*> pointers() {
    std::vector<void*> out;
    for (std::vector<std::byte>& data : memory_) out.push_back(data.data());
    return out;
  }
  std::vector<array> results() const {
    std::vector<array> out;
    for (size_t k = 0; k < memory_.size(); ++k)
      if (const graph::KernelArray& a = program_.arrays[k]; a.use != graph::KernelUse::in)
        out.push_back(array::from_data(memory_[k].data(), a.type.shape, a.type.dtype));
    return out;
  }

 private:
  const graph::KernelProgram& program_;
  std::vector<std::vector<std::byte>> memory_;
};

}  // namespace

k::Program traced_program(const graph::KernelProgram& program) {
  auto data = std::make_shared<k::Program::Data>();
  data->kernel = program.kernel;
  data->programs = program.grid, data->count = program.count, data->symbols = program.symbols;
  for (size_t k = 0; k < program.arrays.size(); ++k) {
    const graph::KernelArray& a = program.arrays[k];
    const k::Use use = a.use == graph::KernelUse::in    ? k::Use::in
                       : a.use == graph::KernelUse::out ? k::Use::out
                                                        : k::Use::in_out;
    k::Param& param = data->params.emplace_back(k::Param{use, a.type.dtype, {}, program.kernel.params[k].name});
    for (const Dim& d : a.type.shape) param.dims.push_back(d.bound());
    if (is_static(a.type.shape)) continue;
    for (const Dim& d : a.type.shape) param.symbols.push_back(d.is_static() ? nullptr : d.symbol());
  }
  return k::Program(std::move(data));
}

std::vector<array> interpreted(const graph::KernelProgram& program, const std::vector<array>& inputs) {
  CallMemory memory(program, inputs);
  traced_program(program).interpret(memory.pointers(), graph::bounds_of(program));
  return memory.results();
}

std::vector<array> debugged(const k::Program& program, const std::vector<array>& inputs, const k::Debugger& debugger) {
  const auto node = graph_program(program);
  CallMemory memory(*node, inputs);
  k::debug(program, memory.pointers(), debugger, graph::bounds_of(*node));
  return memory.results();
}

std::string k::show(const k::Program& program, std::string_view stage, const std::string& machine) {
  return stage_text(*graph_program(program), stage, machine);
}

}  // namespace weft
