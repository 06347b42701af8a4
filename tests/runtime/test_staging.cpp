#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "runtime/staging.h"

using namespace weft::runtime;

TEST_CASE(
    "staging: pieces that are on their way never overlap, and are waited for in order and only where room is wanted") {
  StagingRing ring(4096, 8);
  std::mt19937 draw(1);
  std::vector<StagingRing::Piece> under_way;
  int64_t waits = 0;
  for (int64_t k = 0; k < 2000; ++k) {
    const size_t bytes = draw() % 10 == 0 ? 1 + draw() % 4096 : 1 + draw() % 700;
    const StagingRing::Piece piece = ring.take(bytes, [&](int64_t number) {
      REQUIRE_FALSE(under_way.empty());
      CHECK(under_way.front().number == number);
      under_way.erase(under_way.begin());
      ++waits;
    });
    CHECK(piece.number == k);
    CHECK(piece.bytes >= bytes);
    CHECK(piece.offset + piece.bytes <= ring.bytes());
    for (const auto& other : under_way)
      CHECK((piece.offset >= other.offset + other.bytes || other.offset >= piece.offset + piece.bytes));
    under_way.push_back(piece);
    CHECK(under_way.size() <= 8);
  }
  CHECK(waits == 2000 - static_cast<int64_t>(under_way.size()));
  StagingRing fresh(1024, 8);
  for (int k = 0; k < 8; ++k) fresh.take(128, [](int64_t) { FAIL("there is room"); });
  int64_t waited = -1;
  fresh.take(64, [&](int64_t number) { waited = number; });
  CHECK(waited == 0);
}
