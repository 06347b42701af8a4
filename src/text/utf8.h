#pragma once
// UTF-8, strictly: no overlong forms, no surrogates, nothing past U+10FFFF.
#include <cstddef>
#include <string>
#include <string_view>

namespace weft::text {

struct Utf8Step {
  enum class Kind { character, incomplete, invalid } kind;
  char32_t code;  // of a character
  size_t
      bytes;  // of the character, or of the longest part that could begin one (Unicode's "maximal subpart"), at least 1
};

/// Decodes the start of a non-empty text. `incomplete` means that all of the text begins a character and more bytes
/// could complete it.
Utf8Step utf8_step(std::string_view text);
std::string utf8_encode(char32_t code);

}  // namespace weft::text
