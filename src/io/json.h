#pragma once
// A guard before JSON from outside goes to a parser: what a reader then does with it (printing a value in a message,
// comparing) is recursive.
#include <string_view>

namespace weft::io {

/// Whether some value of the text lies in more than `most` lists and objects. The text need not be JSON.
bool nested_deeper(std::string_view json, int most);

}  // namespace weft::io
