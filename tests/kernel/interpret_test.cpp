#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "kernel/interpret.h"
#include "kernel/random_kernel.h"

using namespace weft;
using namespace weft::kernel;

namespace {

template <class T>
HostBuffer on(std::vector<T>& v) {
  return {v.data(), static_cast<int64_t>(v.size())};
}

void run(const Kernel& k, std::vector<HostBuffer> buffers, std::vector<int64_t> symbols = {}, int64_t grid = 1) {
  interpret(k, buffers, symbols, grid);
}

std::string fault(const Kernel& k, std::vector<HostBuffer> buffers, std::vector<int64_t> symbols = {},
                  int64_t grid = 1) {
  try {
    run(k, std::move(buffers), std::move(symbols), grid);
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "none";
}

bool says(const std::string& text, const char* part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

Kernel vadd(bool limited) {
  Builder b("vadd");
  const Ref x = b.param("x", float32, false), y = b.param("y", float32, false), z = b.param("z", float32, true);
  const Value offset = b.mul(b.program_id(), b.index(8));
  std::vector<Value> limits;
  if (limited) limits = {b.sub(b.symbol("n"), offset)};
  const Value left = b.load(x, offset, {8}, {1}, limits), right = b.load(y, offset, {8}, {1}, limits);
  b.store(z, b.add(left, right), offset, {1}, limits);
  return b.finish();
}

// The softmax of a row of any length in tiles of 8 lanes: maximum, sum, result.
Kernel row_softmax() {
  Builder b("row_softmax");
  const Ref in = b.param("x", float32, false), out = b.param("y", float32, true);
  const Value n = b.symbol("n"), row = b.mul(b.program_id(), n), zero = b.index(0), step = b.index(8);
  auto tile = [&](Value i) { return b.load(in, b.add(row, i), {8}, {1}, {b.sub(n, i)}, Number::of_real(-INFINITY)); };
  const Value lowest = b.real(float32, -INFINITY), nothing = b.real(float32, 0);
  const Value top = b.loop(zero, n, step, {lowest}, [&](Value i, const std::vector<Value>& c) {
    return std::vector<Value>{b.max(c[0], b.reduce(Reducer::max, tile(i), 0))};
  })[0];
  auto shifted = [&](Value i) { return b.scalar(ScalarOp::exp, {b.sub(tile(i), top)}); };
  const Value total = b.loop(zero, n, step, {nothing}, [&](Value i, const std::vector<Value>& c) {
    return std::vector<Value>{b.add(c[0], b.reduce(Reducer::sum, shifted(i), 0))};
  })[0];
  b.loop(zero, n, step, {}, [&](Value i, const std::vector<Value>&) {
    b.store(out, b.scalar(ScalarOp::div, {shifted(i), total}), b.add(row, i), {1}, {b.sub(n, i)});
    return std::vector<Value>{};
  });
  return b.finish();
}

// out[program · stride] = program; the programs meet where the stride is 0.
Kernel writer(int64_t stride) {
  Builder b("writer");
  const Ref out = b.param("y", int64, true);
  const Value p = b.program_id();
  b.store(out, p, b.mul(p, b.index(stride)), {});
  return b.finish();
}

}  // namespace

TEST_CASE("an addition stops at the limit") {
  std::vector<float> x(19), y(19, 0.5f), z(24, -1);
  std::iota(x.begin(), x.end(), 0.f);
  run(vadd(true), {on(x), on(y), on(z)}, {19}, 3);
  for (size_t k = 0; k < 24; ++k) CHECK(z[k] == (k < 19 ? static_cast<float>(k) + 0.5f : -1));
}

TEST_CASE("a row softmax with loops agrees with its definition") {
  const size_t n = 21;
  std::vector<float> x(2 * n), y(2 * n);
  for (size_t k = 0; k < x.size(); ++k) x[k] = std::sin(static_cast<float>(k)) * 5;
  run(row_softmax(), {on(x), on(y)}, {static_cast<int64_t>(n)}, 2);
  for (size_t r = 0; r < 2; ++r) {
    double total = 0;
    for (size_t k = 0; k < n; ++k) total += std::exp(static_cast<double>(x[r * n + k]));
    for (size_t k = 0; k < n; ++k)
      CHECK(y[r * n + k] == doctest::Approx(std::exp(static_cast<double>(x[r * n + k])) / total).epsilon(1e-6));
  }
}

TEST_CASE("dot adds products with one rounding each, in ascending order") {
  Builder b("dot");
  const Ref a = b.param("a", float32, false), w = b.param("w", float32, false), out = b.param("c", float32, true);
  const Value zero = b.index(0), left = b.load(a, zero, {2, 3}, {3, 1}), right = b.load(w, zero, {3, 4}, {4, 1});
  b.store(out, b.dot(left, right, b.real(float32, 0.25, {2, 4})), zero, {4, 1});
  std::vector<float> x(6), y(12), z(8);
  for (size_t k = 0; k < 6; ++k) x[k] = 1.f / static_cast<float>(k + 1);
  for (size_t k = 0; k < 12; ++k) y[k] = 1.f / static_cast<float>(3 * k + 7);
  run(b.finish(), {on(x), on(y), on(z)});
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 4; ++j) {
      float c = 0.25f;
      for (size_t k = 0; k < 3; ++k) c = std::fma(x[i * 3 + k], y[k * 4 + j], c);
      CHECK(z[i * 4 + j] == c);
    }
}

TEST_CASE("a reduction combines the upper half onto the lower") {
  Builder b("tree");
  const Ref in = b.param("x", float32, false), out = b.param("y", float32, true);
  const Value zero = b.index(0), x = b.load(in, zero, {2, 4}, {4, 1});
  b.store(out, b.reduce(Reducer::sum, x, 1), zero, {1});
  b.store(out, b.reduce(Reducer::sum, x, 0), b.index(2), {1});
  std::vector<float> v{1e8f, 1, -1e8f, 1, 3, 4, 5, 6}, y(6);
  run(b.finish(), {on(v), on(y)});
  CHECK(y[0] == (1e8f + -1e8f) + (1.f + 1.f));  // in order it would be 1
  CHECK(y[1] == 18);
  CHECK(y[2] == 1e8f + 3);
  CHECK(y[5] == 7);
}

TEST_CASE("bfloat16 iterations after each operation, and a sum once") {
  Builder b("narrow");
  const Ref in = b.param("x", bfloat16, false), out = b.param("y", bfloat16, true);
  const Value zero = b.index(0), x = b.load(in, zero, {4}, {1});
  b.store(out, b.mul(b.add(x, b.real(bfloat16, 256)), b.real(bfloat16, 1)), zero, {1});
  b.store(out, b.reduce(Reducer::sum, x, 0), b.index(4), {});
  std::vector<uint16_t> v{0x3f80, 0x4380, 0x3f80, 0x3f80}, y(5);  // 1, 256, 1, 1
  run(b.finish(), {on(v), on(y)});
  CHECK(y[0] == 0x4380);  // 257 rounds to even: 256
  CHECK(y[4] == 0x4382);  // 259 rounds up to 260 at the end; rounded as it goes it would be 256 or 258
}

TEST_CASE("gather and scatter, masks and order") {
  Builder b("indexed");
  const Ref in = b.param("x", int32, false), at = b.param("i", int64, false), out = b.param("y", int32, true);
  const Value index = b.load(at, b.index(0), {4}, {1}), inside = b.scalar(ScalarOp::le, {b.index(0), index});
  b.scatter(out, b.gather(in, index, inside, Number::of_int(-5)), b.arange(4));
  const Value meeting = b.scalar(ScalarOp::floordiv, {b.arange(4), b.index(2)});
  b.scatter(out, b.cast(b.arange(4), int32), b.add(meeting, b.index(4)));
  b.atomic_add(out, b.cast(b.arange(4), int32), b.add(meeting, b.index(6)));
  const Kernel k = b.finish();
  std::vector<int32_t> x{10, 20, 30}, y(8, 100);
  std::vector<int64_t> i{2, -1, 0, 1};
  run(k, {on(x), on(i), on(y)});
  CHECK(y == std::vector<int32_t>{30, -5, 10, 20, 1, 3, 101, 105});  // the last lane wins; sums add all
  i[3] = 3;
  const std::string said = fault(k, {on(x), on(i), on(y)});
  CHECK(says(said, "kernel indexed"));
  CHECK(says(said, "program 0"));
  CHECK(says(said, "gather p0"));
  CHECK(says(said, "element 3 is outside the buffer's 3"));
}

TEST_CASE("a condition runs its body or not; scratch is each program's own") {
  Builder b("odd");
  const Ref out = b.param("y", int64, true), local = b.local(int64, 4);
  const Value p = b.program_id(), zero = b.index(0),
              odd = b.scalar(ScalarOp::eq, {b.scalar(ScalarOp::mod, {p, b.index(2)}), b.index(1)});
  b.store(local, b.add(b.arange(4), p), zero, {1});
  b.when(odd, [&] {
    const Value reversed = b.load(local, b.index(3), {4}, {-1});
    b.store(out, reversed, b.mul(p, b.index(4)), {1});
  });
  std::vector<int64_t> y(12, -1);
  run(b.finish(), {on(y)}, {}, 3);
  CHECK(y == std::vector<int64_t>{-1, -1, -1, -1, 4, 3, 2, 1, -1, -1, -1, -1});
}

TEST_CASE("a condition with values chooses lane by lane, and its block runs where a lane needs it") {
  Builder b("choice");
  const Ref in = b.param("x", int32, false), out = b.param("y", int32, true), other = b.param("z", float32, true);
  const Value start = b.mul(b.program_id(), b.index(4)), x = b.load(in, start, {4}, {1}), real = b.cast(x, float32);
  const auto v = b.when(b.lt(x, b.constant(int32, {})), {x, real}, [&] {
    const Value far = b.lt(x, b.constant(int32, Number::of_int(-10)));
    const Value square = b.mul(x, x);
    return std::vector<Value>{b.when(far, {square}, [&] { return std::vector<Value>{b.sub(square, x)}; })[0],
                              b.mul(real, b.real(float32, 0.5))};
  });
  b.store(out, v[0], start, {1});
  b.store(other, v[1], start, {1});
  std::vector<int32_t> values{1, -2, 3, -20, 5, 6, 7, 8}, y(8);
  std::vector<float> z(8);
  run(b.finish(), {on(values), on(y), on(z)}, {}, 2);
  CHECK(y == std::vector<int32_t>{1, 4, 3, 420, 5, 6, 7, 8});
  CHECK(z == std::vector<float>{1, -1, 3, -10, 5, 6, 7, 8});
}

TEST_CASE("tiles with two axes broadcast, transpose and stop at both limits") {
  Builder b("grid");
  const Ref in = b.param("x", float32, false), out = b.param("y", float32, true);
  const Value zero = b.index(0), rows = b.symbol("rows"), columns = b.symbol("columns");
  const Value x = b.load(in, zero, {4, 2}, {2, 1}, {rows, columns}, Number::of_real(9));
  const Value column = b.broadcast(b.reshape(b.cast(b.arange(4), float32), {4, 1}), {4, 2});
  const Value line = b.broadcast(b.mul(b.cast(b.arange(2), float32), b.real(float32, 10)), {4, 2});
  b.store(out, b.transpose(b.add(b.add(x, column), line)), zero, {4, 1}, {columns, no_value});
  std::vector<float> v{100, 200, 300}, y(8, -1);  // three elements: rows 0 and 1 of the first column need two
  run(b.finish(), {on(v), on(y)}, {2, 1});
  CHECK(y == std::vector<float>{100, 301, 11, 12, -1, -1, -1, -1});
}

TEST_CASE("bitcasts and integer casts") {
  Builder b("bits");
  const Ref in = b.param("x", float32, false), out = b.param("y", uint32, true), small = b.param("z", int8, true);
  const Value x = b.load(in, b.index(0), {3}, {1});
  b.store(out, b.bitcast(x, uint32), b.index(0), {1});
  b.store(small, b.cast(x, int8), b.index(0), {1});
  std::vector<float> v{1.f, -0.f, 1e9f};
  std::vector<uint32_t> y(3);
  std::vector<int8_t> z(3);
  run(b.finish(), {on(v), on(y), on(z)});
  CHECK(y == std::vector<uint32_t>{0x3f800000, 0x80000000, 0x4e6e6b28});
  CHECK(z == std::vector<int8_t>{1, 0, 127});
}

TEST_CASE("accesses outside a buffer are errors, in both directions") {
  std::vector<float> x(19), y(19), z(19);
  const std::string said = fault(vadd(false), {on(x), on(y), on(z)}, {}, 3);
  CHECK(says(said, "kernel vadd"));
  CHECK(says(said, "program 2"));
  CHECK(says(said, "load p0"));
  CHECK(says(said, "element 19 is outside the buffer's 19 elements"));
  z.resize(18);
  CHECK(says(fault(vadd(true), {on(x), on(y), on(z)}, {19}, 3), "store p2"));

  Builder b("before");
  const Ref out = b.param("y", float32, true);
  b.store(out, b.real(float32, 1), b.sub(b.program_id(), b.index(1)), {});
  CHECK(says(fault(b.finish(), {on(z)}), "element -1 is outside"));
  Builder c("scratch");
  const Ref kept = c.param("y", float32, true), local = c.local(float32, 4);
  c.store(kept, c.load(local, c.index(4), {}, {}), c.index(0), {});
  CHECK(says(fault(c.finish(), {on(z)}), "element 4 is outside the buffer's 4"));
}

TEST_CASE("races between programs are errors, whatever their order") {
  std::vector<int64_t> y(4);
  CHECK(fault(writer(1), {on(y)}, {}, 4) == "none");
  const std::string said = fault(writer(0), {on(y)}, {}, 2);
  CHECK(says(said, "program 1"));
  CHECK(says(said, "race: writes element 0, which another program wrote"));

  for (int64_t by : {1, -1}) {  // each program writes its own element and reads a neighbour's
    Builder b("neighbours");
    const Ref out = b.param("y", int64, true);
    const Value p = b.program_id(), mine = b.add(p, b.index(1)), other = b.add(mine, b.index(by));
    b.store(out, b.load(out, other, {}, {}), mine, {});
    const std::string neighbours = fault(b.finish(), {on(y)}, {}, 2);
    CHECK(says(neighbours, by < 0 ? "reads element 1, which another program wrote"
                                  : "writes element 2, which another program read"));
  }
  Builder own("own");
  const Ref data = own.param("y", int64, true);
  const Value p = own.program_id();
  own.store(data, own.add(own.load(data, p, {}, {}), own.index(1)), p, {});
  CHECK(fault(own.finish(), {on(y)}, {}, 4) == "none");

  auto sums = [&](bool read) {
    Builder b("sums");
    const Ref out = b.param("y", int64, true);
    b.atomic_add(out, b.program_id(), b.index(0));
    if (read) b.store(out, b.load(out, b.index(0), {}, {}), b.add(b.program_id(), b.index(1)), {});
    return b.finish();
  };
  y.assign(4, 0);
  CHECK(fault(sums(false), {on(y)}, {}, 4) == "none");
  CHECK(y[0] == 6);
  CHECK(says(fault(sums(true), {on(y)}, {}, 3), "race: adds to element 0, which another program read"));

  Builder copy("copy");
  const Ref from = copy.param("x", int64, false), to = copy.param("y", int64, true);
  copy.store(to, copy.load(from, copy.index(0), {}, {}), copy.index(1), {});
  CHECK(says(fault(copy.finish(), {on(y), on(y)}), "overlap"));
}

TEST_CASE("uninitialised scratch reaches the result as poison") {
  Builder b("poisoned");
  const Ref real = b.param("y", float32, true), whole = b.param("z", int32, true), f = b.local(float32, 2),
            i = b.local(int32, 2);
  const Value p = b.program_id(), zero = b.index(0);
  b.store(real, b.add(b.load(f, zero, {}, {}), b.real(float32, 1)), p, {});
  b.store(whole, b.load(i, zero, {}, {}), p, {});
  b.store(f, b.real(float32, 0, {2}), zero, {1});  // does not reach the next program
  std::vector<float> y(2);
  std::vector<int32_t> z(2);
  run(b.finish(), {on(y), on(z)}, {}, 2);
  CHECK(std::isnan(y[0]));
  CHECK(std::isnan(y[1]));
  CHECK(z[0] > 1000000);
  CHECK(z[0] % 2 == 1);
}

TEST_CASE("calls that do not fit the kernel and steps of zero are errors") {
  std::vector<float> x(19);
  CHECK(says(fault(vadd(true), {on(x)}, {19}), "takes 3 buffers, not 1"));
  Builder b("steps");
  const Ref out = b.param("y", int64, true);
  const Value zero = b.index(0), n = b.symbol("n"),
              total = b.loop(zero, b.index(10), n, {zero}, [&](Value i, const std::vector<Value>&c) {
                return std::vector<Value>{b.add(c[0], i)};
              })[0];
  b.store(out, total, zero, {});
  const Kernel k = b.finish();
  std::vector<int64_t> y(1);
  run(k, {on(y)}, {4});
  CHECK(y[0] == 0 + 4 + 8);
  CHECK(says(fault(k, {on(y)}, {0}), "the step is 0"));
  CHECK(says(fault(k, {on(y)}), "takes 1 symbols, not 0"));
}

TEST_CASE("random kernels are valid, run clean and give the same result each time") {
  size_t stored = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    test::RandomCase a = test::random_case(seed), b = test::random_case(seed);
    const test::RandomCase before = a;
    CHECK(digest(a.kernel) == digest(b.kernel));
    CHECK(test::difference(a, b) == "");
    CAPTURE(print(a.kernel));
    REQUIRE_NOTHROW(run(a.kernel, test::host_buffers(a), a.symbols, a.grid));
    run(canonical(b.kernel), test::host_buffers(b), b.symbols, b.grid);
    CHECK(test::difference(a, b) == "");
    stored += test::difference(a, before) != "";
  }
  CHECK(stored > 150);  // most kernels change their outputs
}
