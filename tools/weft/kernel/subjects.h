#pragma once
// Which kernels a word of the command line means, and what they need at least.
#include <memory>
#include <string>
#include <vector>

#include "graph/calls/kernel_call.h"
#include "target/machine.h"
#include "target/rates.h"
#include "weft/array.h"

namespace weft::tool {

struct KernelSubject {
  std::string name, summary;
  std::shared_ptr<const graph::KernelProgram> program;
};

/// Returns the kernels of a file (an exported program, or the text of one kernel), or the built-in kernel of that name;
/// all built-in ones for "". `small`: of built-in kernels those of few elements, for the interpreter. `machine`: what
/// the library's kernels are made for; "" then leaves out those for other devices. Null: the default device. Throws
/// UsageError where there is no such kernel, and what reading a file throws.
std::vector<KernelSubject> find_subjects(const std::string& source, bool small,
                                         const target::Machine* machine = nullptr);

/// Returns random arguments: floats from a normal distribution, integers 0 to 3.
std::vector<array> random_arguments(const graph::KernelProgram& program, uint64_t seed);
/// Builds the call of a kernel.
std::vector<array> call_of(const std::shared_ptr<const graph::KernelProgram>& program,
                           const std::vector<array>& inputs);

/// Returns the bytes that a launch reads and writes at least: each array once, in both ways where it is updated.
double least_bytes(const graph::KernelProgram& program);
/// Returns the shortest time on a machine in seconds, and what bounds it: "memory", "products" or "arithmetic"; 0 where
/// the rates are not known.
struct Roofline {
  double seconds = 0;
  std::string bound;
};
Roofline roofline(const graph::KernelProgram& program, const target::Rates& rates);

}  // namespace weft::tool
