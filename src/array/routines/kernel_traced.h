#pragma once
// Calls of kernels as nodes: traced for the shapes of their arrays in one configuration, or in several of which the
// compiler chooses.
#include <memory>
#include <vector>

#include "graph/calls/kernel_call.h"
#include "weft/kernel_function.h"

namespace weft::k::detail {

/// What a program was traced for, and the program.
struct Entry {
  std::vector<Shape> shapes;  // of all arrays
  AnyConfig config;
  Program program;
  std::shared_ptr<const graph::KernelProgram> node;
};

/// Checks the arguments of a call, and returns the shapes of all arrays. Throws std::invalid_argument "[kernel NAME]
/// …".
std::vector<Shape> array_shapes(const Definition& d, const std::vector<array>& inputs, const void* config);
/// Traces the function for arrays of these shapes and strides.
Program program_for(const Definition& d, const std::vector<Shape>& shapes, const std::vector<Strides>& strides,
                    const AnyConfig& config);
/// Returns whether two configurations are equal.
bool same_config(const AnyConfig& a, const AnyConfig& b);
/// Programs that a kernel keeps of each kind.
inline constexpr size_t most_traced = 256;
/// Traces the function for arrays of these shapes.
Entry traced(const Definition& d, std::vector<Shape> shapes, const AnyConfig& config);

/// Traces the configurations of a kernel for a call. Those that tracing refuses are kept with the reason. Throws
/// std::invalid_argument "[kernel NAME] …" where it refuses all.
std::shared_ptr<const graph::KernelProgram> tuned_program(const Definition& d, const std::vector<array>& inputs);

}  // namespace weft::k::detail
