#include "kernel/derive/sequence.h"

#include <doctest/doctest.h>

#include "kernel/interpret.h"

using namespace weft;
using namespace weft::kernel;

namespace {

template <class T>
HostBuffer on(std::vector<T>& v) {
  return {v.data(), static_cast<int64_t>(v.size())};
}

/// y[0] = the sum of the first n of x, by way of scratch.
Kernel sum_of_first() {
  Builder b("sum");
  const Ref x = b.param("x", float32, false), y = b.param("y", float32, true), scratch = b.local(float32, 8);
  b.store(scratch, b.load(x, b.index(0), {8}, {1}, {b.symbol("n")}), b.index(0), {1});
  b.store(y, b.reduce(Reducer::sum, b.load(scratch, b.index(0), {8}, {1}), 0), b.index(0), {});
  return b.finish();
}

/// to[k] = c · from[0] for k below m, in a loop, by way of scratch.
Kernel spread_out(double c) {
  Builder b("spread");
  const Ref to = b.param("to", float32, true), from = b.param("from", float32, false), scratch = b.local(float32, 1);
  b.store(scratch, b.mul(b.load(from, b.index(0), {}, {}), b.real(float32, c)), b.index(0), {});
  b.loop(b.index(0), b.symbol("m"), b.index(1), {}, [&](Value at, const std::vector<Value>&) {
    b.store(to, b.load(scratch, b.index(0), {}, {}), at, {});
    return std::vector<Value>{};
  });
  return b.finish();
}

}  // namespace

TEST_CASE("two kernels in sequence do what they do one after the other, with what they share between them") {
  const Ref params[] = {2, 1};  // a new parameter, and what the first one writes
  const Kernel both = in_sequence(sum_of_first(), spread_out(3), params);
  CHECK(both.params.size() == 3);
  CHECK(both.params[1].written);
  CHECK(both.symbols.size() == 2);
  CHECK(both.locals.size() == 2);
  std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8}, y{0}, to(6, -1);
  const int64_t symbols[] = {5, 4};
  std::vector<HostBuffer> buffers{on(x), on(y), on(to)};
  interpret(both, buffers, symbols, 1);
  CHECK(y[0] == 15);
  CHECK(to == std::vector<float>{45, 45, 45, 45, -1, -1});
}

TEST_CASE("three in sequence: what the second writes over is read by the first before, and by the third behind") {
  const Ref over[] = {0, 1}, again[] = {2, 0};
  const Kernel two = in_sequence(sum_of_first(), spread_out(2), over), three = in_sequence(two, spread_out(1), again);
  CHECK(three.params[0].written);
  std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8}, y{0}, to(3, -1);
  const int64_t symbols[] = {8, 2, 3};
  std::vector<HostBuffer> buffers{on(x), on(y), on(to)};
  interpret(three, buffers, symbols, 1);
  CHECK(y[0] == 36);
  CHECK(x == std::vector<float>{72, 72, 3, 4, 5, 6, 7, 8});
  CHECK(to == std::vector<float>{72, 72, 72});
}

TEST_CASE("a parameter of two dtypes is refused") {
  Builder b("int");
  b.store(b.param("n", int32, true), b.constant(int32, Number::of_int(1)), b.index(0), {});
  const Ref same[] = {1};
  CHECK_THROWS_WITH_AS(in_sequence(sum_of_first(), b.finish(), same), doctest::Contains("two dtypes"), std::exception);
}
