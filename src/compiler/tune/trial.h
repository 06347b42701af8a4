#pragma once
// First runs of users' code, in a process of its own: a fault would take this one along, and on a GPU its context with
// all arrays. The program `weft-try` (tools/try) reads the kernels as text, compiles them in parallel, runs them on
// random data, and reports line by line; this side holds it to its limits, and starts it again for those that are left
// where one has ended or stopped it.
//
// A candidate is right where it computes what the interpreter computes of it (small ones), and what the first one that
// works computes, within what another order of summation may change.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/tune/tune.h"
#include "graph/calls/kernel_tuning.h"

namespace weft::compiler {

/// The same arrays for all of them.
struct TrialOrder {
  std::vector<std::shared_ptr<const graph::KernelProgram>> programs;
  std::vector<std::string> names;  // of the programs, for messages
  std::vector<graph::KernelReset> resets = {};
  double compile_limit = 60, run_limit = 10;  // seconds for each program
};

/// What became of a program.
struct Trial {
  bool works = false;
  std::string why = {};        // it does not
  std::string objection = {};  // it works, but is likely to be slow
};

/// Compiles and runs the programs. `note`: gets a sentence where that happens in this process, because there is no
/// program `weft-try` or the target is none of this machine's devices.
std::vector<Trial> try_programs(const TrialOrder& order, target::Target& target, std::string& note);

/// Returns the item of programs with equal arrays: array k is the buffer of node k. `restored`: the arrays that have
/// their old data before each run; default: all that are in and out.
TuneItem item_of(const std::vector<std::shared_ptr<const graph::KernelProgram>>& programs,
                 const std::vector<graph::KernelReset>& resets,
                 const std::optional<std::vector<size_t>>& restored = {});

/// What the child is told.
struct TrialRequest {
  TrialOrder order;
  std::vector<bool> wanted;  // by program: the others are not run
  int device = -1;           // -1: the CPU
  int threads = 1;           // of the CPU
  int compilers = 1;         // threads that compile
  bool interprets = true;    // small programs, before they run
  int reference = -1;        // a program that is known to work; -1: the first one that does
};

/// Does what a request says, and says line by line what it is about to do and what came of it: "compiling 3",
/// "compiled 3 OBJECTION", "interpreting 3", "running 3", "works 3", "fails 3 WHY", "differs 3 0" (from program 0),
/// "done". Returns early, without "done", where a device may be broken.
void run_trials(const TrialRequest& request, target::Target& target,
                const std::function<void(const std::string&)>& say);

std::string text_of(const TrialRequest& request);
/// Throws std::invalid_argument for any other text.
TrialRequest parse_trial_request(const std::string& text);

/// Returns the path of `weft-try`, beside the library or the program that has it, or in their folders bin; "" where
/// there is none.
std::string trial_program();
/// Sets the path, for tests; returns the one before.
std::string set_trial_program(std::string path);

}  // namespace weft::compiler
