#pragma once
// Errors. Every message begins with the operation in brackets and says what is wrong and what to do. A caller's
// mistakes are std::invalid_argument or std::out_of_range, failures of files and devices std::runtime_error, mistakes
// of Weft internal_error.
#include <stdexcept>
#include <string>
#include <string_view>

namespace weft {

[[noreturn]] void throw_invalid(std::string_view op,
                                std::string_view message);  // std::invalid_argument("[op] message")
[[noreturn]] void throw_out_of_range(std::string_view op, std::string_view message);  // std::out_of_range
[[noreturn]] void throw_failure(std::string_view op, std::string_view message);       // std::runtime_error

/// A broken invariant of Weft: a verifier's finding, or an unreachable case.
struct internal_error : std::logic_error {
  using std::logic_error::logic_error;
};
[[noreturn]] void throw_internal(std::string_view where, std::string_view message);
[[noreturn]] void throw_internal(std::string_view where, const internal_error& cause);  // "[where] " + its message
inline void check(bool ok, std::string_view where, std::string_view message) {
  if (!ok) throw_internal(where, message);
}

}  // namespace weft
