#pragma once
// Finds the groups of a Program that may run in several ways, and chooses among them by measurement. Groups with equal
// code share the choice of the largest of them, so that they stay one launch.
#include <memory>
#include <string>
#include <vector>

#include "compiler/lower/memo.h"
#include "compiler/program.h"
#include "compiler/tune/tune.h"

namespace weft::compiler {

struct TunedGroups {
  IndexedVector<GroupId, Variant> variants;  // by group
  // By group: a user's kernel in the configuration that was chosen; null: there was nothing to choose.
  IndexedVector<GroupId, std::shared_ptr<const graph::KernelProgram>> kernels;
  std::string text;   // a line for each choice that was looked up or measured
  double ms = 0;      // milliseconds spent on measurements
  LoweringMemo memo;  // the groups that were lowered for it
};

/// Chooses a variant for each group. `order`: the groups that are lowered. Throws std::invalid_argument where no
/// configuration of a user's kernel works (compiler/tune/user_kernels.h).
TunedGroups tune_groups(const LowerContext& cx, const Grouping& grouping, const std::vector<GroupId>& order,
                        const Policy& policy);

/// Returns the groups of rows, each with at most `most` of the schedules that repeated moves to neighbours reach from
/// the rules' choice: what a search measures.
std::vector<TuneItem> search_items(const LowerContext& cx, const Grouping& grouping, const std::vector<GroupId>& order,
                                   const Policy& policy, size_t most);

/// Lists the groups that do not run as the rules say, then the choices that were looked up or measured.
std::string print(const TunedGroups& tuned);

/// Verifies that each group has a variant, and one of its kind. Throws internal_error "[verify] RULE: group G".
void verify(const Grouping& grouping, const TunedGroups& tuned);

}  // namespace weft::compiler
