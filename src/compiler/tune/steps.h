#pragma once
// Groups whose values have steps of a user: they run as those say, and are not measured.
#include <string>

#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/values.h"

namespace weft::compiler {

/// Returns how a group runs by steps. Throws std::invalid_argument "[schedule] STEP: …" where its kernel cannot.
Variant variant_by_steps(const LowerContext& cx, const Group& group, const schedule::Steps& steps,
                         const Numerics& numerics);

/// Returns the axes and the steps of each group, a group a line: "group 0 row_3: d0 (48), r0 (300): split(…)". Groups
/// that steps do not divide say what they are.
std::string schedules_text(const LowerContext& cx, const IndexedVector<GroupId, Variant>& variants,
                           const Policy& policy);

}  // namespace weft::compiler
