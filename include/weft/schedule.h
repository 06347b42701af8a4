#pragma once
#include <string_view>

#include "weft/array.h"
#include "weft/schedule/steps.h"

namespace weft {

/// Returns the array, which the compiler computes as steps say (docs/schedules.md); its values are the same, bit by bit
/// but where a step says that it changes bits. Steps of loops name the axes of the kernel that makes the array: d0, d1,
/// … and reduced ones r0, r1, …; `weft explain` lists them. vmap adds an axis in front, and the others are named one
/// further; a derivative has no steps of its own. What a kernel cannot have is refused when the program is compiled,
/// as std::invalid_argument "[schedule] STEP: why, what to do".
///
///     array p = scheduled(softmax(x, -1), schedule::parse("split(r0, 16, {step, lane}); vectorize(lane)"));
WEFT_API array scheduled(const array& a, const schedule::Steps& steps, StreamOrDevice s = {});
/// Returns the same by the text of the steps.
WEFT_API array scheduled(const array& a, std::string_view steps, StreamOrDevice s = {});

}  // namespace weft
