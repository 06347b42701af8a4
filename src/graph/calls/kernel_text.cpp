#include "graph/calls/kernel_text.h"

#include <utility>

#include "base/error.h"
#include "graph/rows.h"
#include "kernel/rules.h"
#include "kernel/text/text.h"

namespace weft::graph {

std::string text_of(const KernelProgram& program) {
  kernel::Launch launch;
  launch.programs = program.grid;
  for (const KernelArray& a : program.arrays) {
    kernel::Launch::Array& array = launch.arrays.emplace_back();
    array.read = a.use != KernelUse::out;
    for (const Dim& d : a.type.shape) array.dims.push_back(d.bound());
  }
  return kernel::print(program.kernel, launch);
}

std::shared_ptr<const KernelProgram> program_of_text(std::string_view text, CodeInText code) {
  kernel::ParsedKernel read = kernel::parse(text);
  const std::string where = "kernel " + read.kernel.name;
  if (code == CodeInText::refused &&
      kernel::has_code(read.kernel.body))  // a file of someone else's must not bring code to a device
    throw_invalid(where, "has code of GPUs, which files do not take: export the program without this kernel");
  if (!read.launch) throw_invalid(where, "has no grid: write the extents of its arrays, and grid with a number");
  if (!read.kernel.symbols.empty()) throw_invalid(where, "takes symbols: kernels of a program take arrays alone");
  KernelProgram out{std::move(read.kernel), {}, read.launch->programs};
  for (size_t k = 0; k < out.kernel.params.size(); ++k) {
    const kernel::Param& param = out.kernel.params[k];
    const kernel::Launch::Array& array = read.launch->arrays[k];
    const KernelUse use = !param.written ? KernelUse::in : array.read ? KernelUse::in_out : KernelUse::out;
    out.arrays.push_back({use, {Shape(array.dims.begin(), array.dims.end()), param.dtype}});
  }
  return kernel_program(std::move(out));
}

}  // namespace weft::graph
