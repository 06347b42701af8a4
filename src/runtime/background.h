#pragma once
// Work that is begun now and needed later, such as compiling and planning, while the calling thread continues. It has
// as many threads of its own as the team; they sleep without work.
#include <functional>

namespace weft::runtime {

/// Runs `job` later, in the order given, unless the process ends first; running jobs are waited for at its end.
/// Exceptions are lost, so a job should be work that the user of its result can repeat (under a std::once_flag).
void begin_in_background(std::function<void()> job);

}  // namespace weft::runtime
