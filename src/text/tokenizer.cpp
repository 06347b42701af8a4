// Character and byte tokenizers, and their JSON: {"kind": "char", "characters": "…"} and {"kind": "byte"}.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "text/utf8.h"
#include "weft/io.h"
#include "weft/text.h"

namespace weft::text {

namespace {

std::string hex(char32_t value, int digits) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, "%0*X", digits, static_cast<unsigned>(value));
  return buffer;
}

std::string shown(char32_t code) {
  const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
  return control ? "U+" + hex(code, 4) : "'" + utf8_encode(code) + "' (U+" + hex(code, 4) + ")";
}

/// Calls `each(code point, byte position)`; throws std::invalid_argument at the first bytes that are no UTF-8.
template <class Each>
void for_each_character(const char* op, std::string_view text, Each each) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    if (step.kind != Utf8Step::Kind::character)
      throw_invalid(op, "the text is not UTF-8: byte 0x" + hex(static_cast<uint8_t>(text[at]), 2) + " at position " +
                            std::to_string(at) + " begins no character; a byte tokenizer takes any text");
    each(step.code, at);
    at += step.bytes;
  }
}

std::vector<char32_t> characters_of(std::string_view text) {
  std::set<char32_t> found;
  for_each_character("CharTokenizer", text, [&](char32_t code, size_t) { found.insert(code); });
  return {found.begin(), found.end()};
}

void check_id(int32_t id, int32_t count) {
  if (id < 0 || id >= count)
    throw_out_of_range("decode",
                       "token " + std::to_string(id) + " is outside the vocabulary of " + std::to_string(count));
}

}  // namespace

Tokenizer::~Tokenizer() = default;

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string out;
  for (const int32_t id : ids) out += token(id);
  return out;
}

void Tokenizer::save(const std::string& path) const { io::write_file_atomically(path, to_json() + "\n"); }

CharTokenizer::CharTokenizer(std::string_view text) : CharTokenizer(characters_of(text)) {}

CharTokenizer::CharTokenizer(std::vector<char32_t> characters) : characters_(std::move(characters)) {
  std::sort(characters_.begin(), characters_.end());
  characters_.erase(std::unique(characters_.begin(), characters_.end()), characters_.end());
  if (characters_.empty()) throw_invalid("CharTokenizer", "the text is empty: there are no characters to learn");
  for (size_t i = 0; i < characters_.size(); ++i) ids_.emplace(characters_[i], static_cast<int32_t>(i));
}

int32_t CharTokenizer::vocab_size() const { return static_cast<int32_t>(characters_.size()); }

std::vector<int32_t> CharTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size());
  for_each_character("encode", text, [&](char32_t code, size_t at) {
    const auto it = ids_.find(code);
    if (it == ids_.end())
      throw_invalid("encode", "the character " + shown(code) + " at position " + std::to_string(at) +
                                  " is not among the " + std::to_string(vocab_size()) +
                                  " characters of the text that this vocabulary was made from");
    ids.push_back(it->second);
  });
  return ids;
}

std::string CharTokenizer::token(int32_t id) const {
  check_id(id, vocab_size());
  return utf8_encode(characters_[static_cast<size_t>(id)]);
}

std::string CharTokenizer::to_json() const {
  std::string all;
  for (const char32_t c : characters_) all += utf8_encode(c);
  return nlohmann::ordered_json{{"kind", "char"}, {"characters", all}}.dump(2);
}

int32_t ByteTokenizer::vocab_size() const { return 256; }

std::vector<int32_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size());
  for (const char c : text) ids.push_back(static_cast<uint8_t>(c));
  return ids;
}

std::string ByteTokenizer::token(int32_t id) const {
  check_id(id, 256);
  return std::string(1, static_cast<char>(id));
}

std::string ByteTokenizer::to_json() const { return nlohmann::ordered_json{{"kind", "byte"}}.dump(2); }

std::unique_ptr<Tokenizer> tokenizer_from_json(std::string_view text) {
  const auto root = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (root.is_discarded() || !root.is_object() || !root.contains("kind") || !root["kind"].is_string())
    throw_failure("load_tokenizer", "this is not a tokenizer: JSON with \"kind\" was expected");
  const std::string kind = root["kind"].get<std::string>();
  if (kind == "byte") return std::make_unique<ByteTokenizer>();
  if (kind != "char")
    throw_failure("load_tokenizer", "unknown kind of tokenizer '" + kind + "'; known are 'char' and 'byte'");
  if (!root.contains("characters") || !root["characters"].is_string() || root["characters"].get<std::string>().empty())
    throw_failure("load_tokenizer", "a character tokenizer needs \"characters\", a text that is not empty");
  return std::make_unique<CharTokenizer>(root["characters"].get<std::string>());
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  const std::string text = io::read_file(path);
  try {
    return tokenizer_from_json(text);
  } catch (const std::runtime_error& e) {
    throw std::runtime_error(std::string(e.what()) + " (" + path + ")");
  }
}

std::string StreamDecoder::push(int32_t id) {
  held_ += tokenizer_->token(id);
  std::string out;
  size_t at = 0;
  while (at < held_.size()) {
    const Utf8Step step = utf8_step(std::string_view(held_).substr(at));
    if (step.kind == Utf8Step::Kind::incomplete) break;
    out += step.kind == Utf8Step::Kind::character ? held_.substr(at, step.bytes) : "\uFFFD";
    at += step.bytes;
  }
  held_.erase(0, at);
  return out;
}

std::string StreamDecoder::finish() {
  const bool open = !held_.empty();
  held_.clear();
  return open ? "\uFFFD" : "";
}

}  // namespace weft::text
