#pragma once
// The programs of a function with their steps: bytes moved, operations and time of each.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/program.h"
#include "target/rates.h"
#include "tools/weft/train/checkpoint.h"

namespace weft::tool {

struct Explained {
  std::string title;
  std::shared_ptr<const compiler::Program> program;
  std::vector<double> step_ms;  // the median of the timed runs, by step
  double run_ms = 0;            // of whole runs
};

/// Calls `first` once, takes the largest program that it builds, and times its steps over `runs` calls of `again`.
/// Throws std::runtime_error where nothing is built, or where the later calls run another program.
Explained explain_program(const std::string& title, int runs, const std::function<void()>& first,
                          const std::function<void()>& again);

/// Explains the steps of a run: `step` is "train", "sample" (for images: the test of a batch) or "both". Throws
/// std::runtime_error where the checkpoint's files do not fit each other.
std::vector<Explained> explain_run(const Checkpoint& checkpoint, const std::string& step, int runs);

/// Tables for people: a summary, then the steps in their order. `show`: what is printed whole before them, by the names
/// of compiler::printable().
std::string explained_text(const Explained& e, const target::Rates& rates, const std::vector<std::string>& show);
/// Prints one JSON object.
std::string explained_json(const Explained& e, const target::Rates& rates, const std::vector<std::string>& show);

}  // namespace weft::tool
