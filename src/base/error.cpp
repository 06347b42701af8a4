// The one place where Weft's exceptions are made.
#include "base/error.h"

namespace weft {

namespace {

std::string text(std::string_view op, std::string_view message) {
  std::string out;
  out.reserve(op.size() + message.size() + 3);
  return out.append("[").append(op).append("] ").append(message);
}

}  // namespace

void throw_invalid(std::string_view op, std::string_view message) { throw std::invalid_argument(text(op, message)); }
void throw_out_of_range(std::string_view op, std::string_view message) { throw std::out_of_range(text(op, message)); }
void throw_failure(std::string_view op, std::string_view message) { throw std::runtime_error(text(op, message)); }
void throw_internal(std::string_view where, std::string_view message) {
  throw internal_error(text(where, message) + "; this is a bug in Weft");
}
void throw_internal(std::string_view where, const internal_error& cause) {
  throw internal_error(text(where, cause.what()));
}

}  // namespace weft
