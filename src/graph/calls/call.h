#pragma once
// The calls: routines on whole row-major arrays that are not generated code (Op::call), one rule each. A call reads
// attrs.call, its name, and attrs.integers. Every target that offers a call offers it under this name
// (target::Target::call, with the operands and results of the node).
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
};

/// Throws std::invalid_argument where there is no such call.
const CallRule& call_rule(std::string_view name);
std::span<const CallRule* const> calls();  // every rule

/// The node for a call, checked by its rule; one Value for each result.
Values call(std::string name, Values inputs, std::vector<int64_t> integers = {});

/// Both sorted along the axis, ascending and stable, NaN last: the values, and where each stood (uint32).
struct Sorted {
  Value values, order;
};
Sorted sort(const Value& v, int axis);
/// For sorted [b…, n] and values [b…, m…]: where each value would be put (uint32), before its equals or after them.
Value searchsorted(const Value& sorted, const Value& values, bool right);

}  // namespace weft::graph
