#pragma once
// A text file as tokens, with the checks that a training run needs before it starts.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "weft/text.h"

namespace weft::tool {

/// Returns the file's bytes. Throws std::runtime_error where it is missing, unreadable, a folder, or empty.
std::string read_text(const std::string& path);
Digest digest_of(const std::string& bytes);

/// Makes a "char" or "byte" tokenizer for this text. Throws std::runtime_error naming the file where its bytes are no
/// text.
std::unique_ptr<text::Tokenizer> make_tokenizer(const std::string& kind, const std::string& text,
                                                const std::string& path);
/// Returns the tokens of the text. Throws std::runtime_error naming the file where the tokenizer cannot encode it.
std::vector<int32_t> encode_file(const text::Tokenizer& tokenizer, const std::string& text, const std::string& path);
/// Returns the message of an exception without the leading "[operation] ".
std::string without_operation(const std::string& message);

}  // namespace weft::tool
