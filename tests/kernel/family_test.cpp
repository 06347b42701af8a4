// Kernels that differ in numbers alone: which share code, and that it computes what code of their own does.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "kernel/family/family.h"
#include "kernel/family/numbers.h"
#include "kernel/interpret.h"

using namespace weft;
using namespace weft::kernel;

namespace {

/// Sums the rows of x[rows, n] with row stride `stride` in tiles of 8 lanes, and adds `factor` times the row's number.
Kernel row_sum(int64_t n, int64_t stride, int64_t factor = 3) {
  Builder b("row_sum");
  const Ref in = b.param("x", float32, false), out = b.param("y", float32, true);
  const Value row = b.program_id(), zero = b.index(0), step = b.index(8);
  const Value total = b.loop(zero, b.index(n), step, {b.real(float32, 0)}, [&](Value i, const std::vector<Value>& c) {
    const Value x = b.load(in, b.add(b.mul(row, b.index(stride)), i), {8}, {1}, {b.sub(b.index(n), i)});
    return std::vector<Value>{b.add(c[0], b.reduce(Reducer::sum, x, 0))};
  })[0];
  b.store(out, b.add(total, b.cast(b.mul(row, b.index(factor)), float32)), row, {}, {});
  return b.finish();
}

std::vector<float> run(const Kernel& kernel, int64_t stride, const std::vector<int64_t>& symbols) {
  constexpr int64_t rows = 3;
  std::vector<float> x(static_cast<size_t>(rows * stride)), y(rows);
  std::iota(x.begin(), x.end(), 1.0f);
  const std::vector<HostBuffer> buffers{{x.data(), rows * stride}, {y.data(), rows}};
  interpret(kernel, buffers, symbols, rows);
  return y;
}

}  // namespace

TEST_CASE("the first kernel of a family is compiled as it is, the second one for all that differ where they do") {
  Families families;
  const Kernel first = row_sum(17, 20);
  CHECK(families.general(first).numbers.empty());
  const General second = families.general(row_sum(19, 24));
  CHECK(second.numbers == std::vector<int64_t>{19, 24});  // the length is there twice, and is one argument
  verify(second.kernel);
  const Digest code = digest(second.kernel);
  for (const auto& [n, stride] : {std::pair<int64_t, int64_t>{9, 9}, {23, 40}, {40, 41}}) {
    const General other = families.general(row_sum(n, stride));
    CHECK(digest(other.kernel) == code);
    CHECK(other.numbers == std::vector{n, stride});
    CHECK(run(other.kernel, stride, other.numbers) == run(row_sum(n, stride), stride, {}));
  }
  CHECK(families.general(first).numbers.empty());  // its own code is there
}

TEST_CASE("numbers that were equal in all kernels of a family stay in its code until one differs") {
  Families families;
  CHECK(families.general(row_sum(20, 20)).numbers.empty());
  const General equal = families.general(row_sum(24, 24));
  CHECK(equal.numbers == std::vector<int64_t>{24});  // length and stride
  const General apart = families.general(row_sum(24, 32, 5));
  CHECK(apart.numbers == std::vector<int64_t>{24, 32, 5});
  CHECK(run(apart.kernel, 32, apart.numbers) == run(row_sum(24, 32, 5), 32, {}));
  const General again = families.general(row_sum(24, 24));
  CHECK(digest(again.kernel) == digest(apart.kernel));
  CHECK(run(again.kernel, 24, again.numbers) == run(row_sum(24, 24), 24, {}));
}

TEST_CASE("kernels of other instructions are of other families") {
  Families families;
  CHECK(families.general(row_sum(17, 20)).numbers.empty());
  Builder b("row_product");
  const Ref in = b.param("x", float32, false), out = b.param("y", float32, true);
  b.store(out, b.load(in, b.mul(b.program_id(), b.index(19)), {}, {}, {}), b.program_id(), {}, {});
  CHECK(families.general(b.finish()).numbers.empty());
}

TEST_CASE("symbols that a kernel has stay the first ones; splats and local buffers follow the arguments") {
  const auto kernel = [](int64_t n) {
    Builder b("local");
    const Ref out = b.param("y", int64, true), local = b.local(int64, n);
    const Value index = b.add(b.arange(4), b.constant(int64, Number::of_int(n), {4}));
    b.store(local, index, b.index(0), {1}, {b.index(n)});
    b.store(out, b.load(local, b.index(0), {4}, {1}, {}), b.mul(b.symbol("at"), b.index(4)), {1}, {});
    return b.finish();
  };
  Families families;
  CHECK(families.general(kernel(5)).numbers.empty());
  const General other = families.general(kernel(7));
  verify(other.kernel);
  REQUIRE(other.numbers == std::vector<int64_t>{7});
  REQUIRE(other.kernel.symbols.size() == 2);
  CHECK(other.kernel.symbols[0] == "at");
  CHECK(other.kernel.locals[0].elements == 8);
  std::vector<int64_t> y(8, -1);
  const std::vector<HostBuffer> buffers{{y.data(), 8}};
  interpret(other.kernel, buffers, std::vector<int64_t>{1, 7}, 1);
  CHECK(y == std::vector<int64_t>{-1, -1, -1, -1, 7, 8, 9, 10});
  CHECK(families.general(kernel(9)).numbers.empty());  // its buffer has another size
}

TEST_CASE("kernels whose programs wait for each other have no numbers as arguments") {
  Kernel kernel = row_sum(17, 20);
  CHECK(takes_numbers(kernel));
  kernel.ordered = true;
  CHECK_FALSE(takes_numbers(kernel));
  Families families;
  CHECK(families.general(kernel).numbers.empty());
  Kernel other = row_sum(19, 20);
  other.ordered = true;
  CHECK(families.general(other).numbers.empty());
}
