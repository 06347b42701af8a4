#pragma once
// What the program weft-try (tools/try) calls.
#include "weft/api.h"

namespace weft::compiler {

/// Is the child of trial.h: reads a request from a file and writes lines to another one; returns the exit status.
WEFT_API int run_trials(int request_file, int report_file);

}  // namespace weft::compiler
