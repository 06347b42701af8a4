#pragma once
// The lines of a user's program in what the child says of the text that it has read.
#include <string>

#include "graph/calls/kernel_call.h"

namespace weft::compiler {

/// Returns a message with "file:line" of the user in place of "tile IR:14", a line in the kernel's text.
std::string with_users_lines(const std::string& message, const graph::KernelProgram& program);

}  // namespace weft::compiler
