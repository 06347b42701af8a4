#pragma once
// Which groups of a Program may run in several ways, and what the tuner chooses for them. Groups whose code is the same
// share one choice, that of the largest of them: siblings stay one launch.
#include <string>
#include <vector>

#include "compiler/lower/memo.h"
#include "compiler/program.h"

namespace weft::compiler {

struct TunedGroups {
  std::vector<Variant> variants;  // by group
  std::string text;               // a line for each choice that was looked up or measured
  double ms = 0;                  // spent on measuring
};

/// `order`: the groups that are lowered.
TunedGroups tune_groups(const LowerContext& cx, const Grouping& grouping, const std::vector<int>& order,
                        LoweringMemo& memo, const Policy& policy);

}  // namespace weft::compiler
