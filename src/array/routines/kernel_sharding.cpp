// Rules of sharding that users give to kernels: "m k, k n -> m n".
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "weft/kernel_function.h"

namespace weft::k::detail {

namespace {

/// Splits a text at a separator; an empty text has no parts.
std::vector<std::string> parts_of(std::string_view text, std::string_view separator) {
  std::vector<std::string> out;
  for (size_t from = 0; !text.empty();) {
    const size_t to = text.find(separator, from);
    out.emplace_back(text.substr(from, to == std::string_view::npos ? to : to - from));
    if (to == std::string_view::npos) break;
    from = to + separator.size();
  }
  return out;
}

class ShardingParser {
 public:
  ShardingParser(const Definition& d, std::string_view rule) : d_(d), rule_(rule) {}

  std::vector<std::vector<int>> run() {
    const std::vector<std::string> sides = parts_of(rule_, "->");
    if (sides.size() != 2) refuse("names factors of arguments, \"->\", and those of results");
    const std::vector<std::string> inputs = parts_of(sides[0], ","), results = parts_of(sides[1], ",");
    const auto count = [&](Use other) {
      return static_cast<size_t>(
          std::count_if(d_.arrays.begin(), d_.arrays.end(), [&](const ArrayType& a) { return a.use != other; }));
    };
    if (inputs.size() != count(Use::out) || results.size() != count(Use::in))
      refuse(fmt::format("has {} arguments and {} results, and the kernel {} and {}", inputs.size(), results.size(),
                         count(Use::out), count(Use::in)));
    std::vector<std::vector<int>> out;
    size_t input = 0, result = 0;
    for (const ArrayType& a : d_.arrays) {
      const std::string of_input = a.use == Use::out ? "" : inputs[input++],
                        of_result = a.use == Use::in ? "" : results[result++];
      out.push_back(factors(a.use == Use::out ? of_result : of_input, a.rank));
      if (a.use == Use::in_out && factors(of_result, a.rank) != out.back())
        refuse(fmt::format("divides an array that is updated in two ways: \"{}\" and \"{}\"", of_input, of_result));
    }
    return out;
  }

 private:
  std::vector<int> factors(const std::string& text, int rank) {
    std::vector<int> out;
    for (const std::string& name : parts_of(text, " ")) {
      if (name.empty()) continue;
      const int factor = name == "-" ? -1 : numbers_.try_emplace(name, static_cast<int>(numbers_.size())).first->second;
      if (factor >= 0 && std::find(out.begin(), out.end(), factor) != out.end())
        refuse(fmt::format("has {} twice in \"{}\": axes of one array are divided by different factors", name, text));
      out.push_back(factor);
    }
    if (out.size() != static_cast<size_t>(rank))
      refuse(fmt::format("names {} axes in \"{}\", and the array has {}: give each a name, or \"-\" to keep it whole",
                         out.size(), text, rank));
    return out;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw_invalid("kernel " + d_.name, fmt::format("sharding: \"{}\" {}", rule_, what));
  }

  const Definition& d_;
  std::string_view rule_;
  std::map<std::string, int> numbers_;
};

}  // namespace

std::vector<std::vector<int>> sharding_of(const Definition& d, std::string_view rule) {
  return ShardingParser(d, rule).run();
}

}  // namespace weft::k::detail
