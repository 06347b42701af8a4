#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tools/weft/bench/profile.h"
#include "weft/compile.h"
#include "weft/ops.h"

using namespace weft;
using namespace weft::tool;

TEST_CASE("profile: what a function computes, with launches, bytes and shares of a run") {
  const array x = ones({512, 256}), w = ones({256, 64});
  eval(x, w);
  const auto f = compile(
      [](const std::vector<array>& in) {
        return std::vector<array>{tanh(matmul(in[0], in[1])), cumsum(in[0], 1), cumsum(in[0] + 1.0f, 1)};
      },
      CompileOptions{});
  f({x, w});
  const Profile p = profile(3, [&] { eval(f({x, w})); });
  double share = 0, launches = 0, flops = 0;
  for (const ProfileEntry& e : p.entries) {
    share += e.share, launches += e.launches, flops += e.flops;
    CHECK(e.ms > 0);
    CHECK(e.bytes > 0);
    CHECK(e.of_peak() == doctest::Approx(e.floor_ms / e.ms));
  }
  CHECK(share == doctest::Approx(1));
  CHECK(launches == doctest::Approx(launches < 4 ? 3 : 4));  // tanh rides on the product, or does not
  CHECK(flops >= 2.0 * 512 * 256 * 64);
  const auto cumulative = std::find_if(p.entries.begin(), p.entries.end(), [](const ProfileEntry& e) {
    return e.name.find("cumulative") != std::string::npos;
  });
  REQUIRE(cumulative != p.entries.end());
  CHECK(cumulative->name.find("f32(512,256)") != std::string::npos);
  for (size_t k = 1; k < p.entries.size(); ++k) CHECK(p.entries[k - 1].ms >= p.entries[k].ms);
}
