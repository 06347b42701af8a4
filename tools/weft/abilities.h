#pragma once
// The CPU's hardware abilities, and the replacements where it, or the chosen instruction set, lacks them.
#include <string>
#include <utility>
#include <vector>

namespace weft::tool {

/// Returns rows of `weft doctor`: a name and a sentence. A missing ability is named with the instructions that it
/// needs. Compiles and computes nothing.
std::vector<std::pair<std::string, std::string>> cpu_abilities();

}  // namespace weft::tool
