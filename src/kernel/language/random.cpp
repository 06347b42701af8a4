// Random words of arrays, in parts.
#include <array>

#include <fmt/format.h>

#include "kernel/language/trace.h"
#include "weft/kernel.h"

namespace weft::k::detail {

void check_range(int64_t low, int64_t high, Line at) {
  if (low < high && high - low <= INT32_MAX) return;
  Trace::current("randint", at)
      .refuse(at, fmt::format("randint: there are no integers from {} to {}, or too many: give low < high, 2^31 - 1 "
                              "apart at most",
                              low, high));
}

/// The layout that JAX and MLX share: of N words, with h = ceil(N / 2), counters (i, i + h) give words i and i + h;
/// where N is odd, the last i has no partner, and its second counter is 0.
Any random_words(const Any& key0, const Any& key1, const Any& position, int64_t words, Line at) {
  Trace& t = Trace::current("random_bits", at);
  if (words < 1 || words > int64_t{1} << 32)
    t.refuse(at, fmt::format("random_bits: an array of {} words: give 1 to 2^32", words));
  const auto number = [&](int64_t n) { return constant(int64, n, {}, at); };
  const auto call = [&](std::string_view op, const Any& a, const Any& b) { return apply(op, std::array{a, b}, at); };
  const auto select = [&](const Any& c, const Any& a, const Any& b) {
    return apply("select", std::array{c, a, b}, at);
  };
  const int64_t half = (words + 1) / 2;
  const Any first = call("lt", position, number(half));
  const Any low = select(first, position, call("sub", position, number(half)));
  Any high = call("add", low, number(half));
  if (words % 2 != 0) high = select(call("eq", high, number(words)), number(0), high);
  const std::array args{key0, key1, cast(low, uint32, at), cast(high, uint32, at)};
  return select(first, apply("threefry0", args, at), apply("threefry1", args, at));
}

}  // namespace weft::k::detail
