#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>

#include "io/folder.h"
#include "io/zip.h"
#include "weft/io.h"
#include "weft/ops.h"

using namespace weft;

namespace {

std::unordered_map<std::string, array> read(const std::string& bytes) {
  return load_npz(std::make_shared<io::MemoryReader>(bytes, "m"));
}

std::string refusal(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const std::runtime_error& e) {
    const std::string text = e.what(), start = "[load_npz] m: ";
    CHECK(text.starts_with(start));
    return text.substr(std::min(start.size(), text.size()));
  }
  return "accepted";
}

std::unordered_map<std::string, array> some() {
  return {{"a", array({1.0f, 2.0f, 3.0f})},
          {"weight/é", arange(0, 600, int16)},
          {"empty", zeros({0, 2}, float64)},
          {"s", array(7)}};
}

std::string saved(bool compressed) {
  const auto out = std::make_shared<io::MemoryWriter>();
  if (compressed) savez_compressed(out, some());
  else savez(out, some());
  return out->bytes();
}

std::string zipped(const std::vector<io::ZipInput>& inputs, bool deflate, bool wide) {
  std::string out;
  for (const auto piece : io::write_zip("savez", inputs, deflate, wide).pieces) out += piece;
  return out;
}

std::string one_npy() {
  const auto out = std::make_shared<io::MemoryWriter>();
  save(out, array({5, 6}));
  return out->bytes();
}

const std::string fixtures = std::string(WEFT_TEST_DATA) + "/fixtures/npy/";

}  // namespace

TEST_CASE("npz: arrays come back by name, stored and deflated") {
  const Folder folder;
  for (const bool compressed : {false, true}) {
    CAPTURE(compressed);
    const auto back = read(saved(compressed));
    REQUIRE(back.size() == 4);
    for (const auto& [name, a] : some()) {
      const auto& captured = name;  // clang 14 takes no binding of a structure into a lambda
      CAPTURE(captured);
      REQUIRE(back.contains(name));
      CHECK(back.at(name).dtype() == a.dtype());
      CHECK(back.at(name).shape() == a.shape());
      CHECK(back.at(name).to_vector<double>() == a.to_vector<double>());
    }
    CHECK(saved(compressed) == saved(compressed));
  }
  CHECK(saved(true).size() < saved(false).size());
  savez(folder / "f", some());
  CHECK(io::read_file(folder / "f.npz") == saved(false));
  CHECK(load_npz(folder / "f.npz").at("weight/é").data<int16_t>()[599] == 599);
  savez_compressed(folder / "g.npz", {});
  CHECK(load_npz(folder / "g.npz").empty());
}

TEST_CASE("npz: stored arrays begin at multiples of 64 bytes, so that they use the mapping") {
  const std::string bytes = saved(false);
  const io::Bytes archive{"load_npz", "m", bytes, nullptr};
  for (const io::ZipMember& m : io::read_zip(archive)) CHECK(m.at % 64 == 0);
}

TEST_CASE("npz: zip64 fields") {
  const std::string content = one_npy();
  for (const bool deflate : {false, true}) {
    const std::string bytes = zipped({{"x.npy", {content}}, {"y.npy", {content}}}, deflate, true);
    const auto back = read(bytes);
    CHECK(back.at("x").to_vector<int>() == std::vector<int>{5, 6});
    CHECK(back.at("y").to_vector<int>() == std::vector<int>{5, 6});
    for (size_t n = 0; n < bytes.size(); ++n) CHECK(refusal(bytes.substr(0, n)) != "accepted");
  }
}

TEST_CASE("npz: damage is refused with the place") {
  const std::string content = one_npy(), bytes = zipped({{"x.npy", {content}}}, false, false);
  CHECK(refusal("") == "the file is too short for a zip archive, at byte 0");
  CHECK(refusal(std::string(100, 'x')) ==
        "there is no end record: this is no zip archive, or it is truncated, at byte 100");
  for (size_t n = 0; n < bytes.size(); ++n) CHECK(refusal(bytes.substr(0, n)) != "accepted");
  const auto with = [&](size_t from_end, const std::string& patch) {
    std::string out = bytes;
    out.replace(out.size() - from_end, patch.size(), patch);
    return refusal(out);
  };
  const size_t entry = 22 + 46 + 5;  // from the end of the archive to the directory
  CHECK(with(entry, "xx").starts_with("the directory is damaged"));
  CHECK(with(entry - 8, "\1").starts_with("member 'x.npy' is encrypted"));
  CHECK(with(entry - 10, "\x09").starts_with("member 'x.npy' is packed by method 9"));
  CHECK(with(entry - 16, "zzzz").starts_with("member 'x.npy' does not match its checksum"));
  CHECK(with(entry - 24, "\xff").find("bytes of content in") != std::string::npos);
  CHECK(with(entry - 42, "\1").starts_with("member 'x.npy' does not begin where the directory says"));
  CHECK(with(entry - 46, "y").starts_with("member 'y.npy' has another name in its own header"));
  CHECK(with(12, "\x02").starts_with("archives in several parts"));
  CHECK(with(6, "\xff\xff").find("end record") != std::string::npos);
  // Any other byte: refused, or without effect.
  for (size_t at = 0; at < bytes.size(); ++at)
    for (const char c : {'\0', '\x01', '\xff'}) {
      std::string damaged = bytes;
      damaged[at] = c;
      refusal(damaged);
    }
}

TEST_CASE("npz: hostile archives") {
  const std::string content = one_npy();
  CHECK(refusal(zipped({{"x.txt", {content}}}, false, false)).find("is no .npy file") != std::string::npos);
  CHECK(refusal(zipped({{"x.npy", {content}}, {"x.npy", {content}}}, false, false))
            .starts_with("member 'x.npy' occurs twice"));
  CHECK(refusal(zipped({{"x.npy", {"no array"}}}, true, false)) == "x.npy: this is no .npy file, at byte 0");
  // A deflated member that claims more than deflate can make, and one that claims too little.
  std::string bomb = zipped({{"x.npy", {content}}}, true, false);
  const size_t size_field = bomb.size() - 22 - 46 - 5 + 24;
  bomb.replace(size_field, 4, "\xf0\xff\xff\x7f");
  CHECK(refusal(bomb).find("claims 2147483632 bytes of content in") != std::string::npos);
  bomb.replace(size_field, 4, std::string("\x10\0\0\0", 4));
  CHECK(refusal(bomb).find("cannot be unpacked") != std::string::npos);
  // Two entries of one member.
  std::string doubled = zipped({{"x.npy", {content}}, {"y.npy", {content}}}, false, false);
  const size_t second = doubled.size() - 22 - 46 - 5;
  doubled.replace(second + 42, 4, std::string(4, '\0'));
  CHECK(refusal(doubled).find("another name") != std::string::npos);
}

TEST_CASE("npz fixtures: archives of other writers") {
  if (!std::filesystem::exists(fixtures)) {
    MESSAGE("skipped: no " << fixtures);
    return;
  }
  const auto candle = load_npz(fixtures + "candle/test.npz");
  CHECK(candle.at("x").to_vector<int>() == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(candle.at("x_plus_one").to_vector<int>() == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  CHECK(load_npz(fixtures + "npyio/data_float64_corder.npz").at("arr0").to_vector<double>() ==
        std::vector<double>{0, 1, 2, 3, 4, 5});
  CHECK(load_npz(fixtures + "npyio/data_float64_forder.npz").at("arr0").shape() == Shape{2, 3});
  for (const std::string file : {"numpy/py2-objarr.npz", "numpy/py3-objarr.npz"})
    CHECK_THROWS_WITH_AS(load_npz(fixtures + file), doctest::Contains("Python objects"), std::runtime_error);
}
