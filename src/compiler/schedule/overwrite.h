#pragma once
// Which results of a rows group may lie where what the group reads lies.
#include <unordered_map>
#include <vector>

#include "compiler/schedule/access.h"

namespace weft::compiler {

/// What a group touches, with a copy of the group to which index expressions can be added.
struct TouchedGroup {
  Group group;
  std::vector<Touch> touches;  // of a group without reductions
  std::vector<Touch> keys;     // of random numbers
};

/// Results that may_overwrite keeps between calls, since an optimizer's group is queried once for each of its states.
struct TouchedGroups {
  explicit TouchedGroups(const Ir& ir);
  std::unordered_map<const Group*, TouchedGroup> known;
  bool random;  // whether the graph draws random numbers: without, groups with reductions need no analysis of keys
};

/// Returns whether the group may store `output` over `input`. In a map, `input` must be read only at the position where
/// `output` is stored, except that a new key of random numbers may replace the old one if both words are in one tile.
/// In a group with reductions, since programs and passes do not run in step: `input` is no key; an output computed once
/// a row must be the only reader of `input`, at that position; any other output requires that all roots read `input` at
/// that position alone, in no later pass, and that no root computed once a row reads it.
bool may_overwrite(const Ir& ir, const Grouping& grouping, const Group& group, int input, int output,
                   TouchedGroups& memo);

}  // namespace weft::compiler
