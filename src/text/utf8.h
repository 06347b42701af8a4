#pragma once
// UTF-8, strictly: no overlong forms, no surrogates, nothing past U+10FFFF.
#include <cstddef>
#include <string>
#include <string_view>

namespace weft::text {

struct Utf8Step {
  enum class Kind { character, incomplete, invalid } kind;
  char32_t code;  // of a character
  size_t bytes;   // of the character; of the longest part that could have begun one (Unicode's "maximal subpart"), at
                  // least 1
};

/// What stands at the start of a non-empty text. `incomplete` means: all of the text, and more bytes could make it a
/// character.
Utf8Step utf8_step(std::string_view text);
std::string utf8_encode(char32_t code);

}  // namespace weft::text
