#pragma once
// A guard for JSON from outside before it is parsed: later uses of the value (printing it in a message, comparing) are
// recursive.
#include <string_view>

namespace weft::io {

/// Returns whether some value of the text is nested in more than `most` lists and objects. The text need not be JSON.
bool nested_deeper(std::string_view json, int most);

}  // namespace weft::io
