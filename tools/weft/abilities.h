#pragma once
// What the CPU does in hardware, and what is done instead where it, or the instruction set that was chosen, lacks it.
#include <string>
#include <utility>
#include <vector>

namespace weft::tool {

/// Rows of `weft doctor`: a name and a sentence. What is missing is named with the instructions that it needs. Compiles
/// and computes nothing.
std::vector<std::pair<std::string, std::string>> cpu_abilities();

}  // namespace weft::tool
