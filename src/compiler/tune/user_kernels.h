#pragma once
// Chooses among the configurations of a user's kernel (graph/calls/kernel_tuning.h). A model ranks them where only some
// are to be measured, and never decides alone. They are tried in a process of their own (trial.h), and those that work
// are timed by the object that measures all candidates (`measure`).
//
// What is found of each configuration is kept on disk, failures too: under what the kernel does for shapes of a bucket,
// the user's key, the target (device, driver, compiler, generator), the policy and the number of threads. A failure
// counts for exactly the kernel that failed. The choice is recorded as those for groups are (tune.h), and read back
// from Policy::choices. Configurations are the user's request to measure: they are measured in every mode that knows no
// choice, also in eager evaluation. One process at a time measures on a machine's cache folder.
#include <memory>
#include <string>

#include "compiler/program.h"
#include "graph/calls/kernel_tuning.h"

namespace weft::compiler {

struct ChosenKernel {
  std::shared_ptr<const graph::KernelProgram> program;
  std::string word;  // of the configuration
  std::string note;  // "kernel scale (a.cpp:7): {64} 0.120 ms, {128} 0.131 ms, {7} crashes … -> {64}"
  double ms = 0;     // milliseconds spent on trials and measurements
};

/// Chooses a configuration. Throws std::invalid_argument "[kernel NAME] file:line: no configuration works: …" with each
/// of them and its reason.
ChosenKernel choose_configuration(const graph::KernelProgram& kernel, target::Target& target, const Policy& policy);

/// Predicts the seconds of a launch by the bytes and operations that its instructions count: what ranks configurations
/// of which the user gives no estimate.
double estimated_seconds(const graph::KernelProgram& program, const target::Machine& machine);

}  // namespace weft::compiler
