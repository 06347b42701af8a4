#pragma once
// The single operations of the table, written as a user would.
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/weft/bench/workloads/table.h"
#include "weft/array.h"

namespace weft::tool {

/// An operation with its inputs, which are computed.
struct Operation {
  std::function<std::vector<array>()> run;  ///< starts it once; the results need not be computed yet
  bool eager = false;                       ///< not compiled, and computed when run returns
};

/// Makes an operation of the sizes on the default device.
using OperationMaker = std::function<Operation(const Sizes&)>;
/// Returns the makers by the table's names of operations.
const std::unordered_map<std::string, OperationMaker>& operation_makers();

}  // namespace weft::tool
