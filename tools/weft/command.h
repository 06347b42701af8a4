#pragma once
// A subcommand: its name, its options, its function. Only cli.cpp knows how a command line is parsed.
#include <functional>
#include <string>
#include <vector>

#include "options.h"

namespace weft::tool {

struct Command {
  std::string name;     // "train gpt"
  std::string summary;  // one line
  std::string example;  // shown at the end of the help
  OptionSet options;
  std::function<int(OptionSet&)> run;  // the exit code
};

Command doctor_command();
Command train_gpt_command();
Command train_mnist_command();
Command sample_command();
Command eval_command();
Command bench_command();
Command explain_command();
Command device_command();
std::vector<Command> kernel_commands();  // weft kernel list, show, run, bench, check

/// Parses and runs a command line. Returns the exit code: 0, 1 for failures, 2 for mistakes in the command line. Every
/// mistake becomes a sentence on stderr.
int run_command_line(int argc, const char* const* argv, std::vector<Command> commands);

}  // namespace weft::tool
