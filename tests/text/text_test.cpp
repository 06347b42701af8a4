#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "text/utf8.h"
#include "weft/io.h"
#include "weft/text.h"

using namespace weft;
using namespace weft::text;

namespace {

template <class E, class F>
std::string message(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "no error";
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  StreamDecoder decoder(tokenizer);
  std::string out;
  for (const int32_t id : ids) out += decoder.push(id) + "|";
  return out + decoder.finish();
}

}  // namespace

TEST_CASE("UTF-8: every code point comes back, everything else is refused") {
  for (char32_t c = 0; c < 0x110000; c = c == 0xD7FF ? 0xE000 : c + 1) {
    const std::string bytes = utf8_encode(c);
    const Utf8Step step = utf8_step(bytes);
    if (step.kind != Utf8Step::Kind::character || step.code != c || step.bytes != bytes.size())
      FAIL("code point ", static_cast<uint32_t>(c));
    for (size_t n = 1; n < bytes.size(); ++n)
      if (utf8_step(std::string_view(bytes).substr(0, n)).kind != Utf8Step::Kind::incomplete)
        FAIL("part of code point ", static_cast<uint32_t>(c));
  }
  // Overlong, surrogate, past the end, stray bytes; with the length of the longest part that could have begun a
  // character.
  const std::pair<std::string, size_t> bad[] = {{"\xC0\x80", 1},
                                                {"\xC1\xBF", 1},
                                                {"\xE0\x80\x80", 1},
                                                {"\xE0\x9F\xBF", 1},
                                                {"\xED\xA0\x80", 1},
                                                {"\xF0\x80\x80\x80", 1},
                                                {"\xF4\x90\x80\x80", 1},
                                                {"\xF5\x80\x80\x80", 1},
                                                {"\x80", 1},
                                                {"\xFF", 1},
                                                {"\xC3\x28", 1},
                                                {"\xE2\x82\x28", 2},
                                                {"\xF0\x9F\x98 ", 3}};
  for (const auto& [bytes, length] : bad) {
    const auto& captured = bytes;  // clang 14 takes no binding of a structure into a lambda
    CAPTURE(captured);
    CHECK(utf8_step(bytes).kind == Utf8Step::Kind::invalid);
    CHECK(utf8_step(bytes).bytes == length);
  }
}

TEST_CASE("characters: ids in the order of code points, and back") {
  const CharTokenizer t("héllo wörld €\n");
  CHECK(t.vocab_size() == 11);
  CHECK(std::is_sorted(t.characters().begin(), t.characters().end()));
  CHECK(t.token(0) == "\n");
  CHECK(t.token(10) == "€");
  const auto ids = t.encode("wörld");
  CHECK(ids.size() == 5);
  CHECK(t.decode(ids) == "wörld");
  CHECK(t.encode("").empty());
}

TEST_CASE("tinyshakespeare: 65 characters, as nanoGPT numbers them") {
  const std::string file = std::string(WEFT_TEST_DATA) + "/text/tinyshakespeare.txt";
  if (!std::filesystem::exists(file)) {
    MESSAGE("skipped: no " << file);
    return;
  }
  const std::string text = io::read_file(file);
  const CharTokenizer t(text);
  std::string all;
  for (int32_t id = 0; id < t.vocab_size(); ++id) all += t.token(id);
  CHECK(all == "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
  const auto ids = t.encode(text);
  CHECK(ids.size() == 1115394);
  CHECK(std::vector<int32_t>(ids.begin(), ids.begin() + 5) == std::vector<int32_t>{18, 47, 56, 57, 58});  // "First"
  CHECK(t.decode(ids) == text);
}

TEST_CASE("what cannot be encoded is named with its place") {
  const CharTokenizer t("abc");
  CHECK(message<std::invalid_argument>([&] { t.encode("ab€"); }) ==
        "[encode] the character '€' (U+20AC) at position 2 is not among the 3 characters of the text that this "
        "vocabulary was made from");
  CHECK(message<std::invalid_argument>([&] { t.encode("a\tb"); }).find("U+0009 at position 1") != std::string::npos);
  CHECK(message<std::invalid_argument>([&] { t.encode("ab\xFF"); }) ==
        "[encode] the text is not UTF-8: byte 0xFF at position 2 begins no character; a byte tokenizer takes any text");
  CHECK_THROWS_AS(CharTokenizer("ab\xC3"), std::invalid_argument);
  CHECK_THROWS_AS(CharTokenizer(""), std::invalid_argument);
  CHECK(message<std::out_of_range>([&] { t.token(3); }) == "[decode] token 3 is outside the vocabulary of 3");
  CHECK_THROWS_AS(t.token(-1), std::out_of_range);
  CHECK_THROWS_AS(ByteTokenizer().token(256), std::out_of_range);
}

TEST_CASE("bytes: any text") {
  const ByteTokenizer t;
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const auto ids = t.encode(all);
  CHECK(ids[0] == 0);
  CHECK(ids[255] == 255);
  CHECK(t.decode(ids) == all);
  CHECK(t.vocab_size() == 256);
}

TEST_CASE("saved and loaded") {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("weft_tok_" + std::to_string(::getpid()) + ".json")).string();
  const CharTokenizer chars(std::string_view("\"\\ \n€😉\0z", 13));
  chars.save(file);
  const auto back = load_tokenizer(file);
  REQUIRE(back->vocab_size() == chars.vocab_size());
  CHECK(back->encode("€\n😉\"") == chars.encode("€\n😉\""));
  ByteTokenizer().save(file);
  CHECK(load_tokenizer(file)->vocab_size() == 256);
  const char* broken[] = {"",
                          "{",
                          "[]",
                          "{}",
                          "{\"kind\": 3}",
                          "{\"kind\": \"word\"}",
                          "{\"kind\": \"char\"}",
                          "{\"kind\": \"char\", \"characters\": \"\"}",
                          "{\"kind\": \"char\", \"characters\": 7}"};
  for (const char* text : broken) {
    CAPTURE(text);
    std::ofstream(file) << text;
    CHECK_THROWS_AS(load_tokenizer(file), std::runtime_error);
  }
  std::filesystem::remove(file);
  CHECK_THROWS_AS(load_tokenizer(file), std::runtime_error);
}

TEST_CASE("streaming: whole characters only, and what is broken becomes U+FFFD") {
  const ByteTokenizer t;
  CHECK(streamed(t, {'a', 0xE2, 0x82, 0xAC, 'b'}) == "a|||€|b|");
  CHECK(streamed(t, {0xF0, 0x9F, 0x98, 0x89}) == "|||😉|");
  CHECK(streamed(t, {0xF0, 0x9F, 'x'}) == "||\uFFFDx|");
  CHECK(streamed(t, {0xFF, 'x', 0x80}) == "\uFFFD|x|\uFFFD|");
  CHECK(streamed(t, {0xE2, 0x82}) == "||\uFFFD");
  CHECK(streamed(t, {0xE2, 0xC3, 0xA9}) == "|\uFFFD|é|");
  const CharTokenizer c("é€");
  CHECK(streamed(c, {0, 1}) == "é|€|");
}
