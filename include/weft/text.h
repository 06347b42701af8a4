#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/api.h"

namespace weft::text {

/// Text to numbers 0 … vocab_size()-1 and back.
class WEFT_API Tokenizer {
 public:
  virtual ~Tokenizer();
  virtual int32_t vocab_size() const = 0;
  /// Throws std::invalid_argument naming what cannot be encoded and where (in bytes, from 0).
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  /// The bytes of one token; throws std::out_of_range for an id outside the vocabulary. Not always whole UTF-8: see
  /// StreamDecoder.
  virtual std::string token(int32_t id) const = 0;
  virtual std::string to_json() const = 0;

  std::string decode(std::span<const int32_t> ids) const;
  void save(const std::string& path) const;  ///< as JSON, atomically
};

/// What to_json wrote. Throws std::runtime_error where that is not a tokenizer.
WEFT_API std::unique_ptr<Tokenizer> tokenizer_from_json(std::string_view json);
WEFT_API std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);

/// One token for each Unicode character that occurs in a text, in the order of their code points.
class WEFT_API CharTokenizer : public Tokenizer {
 public:
  /// Throws std::invalid_argument where the text is empty or not UTF-8.
  explicit CharTokenizer(std::string_view text);
  explicit CharTokenizer(std::vector<char32_t> characters);
  int32_t vocab_size() const override;
  std::vector<int32_t> encode(std::string_view text) const override;
  std::string token(int32_t id) const override;
  std::string to_json() const override;
  const std::vector<char32_t>& characters() const { return characters_; }

 private:
  std::vector<char32_t> characters_;  // ascending
  std::unordered_map<char32_t, int32_t> ids_;
};

/// One token for each byte: 256 of them, for any text.
class WEFT_API ByteTokenizer : public Tokenizer {
 public:
  int32_t vocab_size() const override;
  std::vector<int32_t> encode(std::string_view text) const override;
  std::string token(int32_t id) const override;
  std::string to_json() const override;
};

/// Decodes token by token for a terminal: holds the first bytes of a UTF-8 character back until the rest has come; what
/// can no longer become one turns into U+FFFD. The tokenizer must outlive the decoder.
class WEFT_API StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}
  std::string push(int32_t id);  ///< the text that is complete with this token; may be empty
  std::string finish();          ///< what is still held, as U+FFFD; empty where nothing is

 private:
  const Tokenizer* tokenizer_;
  std::string held_;
};

}  // namespace weft::text
