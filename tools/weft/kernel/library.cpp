#include "tools/weft/kernel/library.h"

#include <utility>

#include "base/error.h"

namespace weft::tool {

const std::vector<LibraryKernel>& library_kernels() {
  static const std::vector<LibraryKernel> all = [] {
    std::vector<LibraryKernel> out;
    for (const auto& family : {attention_kernels(), gpu_product_kernels(), cpu_product_kernels()})
      out.insert(out.end(), family.begin(), family.end());
    return out;
  }();
  return all;
}

SharedProgram on_arrays(kernel::Kernel kernel, int64_t programs, const std::vector<graph::Type>& types,
                        double products) {
  check(types.size() == kernel.params.size(), "kernel", "a library's kernel has an array for each parameter");
  graph::KernelProgram out{std::move(kernel), {}, programs};
  for (size_t k = 0; k < types.size(); ++k)
    out.arrays.push_back({out.kernel.params[k].written ? graph::KernelUse::out : graph::KernelUse::in, types[k]});
  graph::KernelProgram counted = *graph::kernel_program(std::move(out));
  counted.work.products = products;
  return std::make_shared<const graph::KernelProgram>(std::move(counted));
}

}  // namespace weft::tool
