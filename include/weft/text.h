#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/api.h"

/// Tokenizers: texts as token ids, and back.
namespace weft::text {

/// Converts text to token ids 0 … vocab_size() - 1 and back.
class WEFT_API Tokenizer {
 public:
  virtual ~Tokenizer();
  /// Returns the number of tokens.
  virtual int32_t vocab_size() const = 0;
  /// Returns the token ids of a text. Throws std::invalid_argument naming what cannot be encoded and where (in bytes,
  /// from 0).
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  /// Returns the bytes of one token; throws std::out_of_range for an id outside the vocabulary. Not always whole UTF-8:
  /// see StreamDecoder.
  virtual std::string token(int32_t id) const = 0;
  /// Returns the tokenizer as JSON, for tokenizer_from_json.
  virtual std::string to_json() const = 0;

  /// Returns the text of the tokens.
  std::string decode(std::span<const int32_t> ids) const;
  /// Writes to_json() to a file, atomically.
  void save(const std::string& path) const;
};

/// Returns the tokenizer that to_json wrote. Throws std::runtime_error where the text is no tokenizer.
WEFT_API std::unique_ptr<Tokenizer> tokenizer_from_json(std::string_view json);
/// Returns the tokenizer of a file. Throws std::runtime_error where it cannot be read or is no tokenizer.
WEFT_API std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);

/// One token for each Unicode character of a text, in the order of their code points. Throws std::invalid_argument
/// where the text is empty or not UTF-8.
class WEFT_API CharTokenizer : public Tokenizer {
 public:
  explicit CharTokenizer(std::string_view text);
  explicit CharTokenizer(std::vector<char32_t> characters);
  int32_t vocab_size() const override;
  std::vector<int32_t> encode(std::string_view text) const override;
  std::string token(int32_t id) const override;
  std::string to_json() const override;
  /// Returns the characters, ascending.
  const std::vector<char32_t>& characters() const { return characters_; }

 private:
  std::vector<char32_t> characters_;  // ascending
  std::unordered_map<char32_t, int32_t> ids_;
};

/// One token for each byte: 256 tokens, for any text.
class WEFT_API ByteTokenizer : public Tokenizer {
 public:
  int32_t vocab_size() const override;
  std::vector<int32_t> encode(std::string_view text) const override;
  std::string token(int32_t id) const override;
  std::string to_json() const override;
};

/// Decodes token by token for a terminal: keeps the first bytes of a UTF-8 character until the rest has come; bytes
/// that can no longer become one turn into U+FFFD. The tokenizer must outlive the decoder.
class WEFT_API StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}
  /// Returns the text that is complete with this token; may be empty.
  std::string push(int32_t id);
  /// Returns U+FFFD for bytes that are still kept, or nothing.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  std::string held_;
};

}  // namespace weft::text
