#pragma once
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

}  // namespace weft
