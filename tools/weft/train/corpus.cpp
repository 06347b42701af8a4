// Reading and tokenizing text files.
#include "tools/weft/train/corpus.h"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

#include "weft/io.h"

namespace weft::tool {

namespace {

/// Returns whether the last bytes begin a UTF-8 character that needs more of them.
bool ends_inside_character(const std::string& text) {
  size_t lead = text.size();
  for (int back = 0; back < 3 && lead > 0; ++back) {
    const auto byte = static_cast<unsigned char>(text[--lead]);
    if (byte < 0x80) return false;
    if (byte >= 0xC0) return text.size() - lead < (byte >= 0xF0 ? 4u : byte >= 0xE0 ? 3u : 2u);
  }
  return false;
}

}  // namespace

std::string without_operation(const std::string& message) {
  const size_t end = message.find("] ");
  return message.starts_with("[") && end != std::string::npos ? message.substr(end + 2) : message;
}

std::string read_text(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    throw std::runtime_error(fmt::format("there is no file {}: check the path", path));
  if (std::filesystem::is_directory(path, error))
    throw std::runtime_error(fmt::format("{} is a folder; a text file is needed", path));
  std::string bytes;
  try {
    bytes = io::read_file(path);
  } catch (const std::runtime_error& e) {
    throw std::runtime_error("the text cannot be read: " + without_operation(e.what()));
  }
  if (bytes.empty()) throw std::runtime_error(fmt::format("{} is empty: there is nothing to read in it", path));
  return bytes;
}

Digest digest_of(const std::string& bytes) { return Hasher().text(bytes).finish(); }

std::unique_ptr<text::Tokenizer> make_tokenizer(const std::string& kind, const std::string& text,
                                                const std::string& path) {
  if (kind == "byte") return std::make_unique<text::ByteTokenizer>();
  if (const size_t nul = text.find('\0'); nul != std::string::npos)
    throw std::runtime_error(
        fmt::format("{} is not a text: it has a zero byte at position {}; --tokenizer byte takes any file", path, nul));
  try {
    return std::make_unique<text::CharTokenizer>(text);
  } catch (const std::invalid_argument& e) {
    const char* cut =
        ends_inside_character(text) ? "; the file ends inside a character, so it may have been cut off" : "";
    throw std::runtime_error(fmt::format("{}: {} (--tokenizer byte){}", path, without_operation(e.what()), cut));
  }
}

std::vector<int32_t> encode_file(const text::Tokenizer& tokenizer, const std::string& text, const std::string& path) {
  try {
    return tokenizer.encode(text);
  } catch (const std::invalid_argument& e) {
    throw std::runtime_error(fmt::format("{}: {}", path, without_operation(e.what())));
  }
}

}  // namespace weft::tool
