// weft: the program.
#include "command.h"

int main(int argc, char** argv) {
  using namespace weft::tool;
  return run_command_line(argc, argv,
                          {doctor_command(), train_gpt_command(), train_mnist_command(), sample_command(),
                           eval_command(), bench_command(), explain_command()});
}
