#pragma once
// What is wrong with waits whatever numbers a program computes.
#include <optional>
#include <string>

#include "kernel/tile.h"

namespace weft::kernel {

struct WaitComplaint {
  int32_t line = 0;  // a number in Kernel::lines
  std::string text;
};

/// Returns what is proved to be wrong: a read of what a copy still writes, copies that nothing waits for, barriers that
/// get too few arrivals. Nothing where there is no proof; the interpreter finds the rest.
std::optional<WaitComplaint> wrong_waits(const Kernel& kernel);

}  // namespace weft::kernel
