// Containers in one block of memory, against those of the standard library.
#include "base/flat_set.h"

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/indexed_vector.h"

using namespace weft;

namespace {

struct Tag {};
using Key = Id<Tag>;

}  // namespace

TEST_CASE("a sorted set holds what a std::set holds") {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    SortedSet<int> set;
    std::set<int> expected;
    for (int k = 0; k < 60; ++k) {
      const int value = static_cast<int>(random() % 40);
      const auto action = random() % 4;
      if (action == 0) {
        set.erase(value);
        expected.erase(value);
      } else if (action == 1) {
        const std::vector<int> more{value, static_cast<int>(random() % 40), value};
        set.insert(more.begin(), more.end());
        expected.insert(more.begin(), more.end());
      } else {
        const auto [at, fresh] = set.insert(value);
        CHECK(*at == value);
        CHECK(fresh == expected.insert(value).second);
      }
      CHECK(set.contains(value) == expected.contains(value));
      CHECK(std::vector<int>(set.begin(), set.end()) == std::vector<int>(expected.begin(), expected.end()));
    }
    if (set.empty()) continue;
    set.erase(set.begin());
    expected.erase(expected.begin());
    set.merge({7, 3, 7});
    expected.merge(std::set<int>{7, 3});
    CHECK(std::vector<int>(set.begin(), set.end()) == std::vector<int>(expected.begin(), expected.end()));
  }
}

TEST_CASE("lists keep the order of their values") {
  std::mt19937 random(2);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{9}}) {
    std::vector<std::pair<Key, int>> values;
    for (int k = 0; count > 0 && k < 40; ++k) values.emplace_back(static_cast<int>(random() % count), k);
    const Lists<Key, int> lists(count, [&](const auto& add) {
      for (const auto& [key, value] : values) add(key, value);
    });
    for (Key key = 0; key < static_cast<int>(count); ++key) {
      std::vector<int> expected;
      for (const auto& [at, value] : values)
        if (at == key) expected.push_back(value);
      CHECK(std::vector<int>(lists[key].begin(), lists[key].end()) == expected);
    }
  }
  CHECK(Lists<Key, int>()[3].empty());
}

TEST_CASE("flat maps hold what was inserted first, at every size") {
  for (const int count : {0, 1, 15, 16, 17, 100, 5000}) {
    CAPTURE(count);
    std::mt19937_64 random(7);
    FlatMap map;
    FlatSet set;
    std::unordered_map<uint64_t, int> expected;
    for (int k = 0; k < count; ++k) {
      const uint64_t key = 1 + random() % static_cast<uint64_t>(count) * 64;
      const bool fresh = expected.try_emplace(key, k).second;
      CHECK(map.insert(key, k) == std::pair(expected.at(key), fresh));
      CHECK(set.insert(key) == fresh);
    }
    CHECK(map.size() == static_cast<int>(expected.size()));
    for (const auto& [key, value] : expected) {
      CHECK(map.find(key) == value);
      CHECK(map.find(key + 1) == -1);
      CHECK(set.contains(reinterpret_cast<const void*>(key)));
    }
    const FlatMap copy = map;
    for (const auto& [key, value] : expected) CHECK(copy.find(key) == value);
  }
}
