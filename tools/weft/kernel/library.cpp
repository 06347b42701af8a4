#include "tools/weft/kernel/library.h"

#include <set>
#include <utility>

#include "base/error.h"
#include "kernel/op_info.h"

namespace weft::tool {

const std::vector<LibraryKernel>& library_kernels() {
  static const std::vector<LibraryKernel> all = [] {
    std::vector<LibraryKernel> out;
    for (const auto& family : {attention_kernels(), decode_kernels(), gpu_product_kernels(), cpu_product_kernels()})
      out.insert(out.end(), family.begin(), family.end());
    return out;
  }();
  return all;
}

namespace {

/// Finds the buffers whose elements are loaded.
void find_read(const kernel::Block& block, std::set<kernel::Ref>& out) {
  for (const kernel::Inst& i : block.insts) {
    if (kernel::info(i.op).access == kernel::Access::reads) out.insert(i.ref);
    for (const kernel::Block& inner : i.blocks) find_read(inner, out);
  }
}

}  // namespace

SharedProgram on_arrays(kernel::Kernel kernel, int64_t programs, const std::vector<graph::Type>& types,
                        double products) {
  check(types.size() == kernel.params.size(), "kernel", "a library's kernel has an array for each parameter");
  graph::KernelProgram out{std::move(kernel), {}, programs};
  std::set<kernel::Ref> read;
  find_read(out.kernel.body, read);
  for (size_t k = 0; k < types.size(); ++k) {
    using graph::KernelUse;
    const bool reads = read.contains(static_cast<kernel::Ref>(k));
    out.arrays.push_back({!out.kernel.params[k].written ? KernelUse::in
                          : reads                       ? KernelUse::in_out
                                                        : KernelUse::out,
                          types[k]});
  }
  graph::KernelProgram counted = *graph::kernel_program(std::move(out));
  counted.work.products = products;
  return std::make_shared<const graph::KernelProgram>(std::move(counted));
}

}  // namespace weft::tool
