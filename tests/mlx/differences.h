#pragma once
// Which cases of the golden files differ from MLX, and by which line of docs/differences.md.
#include <cstddef>
#include <string>
#include <vector>

namespace weft::test {

struct Listed {
  std::string id;                    // the line's anchor in docs/differences.md
  std::string pattern;               // of a case's title; * is any text, a|b one of two between slashes
  std::vector<size_t> results = {};  // of an assertion; none: all
};

const std::vector<Listed>& listed_cases();

/// Whether the result of this case is listed as different.
bool is_listed(const std::string& title, size_t result = 0);
bool matches(const std::string& pattern, const std::string& title);

}  // namespace weft::test
