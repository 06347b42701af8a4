// Checks the rungs of a ladder, or of all: against the library, and each kernel in the interpreter as well.
//
// usage: ladders [NAME | all] [gpu]
#include <cstdio>
#include <cstring>

#include "examples/kernels/check.h"
#include "examples/kernels/ladders/ladder.h"

namespace {

using ladders::Arrays;

void compare(const ladders::Ladder& ladder, const std::string& rung, const Arrays& got, const Arrays& wanted) {
  if (ladder.check) {
    const std::string wrong = ladder.check(ladder.inputs, got);
    std::printf("%-40s %s\n", rung.c_str(), wrong.empty() ? "right" : wrong.c_str());
    if (!wrong.empty()) std::exit(1);
  } else {
    for (size_t i = 0; i < wanted.size(); ++i) check::near(rung, got[i], wanted[i], ladder.tolerance);
  }
}

void check_ladder(const ladders::Entry& entry) {
  std::printf("%s: %s\n", entry.name, entry.what);
  const ladders::Ladder ladder = entry.make(ladders::Scale::check);
  const Arrays wanted = ladder.library(ladder.inputs);
  for (const ladders::Rung& rung : ladder.rungs) {
    const ladders::AnyOrder scope(rung.any_order);
    compare(ladder, rung.name, rung.run(ladder.inputs), wanted);
    if (rung.interpret) compare(ladder, "  in the interpreter", rung.interpret(ladder.inputs), wanted);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[2], "gpu") == 0) weft::set_default_device(weft::Device::gpu);
  bool found = false;
  for (const ladders::Entry& entry : ladders::all())
    if (argc < 2 || std::strcmp(argv[1], "all") == 0 || std::strcmp(argv[1], entry.name) == 0)
      check_ladder(entry), found = true;
  if (!found) std::printf("there is no ladder %s\n", argv[1]);
  return found ? 0 : 1;
}
