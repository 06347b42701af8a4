#pragma once
// A text file as tokens, with the questions asked that a training run would stumble over later.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "weft/text.h"

namespace weft::tool {

/// The file's bytes. Throws std::runtime_error with a sentence where it is missing, unreadable, a folder, or empty.
std::string read_text(const std::string& path);
Digest digest_of(const std::string& bytes);

/// "char" or "byte", for this text. Throws std::runtime_error naming the file where its bytes are no text.
std::unique_ptr<text::Tokenizer> make_tokenizer(const std::string& kind, const std::string& text,
                                                const std::string& path);
/// Throws std::runtime_error naming the file where the tokenizer does not know what it holds.
std::vector<int32_t> encode_file(const text::Tokenizer& tokenizer, const std::string& text, const std::string& path);
/// The message of an exception without the leading "[operation] ".
std::string without_operation(const std::string& message);

}  // namespace weft::tool
