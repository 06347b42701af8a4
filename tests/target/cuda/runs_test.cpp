// Runs in computed indices: what is claimed of a chunk's elements holds for all of them.
#include <doctest/doctest.h>

#include <limits>

#include "graph/instances.h"
#include "kernel/interpret.h"
#include "kernel/tile.h"
#include "target/cuda/codegen/runs.h"

using namespace weft;
using namespace weft::kernel;
using target::cuda::Runs;

namespace {

constexpr int64_t width = 64, table_size = 128;

/// Appends a random index or condition from earlier ones, or what a table of 128 indices holds at one.
Value random_value(Builder& b, graph::testing::Random& r, Ref table, const std::vector<Value>& values) {
  const int64_t numbers[] = {1, 2, 3, 4, 7, 8, 16, 24, 31, 32, 100, 128};
  const auto any = [&] { return values[static_cast<size_t>(r.below(static_cast<int64_t>(values.size())))]; };
  const auto number = [&] { return b.index(numbers[r.below(std::size(numbers))]); };
  switch (r.below(9)) {
    case 0: return b.add(any(), number());
    case 1: return b.add(any(), any());
    case 2: return b.sub(any(), number());
    case 3: return b.mul(any(), number());
    case 4: return b.scalar(ScalarOp::floordiv, {any(), number()});
    case 5: return b.scalar(ScalarOp::mod, {any(), number()});
    case 6: return b.select(b.lt(any(), number()), any(), any());
    case 7: return b.gather(table, b.scalar(ScalarOp::mod, {any(), b.index(table_size)}), b.lt(any(), number()));
    default: return b.cast(b.lt(number(), any()), int64);
  }
}

/// Checks the claims about one stored tile against its values.
void check_claims(const Runs& runs, Value v, int64_t length, const std::vector<int64_t>& got) {
  for (int64_t first = 0; first < width; first += length) {
    const int64_t start = got[static_cast<size_t>(first)];
    if (runs.consecutive(v)) CHECK(start % length == 0);
    for (int64_t k = 0; k < length; ++k) {
      const int64_t value = got[static_cast<size_t>(first + k)];
      if (runs.consecutive(v)) CHECK(value == start + k);
      if (runs.uniform(v)) CHECK(value == start);
    }
  }
}

}  // namespace

TEST_CASE("claims about the chunks of random indices hold for their values") {
  graph::testing::Random r(21);
  int claims = 0;
  for (int repeat = 0; repeat < 300; ++repeat) {
    Builder b("indices");
    const Ref out = b.param("p0", int64, true), table = b.param("p1", int64, false);
    const auto of_program = [&](int64_t factor) {
      return b.broadcast(b.mul(b.program_id(), b.index(factor)), {width});
    };
    std::vector<Value> values{b.add(b.arange(width), of_program(width)), of_program(8)};
    while (values.size() < 6) {
      const Value v = random_value(b, r, table, values);
      if (b.type(v).rank() == 1 && b.type(v).dtype == int64) values.push_back(v);
    }
    for (size_t k = 0; k < values.size(); ++k)
      b.store(out, values[k],
              b.add(b.mul(b.program_id(), b.index(width * 6)), b.index(static_cast<int64_t>(k) * width)), {1});
    const Kernel kernel = b.finish();
    std::vector<int64_t> results(static_cast<size_t>(3 * 6 * width)), entries(table_size);
    for (int64_t& e : entries) e = r.below(1000);
    const HostBuffer buffers[] = {{results.data(), static_cast<int64_t>(results.size())}, {entries.data(), table_size}};
    interpret(kernel, buffers, {}, 3);
    for (const int64_t length : {2, 4, 8}) {
      const Runs runs(kernel, length);
      for (size_t k = 0; k < values.size(); ++k) {
        claims += runs.consecutive(values[k]) || runs.uniform(values[k]) ? 1 : 0;
        for (size_t program = 0; program < 3; ++program) {
          const auto at = results.begin() + static_cast<std::ptrdiff_t>((program * 6 + k) * width);
          check_claims(runs, values[k], length, std::vector<int64_t>(at, at + width));
        }
      }
    }
  }
  CHECK(claims > 1000);
}

TEST_CASE("positions in parts of rows come in runs, and so do borders between parts") {
  Builder b("parts");
  const Ref out = b.param("p0", float32, true), in = b.param("p1", float32, false);
  const Value lane = b.arange(width), part = b.index(32);
  const Value at =
      b.add(b.mul(b.scalar(ScalarOp::floordiv, {lane, part}), b.index(64)), b.scalar(ScalarOp::mod, {lane, part}));
  const Value first = b.lt(lane, part), second = b.lt(b.index(31), lane), odd = b.lt(lane, b.index(33));
  b.scatter(out, b.gather(in, at, first), at, second);
  const Kernel kernel = b.finish();
  const Runs runs(kernel, 8);
  CHECK(runs.consecutive(at));
  CHECK(runs.uniform(first));
  CHECK(runs.uniform(second));
  CHECK_FALSE(runs.uniform(odd));
}

TEST_CASE("a quotient keeps a divisor where the other is a power of two alone") {
  Builder b("quotients");
  const Ref out = b.param("p0", int64, true);
  const Value eights = b.broadcast(b.mul(b.program_id(), b.index(32)), {width}), lane = b.arange(width);
  const auto plus_quotient = [&](int64_t by) {
    return b.add(lane, b.scalar(ScalarOp::floordiv, {eights, b.broadcast(b.index(by), {width})}));
  };
  const Value third = plus_quotient(3), twelfth = plus_quotient(12), fourth = plus_quotient(4);
  for (const Value v : {third, twelfth, fourth}) b.store(out, v, b.index(0), {1});
  const Kernel kernel = b.finish();
  const Runs runs(kernel, 8);
  CHECK_FALSE(runs.consecutive(third));  // 32 / 3 = 10
  CHECK_FALSE(runs.consecutive(twelfth));
  CHECK(runs.consecutive(fourth));
}

TEST_CASE("the least and the greatest integers have divisors too") {
  Builder b("limits");
  const Ref out = b.param("p0", int64, true);
  const Value least = b.broadcast(b.index(std::numeric_limits<int64_t>::min()), {width});
  const Value greatest = b.broadcast(b.index(std::numeric_limits<int64_t>::max()), {width});
  const Value below = b.lt(greatest, b.arange(width));  // the border behind the greatest is a multiple of all runs
  const Value sum = b.add(b.arange(width), least);
  b.store(out, b.add(sum, b.cast(below, int64)), b.index(0), {1});
  const Kernel kernel = b.finish();
  const Runs runs(kernel, 8);
  CHECK(runs.consecutive(sum));
  CHECK(runs.uniform(below));
}
