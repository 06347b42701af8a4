#pragma once
// The kernels that the program brings, each written as users write them: what `weft kernel` shows and `weft bench
// user-kernels` times.
#include <string>
#include <vector>

#include "weft/transforms.h"

namespace weft::tool {

struct ExampleKernel {
  std::string name, summary;
  std::string figure;                // its name in benchmarks
  std::vector<Shape> shapes, small;  // of its arguments, float32: for timing, and for the interpreter
  ArrayFunction call;                // the kernel
  ArrayFunction own;                 // the same in operations of arrays
};
const std::vector<ExampleKernel>& example_kernels();

/// Returns normally distributed arguments.
std::vector<array> example_arguments(const std::vector<Shape>& shapes);

}  // namespace weft::tool
