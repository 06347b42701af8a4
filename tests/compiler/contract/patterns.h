#pragma once
// The patterns of which tests/compiler/contract/contracts.txt states launches and bytes: functions of arrays, as users
// write them, at a size that counts and at a small one that is computed.
#include <string>
#include <vector>

#include "compiler/program.h"
#include "weft/compile.h"

namespace weft::compiler::testing {

struct Pattern {
  std::string name;
  ArrayFunction function;
  std::vector<graph::Type> counted, computed;  // types of the arguments
  int launches = 1;                            // the fewest that it can be
  std::vector<size_t> sparse = {};             // arguments of which only some rows are read
  std::vector<Update> updates = {};
};

/// Returns all patterns with floats of a dtype.
std::vector<Pattern> patterns(Dtype t);

}  // namespace weft::compiler::testing
