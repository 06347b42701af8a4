#pragma once
// Calls: routines on whole row-major arrays that are not generated code (Op::call), with one rule each. A call reads
// its name, attrs.call, and attrs.integers. Every target offers a call under this name (target::Target::call, with the
// node's operands and results), except "kernel": a tile program that targets compile (graph/calls/kernel_call.h).
#include "graph/build.h"

namespace weft::graph {

struct CallRule {
  std::string_view name;
  int min_inputs, max_inputs;  // max -1: any number
  int integers;                // how many the call reads
  std::vector<Type> (*types)(const Attrs& attrs,
                             std::span<const Type> inputs);  // of the results; throws std::invalid_argument "[name] …"
  Column<IntervalRule> interval;                             // of every result
  Column<VjpRule> vjp;
  Column<JvpRule> jvp;
  Column<VmapRule> vmap;
  Column<FactorRule> factors;
  ReferenceRule* reference;
  double ulp;
  int more_integers = 0;  // that may follow those, all or none
};

/// Returns the rule of a call; throws std::invalid_argument if there is none.
const CallRule& call_rule(std::string_view name);
std::span<const CallRule* const> calls();  // every rule

/// Makes the node of a call, checked by its rule; returns one Value per result.
Values call(std::string name, Values inputs, std::vector<int64_t> integers = {});

/// The positions of a sorted axis that are computed.
struct SortWindow {
  size_t axis;
  int64_t first, count;
};
/// Returns the window of a call `sort` along an axis of `extent`.
SortWindow sort_window(std::span<const int64_t> integers, int64_t extent);

/// An array sorted along an axis, ascending and stable, NaN last; and each element's original position (uint32).
struct Sorted {
  Value values, order;
};
Sorted sort(const Value& v, int axis);
/// Returns where each value of [b…, m…] would be inserted in sorted [b…, n] (uint32), before its equals or after them
/// (`right`).
Value searchsorted(const Value& sorted, const Value& values, bool right);

}  // namespace weft::graph
