#include "graph/calls/kernel_text.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "graph/rows.h"
#include "kernel/rules.h"
#include "kernel/text/text.h"

namespace weft::graph {

std::string text_of(const KernelProgram& program) {
  kernel::Launch launch;
  launch.programs = program.grid;
  launch.count = program.count;
  for (const Symbol* s : program.symbols) launch.symbols.push_back({s->name, s->bound});
  for (const KernelArray& a : program.arrays) {
    kernel::Launch::Array& array = launch.arrays.emplace_back();
    array.read = a.use != KernelUse::out;
    for (const Dim& d : a.type.shape) {
      const auto found = std::find(program.symbols.begin(), program.symbols.end(), d.symbol());
      array.dims.push_back(d.bound());
      array.symbols.push_back(d.symbol() ? static_cast<int32_t>(found - program.symbols.begin()) : -1);
    }
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
  KernelProgram out{std::move(read.kernel), {}, read.launch->programs, read.launch->count};
  for (const kernel::Launch::Extent& e : read.launch->symbols) out.symbols.push_back(symbol(e.name, e.bound));
  for (size_t k = 0; k < out.kernel.params.size(); ++k) {
    const kernel::Param& param = out.kernel.params[k];
    const kernel::Launch::Array& array = read.launch->arrays[k];
    const KernelUse use = !param.written ? KernelUse::in : array.read ? KernelUse::in_out : KernelUse::out;
    Shape shape(array.dims.begin(), array.dims.end());
    for (size_t axis = 0; axis < array.symbols.size(); ++axis)
      if (array.symbols[axis] >= 0) shape[axis] = out.symbols[static_cast<size_t>(array.symbols[axis])];
    out.arrays.push_back({use, {std::move(shape), param.dtype}});
  }
  return kernel_program(std::move(out));
}

}  // namespace weft::graph
