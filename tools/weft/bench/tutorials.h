#pragma once
// The kernels of Triton's tutorials (examples/kernels/tutorials.h) at the sizes at which the tutorials measure.
#include <string>
#include <vector>

#include "weft/kernel_function.h"
#include "weft/transforms.h"

namespace weft::tool {

/// A call of kernels on arrays, what it computes in, and its kernels as programs.
struct Tutorial {
  std::string name, dtype;
  std::vector<array> inputs;
  ArrayFunction call;
  std::vector<k::Program> programs;
};

/// Returns them all; inputs are not computed yet.
std::vector<Tutorial> tutorials();

}  // namespace weft::tool
