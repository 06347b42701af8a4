#pragma once
// The tokens of tile IR's text.
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::kernel {

struct Token {
  /// word: letters, digits and '_'; value: %12; name: @scale or @"a name"; number: -1.5e3, 0x1p-3, inf, nan; string:
  /// "…", its escapes resolved; mark: one of ()[]{}|,:=; line: the end of a line with tokens.
  enum class Kind : uint8_t { word, value, name, number, string, mark, line, end };
  Kind kind = Kind::end;
  std::string text;
  int line = 1, column = 1;
  bool is(std::string_view word) const { return (kind == Kind::word || kind == Kind::mark) && text == word; }
};

/// Reads tokens one by one, with one to look at ahead. Throws TextError.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { read(); }
  const Token& peek() const { return next_; }
  Token take();
  /// Takes the token if it is this word or mark.
  bool accept(std::string_view word);
  void expect(std::string_view word);
  Token expect(Token::Kind kind, std::string_view what);
  /// Takes a whole number of int64 within bounds; `what` names it in the message.
  int64_t whole(std::string_view what, int64_t low = INT64_MIN, int64_t high = INT64_MAX);
  [[noreturn]] static void refuse(const Token& at, const std::string& what);

 private:
  void read();
  void read_string();
  void skip_blanks();
  char ahead(size_t k = 0) const { return at_ + k < text_.size() ? text_[at_ + k] : '\0'; }
  void advance(size_t n);

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1, column_ = 1;
  Token next_;
};

/// Returns a name as it is written: as it is if it is a word, else in quotes.
std::string quoted_name(const std::string& name);
std::string quoted(const std::string& text);

}  // namespace weft::kernel
