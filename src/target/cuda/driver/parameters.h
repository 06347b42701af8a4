#pragma once
// Builds the declarations that precede a hand-written kernel's source and set its parameters.
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace weft::target::cuda {

/// Declarations, one a line, in the order in which they are added.
class Parameters {
 public:
  /// Adds `#define name symbol` for the name of an entry, which no declaration can set.
  Parameters& entry(std::string_view name, std::string_view symbol) {
    return add(fmt::format("#define {} {}", name, symbol));
  }
  Parameters& flag(std::string_view name, bool value) {
    return add(fmt::format("constexpr bool {} = {};", name, value));
  }
  Parameters& integer(std::string_view name, int64_t value) {
    const bool fits = value >= INT32_MIN && value <= INT32_MAX;
    return add(fmt::format("constexpr {} {} = {};", fits ? "int" : "long long", name, value));
  }
  Parameters& type(std::string_view name, std::string_view value) {
    return add(fmt::format("using {} = {};", name, value));
  }
  /// Adds a pair (rows and columns) as two integers.
  template <class Pair>
  Parameters& rows_columns(std::string_view name, const Pair& value) {
    return integer(fmt::format("{}_rows", name), value[0]).integer(fmt::format("{}_columns", name), value[1]);
  }
  /// Adds the text of a function that the host generates.
  Parameters& function(std::string_view text) {
    text_ += text;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  Parameters& add(const std::string& line) {
    text_ += line + '\n';
    return *this;
  }
  std::string text_;
};

}  // namespace weft::target::cuda
