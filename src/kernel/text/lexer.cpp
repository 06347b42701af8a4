#include "kernel/text/lexer.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "kernel/text/text.h"

namespace weft::kernel {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool in_word(char c) { return is_letter(c) || is_digit(c); }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

void Lexer::refuse(const Token& at, const std::string& what) {
  throw TextError(fmt::format("[tile IR] {}:{}: {}", at.line, at.column, what), at.line, at.column);
}

void Lexer::advance(size_t n) {
  at_ += n;
  column_ += static_cast<int>(n);
}

void Lexer::skip_blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    const bool between = c == '\n' && (next_.kind == Token::Kind::line || next_.kind == Token::Kind::end);
    if (c == ' ' || c == '\t' || c == '\r') advance(1);
    else if (c == '/' && ahead(1) == '/') advance(std::min(text_.find('\n', at_), text_.size()) - at_);
    else if (between) ++at_, ++line_, column_ = 1;
    else break;
  }
}

void Lexer::read_string() {
  advance(1);
  for (;;) {
    const char c = ahead();
    if (at_ >= text_.size() || c == '\n') refuse(next_, "the text in quotes has no end: close it on its line");
    advance(1);
    if (c == '"') return;
    if (c != '\\') {
      next_.text += c;
      continue;
    }
    const char escape = ahead();
    const int high = hex_digit(ahead(1)), low = hex_digit(ahead(2));
    if (escape == 'x' && high >= 0 && low >= 0) next_.text += static_cast<char>(high * 16 + low);
    else if (escape == 'n') next_.text += '\n';
    else if (escape == '"' || escape == '\\') next_.text += escape;
    else refuse(next_, R"(a backslash stands in quotes: write \\, \", \n or \x and two hexadecimal digits)");
    advance(escape == 'x' ? 3 : 1);
  }
}

void Lexer::read() {
  skip_blanks();
  next_ = {Token::Kind::end, {}, line_, column_};
  if (at_ >= text_.size()) return;
  const size_t begin = at_;
  const char c = ahead();
  const auto run = [&](auto&& belongs) {
    while (at_ < text_.size() && belongs(text_[at_])) advance(1);
    next_.text = text_.substr(begin, at_ - begin);
  };
  if (c == '\n') {
    next_.kind = Token::Kind::line;
    ++at_, ++line_, column_ = 1;
  } else if (is_letter(c)) {
    next_.kind = Token::Kind::word;
    run(in_word);
  } else if (c == '%') {
    next_.kind = Token::Kind::value;
    advance(1);
    run(in_word);
  } else if (c == '@' && ahead(1) == '"') {
    next_.kind = Token::Kind::name;
    advance(1);
    read_string();
  } else if (c == '@') {
    next_.kind = Token::Kind::name;
    advance(1);
    run(in_word);
    next_.text.erase(0, 1);
  } else if (c == '"') {
    next_.kind = Token::Kind::string;
    read_string();
  } else if (is_digit(c) || c == '-' || c == '+') {
    next_.kind = Token::Kind::number;
    advance(1);
    run([&](char d) {
      const char before = text_[at_ - 1];
      const bool hex = text_.substr(begin, at_ - begin).find('x') != std::string_view::npos;
      return in_word(d) || d == '.' || ((d == '-' || d == '+') && (before == 'p' || (before == 'e' && !hex)));
    });
  } else if (std::string_view("()[]{}|,:=;").find(c) != std::string_view::npos) {
    next_.kind = Token::Kind::mark;
    advance(1);
    next_.text = c;
  } else {
    refuse(next_, fmt::format("the byte 0x{:02x} has no meaning here: remove it", static_cast<unsigned char>(c)));
  }
}

Token Lexer::take() {
  Token taken = next_;
  read();
  return taken;
}

bool Lexer::accept(std::string_view word) {
  if (!next_.is(word)) return false;
  read();
  return true;
}

void Lexer::expect(std::string_view word) {
  if (!accept(word)) refuse(next_, fmt::format("\"{}\" is missing: write it here", word));
}

Token Lexer::expect(Token::Kind kind, std::string_view what) {
  if (next_.kind != kind) refuse(next_, fmt::format("{} is missing: write it here", what));
  return take();
}

int64_t Lexer::whole(std::string_view what, int64_t low, int64_t high) {
  const Token token = expect(Token::Kind::number, what);
  int64_t value = 0;
  const char* const end = token.text.data() + token.text.size();
  const auto [at, error] = std::from_chars(token.text.data(), end, value);
  if (error != std::errc{} || at != end || value < low || value > high)
    refuse(token, fmt::format("{} is {}: give a whole number from {} to {}", what, token.text, low, high));
  return value;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\', out += c;
    else if (c == '\n') out += "\\n";
    else if (c < ' ' || c > '~') out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else out += c;
  }
  return out + '"';
}

std::string quoted_name(const std::string& name) {
  bool word = !name.empty() && is_letter(name[0]);
  for (const char c : name) word = word && in_word(c);
  return word ? name : quoted(name);
}

}  // namespace weft::kernel
