#pragma once
#include <stdexcept>

#include "weft/api.h"

namespace weft {

/// Sets, for the whole process, whether an evaluation stores intermediate values that arrays still refer to, so that a
/// later one does not compute them again; values of a few operations an element are left out. Off by default: in
/// C++ the temporaries of `eval(sum(exp(x)))` live until the end of the statement, and storing them undoes fusion.
/// Programs whose arrays refer to steps of earlier evaluations (a cache that grows, a running sum) gain by it. The
/// Python package switches it on, where temporaries are gone before the call.
WEFT_API void set_keep_referenced(bool on);
/// Returns what set_keep_referenced has set.
WEFT_API bool keeps_referenced();

/// Thrown by an evaluation that ends early because it is asked to. Its arrays stay as they were, and may be evaluated
/// again.
struct interrupted : std::runtime_error {
  interrupted() : std::runtime_error("[eval] the evaluation was interrupted") {}
};
/// Sets, for the whole process, a function that says whether evaluations are to end early; null, as at first: none
/// does. It is called between the steps of programs on the CPU, on the thread that computes, at most every 20 ms, and
/// must not throw. Programs that change arrays in place run to their end. It is also called where a thread waits for a
/// stream or a GPU, which then ends waiting alone: work that is begun goes on. The Python package sets one for Ctrl-C.
WEFT_API void set_interrupt_check(bool (*asked)());

}  // namespace weft
