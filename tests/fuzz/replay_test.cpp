// Every input of the corpus through its parser, and neighbours of it: cut short, and with single bytes changed.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "fuzz/targets.h"
#include "weft/io.h"

using namespace weft;

namespace {

std::vector<std::string> inputs(const std::string& name) {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(WEFT_SOURCE_DIR) + "/tests/fuzz/corpus/" + name))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("fuzz corpus: every input is taken or refused as it should be") {
  for (const fuzz::Target& target : fuzz::targets()) {
    CAPTURE(std::string(target.name));
    const auto files = inputs(target.name);
    CHECK(files.size() >= 2);
    for (const std::string& file : files) {
      CAPTURE(file);
      const std::string bytes = io::read_file(file);
      CHECK_NOTHROW(target.run(bytes));
      const size_t stride = std::max<size_t>(bytes.size() / 200, 1);
      for (size_t at = 0; at < bytes.size(); at += stride) {
        CAPTURE(at);
        CHECK_NOTHROW(target.run(std::string_view(bytes).substr(0, at)));
        std::string changed = bytes;
        changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
        CHECK_NOTHROW(target.run(changed));
      }
    }
  }
}

TEST_CASE("fuzz targets: nesting without end, and nothing at all") {
  for (const fuzz::Target& target : fuzz::targets()) {
    CAPTURE(std::string(target.name));
    CHECK_NOTHROW(target.run(""));
    for (const char* open : {"[", "{\"a\":", "{\"lr\":[", "{\"options\":["}) {
      std::string deep;
      for (int k = 0; k < 200000; ++k) deep += open;
      CHECK_NOTHROW(target.run(deep));
      std::string closed(400000, '[');
      closed.replace(200000, 200000, 200000, ']');
      CHECK_NOTHROW(target.run("{\"options\":" + closed + ",\"lr\":" + closed + ",\"width\":" + closed + "}"));
    }
  }
  CHECK_THROWS_AS(fuzz::target("nothing"), std::out_of_range);
}
