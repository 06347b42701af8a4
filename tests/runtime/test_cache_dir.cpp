// The cache folder: round trips, damage, several processes, the bound, no folder at all.
#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cache_dir.h"
#include "runtime/trace.h"

using namespace weft::runtime;
using weft::Digest;
namespace fs = std::filesystem;

namespace {
constexpr uint64_t gib = uint64_t{1} << 30;

/// A folder of its own, and the environment as it was afterwards.
struct Folder {
  fs::path path;
  std::string before;
  Folder() {
    static int count = 0;
    path =
        fs::temp_directory_path() / ("weft-cache-test-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    if (const char* value = std::getenv("WEFT_CACHE_DIR")) before = value;
    ::setenv("WEFT_CACHE_DIR", path.c_str(), 1);
  }
  ~Folder() {
    before.empty() ? ::unsetenv("WEFT_CACHE_DIR") : ::setenv("WEFT_CACHE_DIR", before.c_str(), 1);
    set_cache_dir_limit(gib);
    fs::remove_all(path);
  }
  uint64_t bytes() const {
    uint64_t total = 0;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) total += entry.file_size();
    }
    return total;
  }
};

Digest key(uint64_t i) { return {0x1234, i}; }
std::vector<char> text(size_t n, char seed) {
  std::vector<char> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<char>(seed + static_cast<char>(i * 31));
  return v;
}
void put(uint64_t i, const std::vector<char>& v) { cache_put("object", key(i), v.data(), v.size()); }
}  // namespace

TEST_CASE("an entry comes back; another key or kind is a miss") {
  Folder folder;
  CHECK(cache_dir() == folder.path.string());
  CHECK_FALSE(cache_get("object", key(1)));
  const auto v = text(10000, 1);
  put(1, v);
  put(2, {});
  CHECK(cache_get("object", key(1)) == v);
  CHECK(cache_get("object", key(2)) == std::vector<char>{});
  CHECK_FALSE(cache_get("object", key(3)));
  CHECK_FALSE(cache_get("tuning", key(1)));
  const auto w = text(50, 9);
  put(1, w);  // replaced
  CHECK(cache_get("object", key(1)) == w);
  for (const auto& entry : fs::recursive_directory_iterator(folder.path)) CHECK(entry.path().extension() != ".tmp");
  CHECK_THROWS_AS(cache_put("../up", key(1), "x", 1), std::logic_error);
}

TEST_CASE("truncated, damaged, foreign and renamed entries are misses") {
  Folder folder;
  const auto v = text(1000, 3);
  put(1, v);
  const fs::path path = folder.path / "object" / key(1).hex();
  REQUIRE(fs::exists(path));
  const auto size = fs::file_size(path);
  std::vector<char> whole(size);
  std::ifstream(path, std::ios::binary).read(whole.data(), static_cast<std::streamsize>(size));
  const auto write = [&](const std::vector<char>& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  };
  for (size_t n : {size_t{0}, size_t{7}, size_t{31}, size_t{32}, size_t{500}, size - 1}) {
    write({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)});
    CHECK_FALSE(cache_get("object", key(1)));
  }
  for (size_t at = 0; at < size; at += 13) {
    auto damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write(damaged);
    CHECK_MESSAGE(!cache_get("object", key(1)), "byte ", at);
  }
  auto longer = whole;
  longer.push_back('x');
  write(longer);
  CHECK_FALSE(cache_get("object", key(1)));
  write(whole);
  CHECK(cache_get("object", key(1)) == v);
  fs::rename(path, folder.path / "object" / key(2).hex());
  CHECK_FALSE(cache_get("object", key(2)));
  fs::create_directory(path);
  CHECK_FALSE(cache_get("object", key(1)));
}

TEST_CASE("the folder stays under its limit and the oldest entries go") {
  Folder folder;
  set_cache_dir_limit(100000);
  for (uint64_t i = 0; i < 8; ++i) {
    put(i, text(10000, static_cast<char>(i)));
    std::this_thread::sleep_for(std::chrono::milliseconds(15));  // times of files are as fine as the kernel's tick
  }
  CHECK(cache_get("object", key(0)));  // used: young again
  std::this_thread::sleep_for(std::chrono::milliseconds(15));
  for (uint64_t i = 8; i < 12; ++i) {
    put(i, text(10000, static_cast<char>(i)));
    CHECK(folder.bytes() <= 100000);
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
  }
  CHECK(cache_get("object", key(0)));
  CHECK_FALSE(cache_get("object", key(1)));
  CHECK(cache_get("object", key(11)));
  put(99, text(200000, 1));  // larger than the folder may be
  CHECK_FALSE(cache_get("object", key(99)));
  CHECK(cache_get("object", key(11)));
}

TEST_CASE("several processes write and read the same entries") {
  Folder folder;
  set_cache_dir_limit(400000);
  constexpr int processes = 4, rounds = 150, keys = 12;
  std::vector<pid_t> children;
  for (int p = 0; p < processes; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      int wrong = 0;
      for (int r = 0; r < rounds; ++r) {
        const uint64_t k = static_cast<uint64_t>(r * (p + 1)) % keys;
        const auto v = text(5000 * (k + 1), static_cast<char>(k));
        put(k, v);
        for (uint64_t other = 0; other < keys; ++other) {
          const auto got = cache_get("object", key(other));
          if (got && *got != text(5000 * (other + 1), static_cast<char>(other))) ++wrong;  // gone is fine, wrong is not
        }
      }
      ::_exit(wrong == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder.path)) CHECK(entry.path().extension() != ".tmp");
  CHECK(folder.bytes() <= 400000);
}

TEST_CASE("no folder: everything is a miss and nothing fails") {
  Folder folder;
  std::ofstream(folder.path) << "a file, not a folder";
  CHECK(cache_dir().empty());
  put(1, text(10, 1));
  CHECK_FALSE(cache_get("object", key(1)));
  fs::remove(folder.path);
}

TEST_CASE("the folder is taken from the environment in order") {
  Folder folder;
  const auto keep = [](const char* name) {
    const char* v = std::getenv(name);
    return std::string(v ? v : "");
  };
  const std::string xdg = keep("XDG_CACHE_HOME"), home = keep("HOME");
  ::unsetenv("WEFT_CACHE_DIR");
  ::setenv("XDG_CACHE_HOME", folder.path.c_str(), 1);
  CHECK(cache_dir() == (folder.path / "weft").string());
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", folder.path.c_str(), 1);
  CHECK(cache_dir() == (folder.path / ".cache" / "weft").string());
  ::unsetenv("HOME");
  CHECK(cache_dir().empty());
  if (!xdg.empty()) ::setenv("XDG_CACHE_HOME", xdg.c_str(), 1);
  if (!home.empty()) ::setenv("HOME", home.c_str(), 1);
}

TEST_CASE("counters count") {
  const int64_t before = counters().kernel_launches;
  ++counters().kernel_launches;
  CHECK(counters().kernel_launches == before + 1);
}
