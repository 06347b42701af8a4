// weft: the program.
#include <utility>

#include "command.h"

int main(int argc, char** argv) {
  using namespace weft::tool;
  std::vector<Command> commands{doctor_command(), device_command(), train_gpt_command(), train_mnist_command(),
                                sample_command(), eval_command(),   bench_command(),     explain_command()};
  for (Command& command : kernel_commands()) commands.push_back(std::move(command));
  return run_command_line(argc, argv, std::move(commands));
}
