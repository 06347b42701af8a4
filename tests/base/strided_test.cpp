// Copies between layouts, element by element, for every width.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "base/strided.h"

using namespace weft;

TEST_CASE("strided copies place every element") {
  std::mt19937_64 rng(8);
  const auto uniform = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng);
  };
  for (int trial = 0; trial < 200; ++trial) {
    const size_t bytes = size_t{1} << uniform(0, 4);
    Shape shape;
    for (int64_t k = uniform(0, 4); k > 0; --k)
      shape.emplace_back(uniform(0, 12) == 0 ? 0 : uniform(1, k <= 2 ? 70 : 3));
    // The source is a permuted array with its last axis reversed, the target row-major with a gap behind each row.
    Strides from(shape.size()), to(shape.size());
    std::vector<size_t> order(shape.size());
    for (size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::shuffle(order.begin(), order.end(), rng);
    int64_t extent = 1, spread = 1, origin = 0;
    for (size_t k : order) from[k] = extent, extent *= std::max<int64_t>(shape[k].bound(), 1);
    for (size_t k = shape.size(); k-- > 0;)
      to[k] = spread, spread = spread * std::max<int64_t>(shape[k].bound(), 1) + (k + 1 == shape.size() ? 3 : 0);
    if (!shape.empty()) {
      origin = (std::max<int64_t>(shape.back().bound(), 1) - 1) * from.back();
      from.back() = -from.back();
    }
    std::vector<uint8_t> source(static_cast<size_t>(extent) * bytes),
        target(static_cast<size_t>(spread + 8) * bytes, 0xee), expected = target;
    for (uint8_t& b : source) b = static_cast<uint8_t>(uniform(0, 255));
    copy_strided(source.data() + static_cast<size_t>(origin) * bytes, from, target.data(), to, shape, bytes);
    std::vector<int64_t> index(shape.size(), 0);
    for (int64_t n = num_elements(shape); n > 0; --n) {
      int64_t f = origin, t = 0;
      for (size_t k = 0; k < index.size(); ++k) f += index[k] * from[k], t += index[k] * to[k];
      std::memcpy(expected.data() + static_cast<size_t>(t) * bytes, source.data() + static_cast<size_t>(f) * bytes,
                  bytes);
      for (size_t k = index.size(); k-- > 0;) {
        if (++index[k] < shape[k].bound()) break;
        index[k] = 0;
      }
    }
    CHECK(target == expected);
  }
}
