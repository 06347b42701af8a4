#pragma once
// The kernels of src/kernels as `weft kernel` takes them: on whole arrays of fixed extents, made for a machine.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/calls/kernel_call.h"
#include "target/machine.h"

namespace weft::tool {

using SharedProgram = std::shared_ptr<const graph::KernelProgram>;

struct LibraryKernel {
  enum class MadeFor : uint8_t { all, cpus, gpus };
  std::string name, summary;
  MadeFor made_for = MadeFor::all;
  /// Makes the kernel for a machine; null where the machine lacks what it needs. `small`: of few elements, for the
  /// interpreter.
  std::function<SharedProgram(const target::Machine& machine, bool small)> make;

  bool is_made_for(const target::Machine& machine) const {
    return made_for == MadeFor::all || (made_for == MadeFor::gpus) == machine.simt;
  }
};

const std::vector<LibraryKernel>& library_kernels();

// A family of them each.
std::vector<LibraryKernel> attention_kernels();
std::vector<LibraryKernel> decode_kernels();
std::vector<LibraryKernel> gpu_product_kernels();
std::vector<LibraryKernel> cpu_product_kernels();

/// Returns a kernel as a function of arrays of these types, one for each parameter. What it writes and does not read it
/// writes whole.
/// `products`: the operations that its products need, of which loops of unknown bounds and edges of tiles tell nothing.
SharedProgram on_arrays(kernel::Kernel kernel, int64_t programs, const std::vector<graph::Type>& types,
                        double products);

}  // namespace weft::tool
