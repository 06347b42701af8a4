#include "io/json.h"

namespace weft::io {

bool nested_deeper(std::string_view json, int most) {
  int depth = 0;
  bool quoted = false;
  for (size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (quoted && c == '\\') ++at;
    else if (c == '"') quoted = !quoted;
    else if (!quoted && (c == '[' || c == '{') && ++depth > most) return true;
    else if (!quoted && (c == ']' || c == '}')) --depth;
  }
  return false;
}

}  // namespace weft::io
