#include "tools/weft/train/corpus.h"

#include <doctest/doctest.h>

#include <fstream>

#include "temporary_folder.h"

using namespace weft::tool;

namespace {

template <class F>
std::string failure(F f) {
  try {
    f();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("files that are no text are named, with what is wrong") {
  TemporaryFolder dir;
  std::ofstream(dir / "empty").close();
  std::ofstream(dir / "good") << "grüße";
  CHECK(has(failure([&] { read_text(dir / "none"); }), "there is no file"));
  CHECK(has(failure([&] { read_text(dir / "empty"); }), "is empty"));
  CHECK(has(failure([&] { read_text(dir.path); }), "is a folder"));
  CHECK(read_text(dir / "good") == "grüße");
}

TEST_CASE("tokenizers for texts and for other bytes") {
  const std::string text = "grüße";
  CHECK(make_tokenizer("char", text, "f")->vocab_size() == 5);
  CHECK(make_tokenizer("byte", text, "f")->vocab_size() == 256);
  const std::string zero("ab\0c", 4),
      garbage =
          "a\xff\xfe"
          "b",
      cut = text.substr(0, 3);
  CHECK(has(failure([&] { make_tokenizer("char", zero, "f.bin"); }),
            "f.bin is not a text: it has a zero byte at position 2"));
  CHECK(has(failure([&] { make_tokenizer("char", garbage, "f.bin"); }), "not UTF-8"));
  CHECK(has(failure([&] { make_tokenizer("char", cut, "f.bin"); }), "cut off"));
  CHECK(!has(failure([&] { make_tokenizer("char", garbage, "f.bin"); }), "cut off"));
  CHECK(make_tokenizer("byte", garbage, "f.bin")->encode(garbage).size() == 4);
  const auto tokenizer = make_tokenizer("char", text, "f");
  CHECK(has(failure([&] { encode_file(*tokenizer, "xyz", "g.txt"); }), "g.txt: the character 'x'"));
}

TEST_CASE("the operation in front of a message can go") {
  CHECK(without_operation("[encode] no") == "no");
  CHECK(without_operation("no [brackets] in front") == "no [brackets] in front");
}
