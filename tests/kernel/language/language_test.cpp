// Kernels of the language, traced and run in the interpreter, against plain loops.
#include "weft/kernel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernel/language/kernels.h"
#include "kernel/language/run.h"

namespace {

namespace k = weft::k;
using weft::bfloat16_t;

std::vector<float> normal(int64_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> numbers;
  std::vector<float> out(static_cast<size_t>(n));
  for (float& v : out) v = numbers(engine);
  return out;
}

k::Param in(std::vector<int64_t> dims, weft::Dtype t = weft::float32) { return {k::Use::in, t, std::move(dims)}; }
k::Param out(std::vector<int64_t> dims, weft::Dtype t = weft::float32) { return {k::Use::out, t, std::move(dims)}; }

template <class T, int R>
k::In<T, R> from(const k::AnyRef& ref) {
  return k::In<T, R>(ref);
}
template <class T, int R>
k::Out<T, R> to(const k::AnyRef& ref) {
  return k::Out<T, R>(ref);
}

using test_kernels::run;

/// Returns the message of what `f` throws; "" where it throws nothing.
template <class F>
std::string message(const F& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

/// Traces a kernel of one program with one float array [4,8] in and one out.
template <class F>
k::Program small(const F& body) {
  return k::trace("small", {in({4, 8}), out({4, 8})}, {1},
                  [&](std::span<const k::AnyRef> refs) { body(k::In<float, 2>(refs[0]), k::Out<float, 2>(refs[1])); });
}

TEST_CASE("a vector is added by blocks that do not divide it") {
  const auto program =
      k::trace("add", {in({1000}), in({1000}), out({1000})}, {k::cdiv(1000, 96)}, [](std::span<const k::AnyRef> r) {
        test_kernels::add(k::In<float, 1>(r[0]), k::In<float, 1>(r[1]), k::Out<float, 1>(r[2]), 96);
      });
  auto x = normal(1000, 1), y = normal(1000, 2);
  std::vector<float> z(1000);
  run(program, x, y, z);
  for (size_t i = 0; i < z.size(); ++i) CHECK(z[i] == x[i] + y[i]);
  CHECK(program.programs() == 11);
}

TEST_CASE("swizzle2d gives every tile to one program, band by band") {
  for (const auto& [m, n, group] : {std::array<int64_t, 3>{7, 5, 3}, {4, 3, 2}, {2, 6, 8}}) {
    const auto program = k::trace("order", {out({m * n}, weft::int64)}, {m, n}, [&](std::span<const k::AnyRef> r) {
      const auto [i, j] = k::swizzle2d(k::program_id(0), k::program_id(1), m, n, group);
      const k::Out<int64_t, 1> order = to<int64_t, 1>(r[0]);
      order(k::program_id(0) * n + k::program_id(1)) = i * n + j;
    });
    std::vector<int64_t> tiles(static_cast<size_t>(m * n)), wanted;
    run(program, tiles);
    for (int64_t first = 0; first < m; first += group)
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = first; i < std::min(m, first + group); ++i) wanted.push_back(i * n + j);
    CHECK(tiles == wanted);
  }
  CHECK(message([] {
          small([](const auto&, const auto&) { k::swizzle2d(k::program_id(0), 0, 4, 4, 0); });
        }).find("swizzle2d: i64 and i64 of a grid of 4 x 4, in bands of 0: two int64") != std::string::npos);
}

TEST_CASE("softmax of rows in a block that is longer than they are") {
  const auto program = k::trace("softmax", {in({7, 77}), out({7, 77})}, {7}, [](std::span<const k::AnyRef> r) {
    test_kernels::softmax(k::In<float, 2>(r[0]), k::Out<float, 2>(r[1]), 80);
  });
  auto x = normal(7 * 77, 3);
  std::vector<float> y(x.size());
  run(program, x, y);
  for (size_t i = 0; i < 7; ++i) {
    double sum = 0;
    for (size_t j = 0; j < 77; ++j) sum += std::exp(static_cast<double>(x[i * 77 + j]));
    for (size_t j = 0; j < 77; ++j)
      CHECK(y[i * 77 + j] == doctest::Approx(std::exp(static_cast<double>(x[i * 77 + j])) / sum).epsilon(1e-6));
  }
}

TEST_CASE("a matmul by tiles that divide nothing, with bias and relu") {
  const int64_t m = 100, n = 70, depth = 90;
  const auto program =
      k::trace("matmul", {in({m, depth}), in({depth, n}), in({n}), out({m, n})}, {k::cdiv(m, 48), k::cdiv(n, 40)},
               [](std::span<const k::AnyRef> r) {
                 test_kernels::matmul_bias_relu(k::In<float, 2>(r[0]), k::In<float, 2>(r[1]), k::In<float, 1>(r[2]),
                                                k::Out<float, 2>(r[3]), {48, 40, 24});
               });
  auto a = normal(m * depth, 4), b = normal(depth * n, 5), bias = normal(n, 6);
  std::vector<float> c(static_cast<size_t>(m * n));
  run(program, a, b, bias, c);
  double worst = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = bias[static_cast<size_t>(j)];
      for (int64_t d = 0; d < depth; ++d)
        sum += static_cast<double>(a[static_cast<size_t>(i * depth + d)]) * b[static_cast<size_t>(d * n + j)];
      worst = std::max(worst, std::abs(std::max(sum, 0.0) - static_cast<double>(c[static_cast<size_t>(i * n + j)])));
    }
  CHECK(worst < 2e-5);
}

TEST_CASE("attention by online softmax, causal or not") {
  const int64_t length = 75, d = 16;
  for (const bool causal : {false, true}) {
    const auto program =
        k::trace("attention", {in({length, d}), in({length, d}), in({length, d}), out({length, d}), out({length})},
                 {k::cdiv(length, 32)}, [&](std::span<const k::AnyRef> r) {
                   test_kernels::attention(k::In<float, 2>(r[0]), k::In<float, 2>(r[1]), k::In<float, 2>(r[2]),
                                           k::Out<float, 2>(r[3]), k::Out<float, 1>(r[4]), 32, 24, causal);
                 });
    auto q = normal(length * d, 7), keys = normal(length * d, 8), values = normal(length * d, 9);
    std::vector<float> o(q.size()), lse(static_cast<size_t>(length));
    run(program, q, keys, values, o, lse);
    const auto at = [&](const std::vector<float>& v, int64_t i, int64_t j) {
      return static_cast<double>(v[static_cast<size_t>(i * d + j)]);
    };
    double worst = 0;
    for (int64_t i = 0; i < length; ++i) {
      std::vector<double> weights;
      double sum = 0;
      for (int64_t j = 0; j < (causal ? i + 1 : length); ++j) {
        double s = 0;
        for (int64_t e = 0; e < d; ++e) s += at(q, i, e) * at(keys, j, e);
        weights.push_back(std::exp(s / std::sqrt(static_cast<double>(d))));
        sum += weights.back();
      }
      for (int64_t e = 0; e < d; ++e) {
        double result = 0;
        for (size_t j = 0; j < weights.size(); ++j) result += weights[j] / sum * at(values, static_cast<int64_t>(j), e);
        worst = std::max(worst, std::abs(result - at(o, i, e)));
      }
      worst = std::max(worst, std::abs(std::log2(sum) - static_cast<double>(lse[static_cast<size_t>(i)])));
    }
    CHECK(worst < 1e-5);
  }
}

TEST_CASE("tiles move: permute, slice, flip, cat, join, split, interleave, take") {
  const auto program = k::trace(
      "move", {in({4, 6}), out({6, 4}), out({4, 6}), out({4, 12}), out({24})}, {1}, [](std::span<const k::AnyRef> r) {
        const k::In<float, 2> x(r[0]);
        const auto v = x(k::all, k::all).load();
        to<float, 2>(r[1])(k::all, k::all) = k::permute(v, {1, 0});
        to<float, 2>(r[2])(k::all, k::all) =
            k::cat(k::flip(k::slice(v, {0, 0}, {4, 3}), 1), k::slice(v, {0, 1}, {4, 3}, {1, 2}), 1);
        to<float, 2>(r[3])(k::all, k::all) = k::interleave(v, v + 1);
        const auto halves = k::split(k::reshape(v, {12, 2}));
        to<float, 1>(r[4])(k::ds(0, 24)) = k::cat(halves.first, k::take(halves.second, 11 - k::arange(12), 0));
      });
  auto x = normal(24, 10);
  std::vector<float> turned(24), parts(24), both(48), halves(24);
  run(program, x, turned, parts, both, halves);
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 6; ++j) {
      CHECK(turned[j * 4 + i] == x[i * 6 + j]);
      CHECK(parts[i * 6 + j] == x[i * 6 + (j < 3 ? 2 - j : 1 + 2 * (j - 3))]);
      CHECK(both[i * 12 + 2 * j] == x[i * 6 + j]);
      CHECK(both[i * 12 + 2 * j + 1] == x[i * 6 + j] + 1);
    }
  for (size_t i = 0; i < 12; ++i) {
    CHECK(halves[i] == x[2 * i]);
    CHECK(halves[12 + i] == x[2 * (11 - i) + 1]);
  }
}

TEST_CASE("reductions and scans over any axis, by the table's reducers and by a function") {
  const auto program = k::trace(
      "reduce",
      {in({3, 5, 7}), out({3, 7}), out({5, 7}), out({3, 5}, weft::uint32), out({3, 5, 7}), out({3, 5}), out({})}, {1},
      [](std::span<const k::AnyRef> r) {
        const auto v = from<float, 3>(r[0])(k::all, k::all, k::all).load();
        to<float, 2>(r[1])(k::all, k::all) = k::sum(v, 1);
        to<float, 2>(r[2])(k::all, k::all) = k::max(v, 0);
        to<uint32_t, 2>(r[3])(k::all, k::all) = k::argmax(v, 2);
        to<float, 3>(r[4])(k::all, k::all, k::all) = k::cumsum(v, 1, true);
        to<float, 2>(r[5])(k::all, k::all) =
            k::reduce(v, 2, [](k::Tile<float, 0> a, k::Tile<float, 0> b) { return a * b; });
        to<float, 0>(r[6])() = k::sum(v);
      });
  auto x = normal(105, 11);
  std::vector<float> sums(21), most(35), scanned(105), products(15), total(1);
  std::vector<uint32_t> where(15);
  run(program, x, sums, most, where, scanned, products, total);
  const auto at = [&](size_t a, size_t b, size_t c) { return x[(a * 5 + b) * 7 + c]; };
  double all = 0;
  for (const float v : x) all += v;
  CHECK(total[0] == doctest::Approx(all).epsilon(1e-5));
  for (size_t a = 0; a < 3; ++a)
    for (size_t c = 0; c < 7; ++c) {
      double sum = 0;
      for (size_t b = 5; b-- > 0;) {
        sum += at(a, b, c);
        CHECK(scanned[(a * 5 + b) * 7 + c] == doctest::Approx(sum).epsilon(1e-5));
      }
      CHECK(sums[a * 7 + c] == doctest::Approx(sum).epsilon(1e-5));
    }
  for (size_t b = 0; b < 5; ++b)
    for (size_t c = 0; c < 7; ++c) CHECK(most[b * 7 + c] == std::max({at(0, b, c), at(1, b, c), at(2, b, c)}));
  for (size_t i = 0; i < 15; ++i) {
    const auto row = x.begin() + static_cast<std::ptrdiff_t>(i * 7);
    CHECK(where[i] == static_cast<uint32_t>(std::max_element(row, row + 7) - row));
    double product = 1;
    for (size_t c = 0; c < 7; ++c) product *= static_cast<double>(row[static_cast<std::ptrdiff_t>(c)]);
    CHECK(products[i] == doctest::Approx(product).epsilon(1e-5));
  }
}

TEST_CASE("sort, top-k and histogram") {
  const auto program =
      k::trace("order", {in({2, 9}), out({2, 9}), out({2, 9}, weft::int64), out({2, 3}), out({4}, weft::int32)}, {1},
               [](std::span<const k::AnyRef> r) {
                 const auto v = from<float, 2>(r[0])(k::all, k::all).load();
                 const auto places = k::broadcast_to(k::row(k::arange(9)), {2, 9});
                 const auto [keys, order] = k::sort_by(v, places, 1);
                 to<float, 2>(r[1])(k::all, k::all) = keys;
                 to<int64_t, 2>(r[2])(k::all, k::all) = order;
                 to<float, 2>(r[3])(k::all, k::all) = k::topk(v, 3);
                 to<int32_t, 1>(r[4])(k::all) = k::histogram(k::cast<int32_t>(v * v), 4);
               });
  auto x = normal(18, 12);
  x[3] = x[5];
  std::vector<float> sorted(18), top(6);
  std::vector<int64_t> order(18);
  std::vector<int32_t> counts(4), wanted(4);
  run(program, x, sorted, order, top, counts);
  for (size_t i = 0; i < 2; ++i) {
    std::vector<size_t> by(9);
    for (size_t j = 0; j < 9; ++j) by[j] = j;
    std::stable_sort(by.begin(), by.end(), [&](size_t a, size_t b) { return x[i * 9 + a] < x[i * 9 + b]; });
    for (size_t j = 0; j < 9; ++j) {
      CHECK(order[i * 9 + j] == static_cast<int64_t>(by[j]));
      CHECK(sorted[i * 9 + j] == x[i * 9 + by[j]]);
    }
    for (size_t j = 0; j < 3; ++j) CHECK(top[i * 3 + j] == sorted[i * 9 + 8 - j]);
  }
  for (const float v : x)
    if (v * v < 4) ++wanted[static_cast<size_t>(v * v)];
  CHECK(counts == wanted);
}

TEST_CASE("control flow: loops that depend on data, conditions with and without values, variables") {
  const auto program = k::trace("collatz", {in({40}, weft::int64), out({40}, weft::int64), out({40}, weft::int64)},
                                {40}, [](std::span<const k::AnyRef> r) {
                                  const auto i = k::program_id(0);
                                  k::Mut n = from<int64_t, 1>(r[0])(i);
                                  k::Mut steps = k::scalar<int64_t>(0), odd = k::scalar<int64_t>(0);
                                  k::while_([&] { return n > 1; },
                                            [&] {
                                              k::when(n % 2 == 1, [&] { odd += 1; });
                                              n = k::if_else(
                                                  n % 2 == 0, [&] { return n / 2; }, [&] { return n * 3 + 1; });
                                              steps += 1;
                                            });
                                  to<int64_t, 1>(r[1])(i) = steps;
                                  to<int64_t, 1>(r[2])(i) = odd;
                                });
  std::vector<int64_t> x(40), steps(40), odd(40);
  for (size_t i = 0; i < 40; ++i) x[i] = static_cast<int64_t>(i + 1);
  run(program, x, steps, odd);
  for (size_t i = 0; i < 40; ++i) {
    int64_t n = x[i], count = 0, odds = 0;
    for (; n > 1; ++count) odds += n % 2, n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    CHECK(steps[i] == count);
    CHECK(odd[i] == odds);
  }
}

TEST_CASE("a loop carries only what it changes") {
  const auto program = small([](k::In<float, 2> x, k::Out<float, 2> y) {
    k::Mut a = x(0, k::all).load(), b = x(1, k::all).load(), c = x(2, k::all).load();
    k::loop(0, 3, 1, [&](k::Index) {
      k::loop(0, 2, 1, [&](k::Index) { a += b; });
      k::when(k::sum(b.get(), 0) < 0, [&] { a *= 2; });
    });
    y(0, k::all) = a + b + c;
  });
  const std::string text = program.to_string();
  size_t carries = 0;
  for (size_t at = text.find("carry("); at != std::string::npos; at = text.find("carry(", at + 1)) {
    ++carries;
    CHECK(text.substr(at, text.find('\n', at) - at).find(", ") == std::string::npos);
  }
  CHECK(carries == 2);
}

k::Program by_parts(int64_t rows, int64_t columns, int64_t parts, int64_t block) {
  return k::trace("by_parts", {in({rows, columns}), out({rows})}, {rows}, [&](std::span<const k::AnyRef> r) {
    test_kernels::logsumexp_by_parts(from<float, 2>(r[0]), to<float, 1>(r[1]), parts, block);
  });
}

TEST_CASE("parallel iterations leave behind the loop what they stored in scratch") {
  for (const int64_t parts : {1, 2, 5, 8, 40}) {
    auto x = normal(3 * 70, 21);
    std::vector<float> y(3);
    const k::Program program = by_parts(3, 70, parts, 8);
    run(program, x, y);
    for (size_t i = 0; i < 3; ++i) {
      double sum = 0;
      for (size_t j = 0; j < 70; ++j) sum += std::exp(static_cast<double>(x[i * 70 + j]));
      CHECK(y[i] == doctest::Approx(std::log(sum)).epsilon(1e-5));
    }
    CHECK((program.to_string().find("loop parallel") != std::string::npos) == (parts > 1));
  }
}

TEST_CASE("the interpreter reports what two parallel iterations touch, one of which stores it") {
  using Body = std::function<void(const k::Ref<float, 1>& near, const k::Out<float, 1>& y, const k::Index& i)>;
  const auto why = [](const Body& iteration) {
    const auto program = k::trace("iterations", {out({4})}, {1}, [&](std::span<const k::AnyRef> r) {
      const auto near = k::scratch<float>({4});
      k::parallel(4, [&](const k::Index& i) { iteration(near, to<float, 1>(r[0]), i); });
    });
    std::vector<float> y(4);
    void* const arrays[] = {y.data()};
    try {
      program.interpret(arrays);
    } catch (const std::runtime_error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(why([](const auto&, const auto& y, const auto& i) { y(i) = 1.0f; }) == "");
  const std::string stored = why([](const auto&, const auto& y, const auto& i) { y(k::floordiv(i, 2)) = 1.0f; });
  CHECK_MESSAGE(stored.find("race: iteration 2 writes element 1, which iteration 3 writes at ") != std::string::npos,
                stored);
  const std::string read = why([](const auto& near, const auto& y, const auto& i) {
    const auto before = near(k::maximum(i - 1, 0)).load();
    near(i) = before, y(i) = before;
  });
  CHECK_MESSAGE(read.find("race: iteration 2 writes element 2, which iteration 3 reads at ") != std::string::npos,
                read);
}

TEST_CASE("a condition without variables, and with nothing to do otherwise, is a `when`") {
  const auto text = [](bool assigns) {
    return small([&](k::In<float, 2> x, k::Out<float, 2> y) {
             const auto positive = x(0, 0).load() > 0;
             if (!assigns) return k::when(positive, [&] { y(0, 0) = 1.0; });
             k::Mut value = k::scalar<float>(0);
             k::when(positive, [&] { value = 1.0; });
             y(0, 0) = value;
           })
        .to_string();
  };
  CHECK(text(false).find("when %") != std::string::npos);
  CHECK(text(false).find("branch") == std::string::npos);
  CHECK(text(true).find("branch") != std::string::npos);
}

TEST_CASE("views of single elements along the first axes, of arrays with extents of run time as well") {
  const weft::Symbol* const n = weft::symbol("n", 6);
  const auto program = k::trace_with(
      "fixed",
      {{k::Use::in, weft::float32, {6, 2, 5}, "", {n, nullptr, nullptr}}, {k::Use::in_out, weft::float32, {6, 2, 3}}},
      [](std::span<const k::AnyRef> r) {
        return k::Grid{k::Index(r[0].extent(0)), 2};
      },
      [](std::span<const k::AnyRef> r) {
        const auto i = k::program_id(0), j = k::program_id(1);
        const auto row = from<float, 3>(r[0]).fixed(i, j);
        k::InOut<float, 3>(r[1]).fixed(i).fixed(j)(k::ds(0, 3)) = row(k::ds(j, 3)) + row.fixed(4)().load();
      });
  auto x = normal(60, 23);
  for (const int64_t rows : {1, 4, 6}) {
    std::vector<float> y(36, 7);
    void* const arrays[] = {x.data(), y.data()};
    program.interpret(arrays, std::array{rows});
    for (size_t i = 0; i < 6; ++i)
      for (size_t j = 0; j < 2; ++j)
        for (size_t k = 0; k < 3; ++k)
          CHECK(y[(i * 2 + j) * 3 + k] ==
                (static_cast<int64_t>(i) < rows ? x[(i * 2 + j) * 5 + j + k] + x[(i * 2 + j) * 5 + 4] : 7));
  }
}

TEST_CASE("programs along a sequential axis see what those before them stored") {
  const auto program = k::trace("running", {in({5, 8}), {k::Use::in_out, weft::float32, {8}}},
                                {2, k::GridAxis(5, k::Order::sequential)}, [](std::span<const k::AnyRef> r) {
                                  const auto half = k::ds(k::program_id(0) * 4, 4);
                                  const k::InOut<float, 1> sum(r[1]);
                                  sum(half) += from<float, 2>(r[0])(k::program_id(1), half);
                                });
  CHECK(program.programs() == 2);
  auto x = normal(40, 13);
  std::vector<float> sum(8, 1);
  run(program, x, sum);
  for (size_t j = 0; j < 8; ++j) {
    float wanted = 1;
    for (size_t i = 0; i < 5; ++i) wanted += x[i * 8 + j];
    CHECK(sum[j] == wanted);
  }
}

TEST_CASE("slices that begin before the array, by steps, by masks, of views") {
  const auto program =
      k::trace("windows", {in({10}), out({12, 3}), out({5}), out({10}), in({2, 3}), out({3, 2})}, {12},
               [](std::span<const k::AnyRef> r) {
                 const k::In<float, 1> x(r[0]);
                 const auto i = k::program_id(0);
                 to<float, 2>(r[1])(i, k::all) = x(k::ds(i - 2, 3)).load(9.0);
                 k::when(i == 0, [&] {
                   to<float, 1>(r[2])(k::all) = x(k::ds(9, 5, -2));
                   const k::Out<float, 1> z(r[3]);
                   z(k::all) = 7.0;
                   z(k::all).store(x(k::all), k::arange(10) % 3 == 0);
                   to<float, 2>(r[5])(k::all, k::all) = k::Ref<float, 2>(r[4]).permute({1, 0})(k::all, k::all);
                 });
               });
  auto x = normal(10, 14), small = normal(6, 15);
  std::vector<float> windows(36), back(5), masked(10), turned(6);
  run(program, x, windows, back, masked, small, turned);
  for (int64_t i = 0; i < 12; ++i)
    for (int64_t j = 0; j < 3; ++j) {
      const int64_t at = i - 2 + j;
      CHECK(windows[static_cast<size_t>(i * 3 + j)] == (at >= 0 && at < 10 ? x[static_cast<size_t>(at)] : 9));
    }
  for (size_t j = 0; j < 5; ++j) CHECK(back[j] == x[9 - 2 * j]);
  for (size_t j = 0; j < 10; ++j) CHECK(masked[j] == (j % 3 == 0 ? x[j] : 7));
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 3; ++j) CHECK(turned[j * 2 + i] == small[i * 3 + j]);
}

TEST_CASE("atomics return what was there; Philox's words are the published ones") {
  const auto program = k::trace(
      "count", {{k::Use::in_out, weft::int32, {4}}, out({4}, weft::uint32), {k::Use::in_out, weft::int32, {1}}}, {8},
      [](std::span<const k::AnyRef> r) {
        const k::InOut<int32_t, 1> counts(r[0]);
        k::atomic("add", counts, k::cast<int32_t>(k::arange(4)), k::arange(4));
        k::when(k::program_id(0) == 0, [&] {
          const auto words = k::philox(k::scalar<uint64_t>(0), k::zeros<uint64_t>({1}));
          k::static_for(4, [&](int64_t w) { to<uint32_t, 1>(r[1])(k::ds(w, 1)) = words[static_cast<size_t>(w)]; });
        });
        k::compare_exchange(r[2], std::array{k::arange(1).any()}, k::constant(weft::int32, 0, {1}),
                            k::constant(weft::int32, 5, {1}));
      });
  std::vector<int32_t> counts(4), once(1);
  std::vector<uint32_t> words(4);
  run(program, counts, words, once);
  CHECK(counts == std::vector<int32_t>{0, 8, 16, 24});
  CHECK(once[0] == 5);
  CHECK(words == std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});  // Salmon et al., kat_vectors
}

TEST_CASE("division rounds as in C++") {
  const auto program = k::trace("division", {in({20}, weft::int32), out({20}, weft::int32), out({20}, weft::int32)},
                                {1}, [](std::span<const k::AnyRef> r) {
                                  const auto v = from<int32_t, 1>(r[0])(k::all).load();
                                  to<int32_t, 1>(r[1])(k::all) = v / 3;
                                  to<int32_t, 1>(r[2])(k::all) = v % -3;
                                });
  std::vector<int32_t> x(20), q(20), rest(20);
  for (int i = 0; i < 20; ++i) x[static_cast<size_t>(i)] = i - 10;
  run(program, x, q, rest);
  for (size_t i = 0; i < 20; ++i) {
    CHECK(q[i] == x[i] / 3);
    CHECK(rest[i] == x[i] % -3);
  }
}

TEST_CASE("slices that begin far behind an array store nothing") {
  const auto program = k::trace("behind", {in({64}), out({100})}, {20}, [](std::span<const k::AnyRef> r) {
    const auto v = k::sort(from<float, 1>(r[0])(k::all).load(), 0);  // in memory
    to<float, 1>(r[1])(k::ds(k::program_id(0) * 64, 64)) = v;
  });
  std::vector<float> x(64, 1), y(100);
  run(program, x, y);
  CHECK(y == std::vector<float>(100, 1));
}

}  // namespace

TEST_CASE("a prefetch is an instruction for each run of adjacent elements, and changes nothing") {
  const auto copied = [](auto ahead) {
    return k::trace("copy", {in({4, 24}), out({4, 24})}, {4}, [&](std::span<const k::AnyRef> refs) {
      const auto row = k::program_id(0);
      const auto x = from<float, 2>(refs[0]);
      ahead(x, row);
      to<float, 2>(refs[1])(row, k::all) = x(row, k::all);
    });
  };
  const auto instructions = [](const k::Program& p) {
    const std::string text = p.to_string();
    size_t count = 0;
    for (size_t at = text.find("prefetch p0"); at != std::string::npos; at = text.find("prefetch p0", at + 1)) ++count;
    return count;
  };
  const k::Program next = copied([](const auto& x, const k::Index& row) {
    k::prefetch(x(row + 1, k::all));  // of the last program behind the array
    k::prefetch(x(k::ds(row - 2, 3), k::ds(8, 4)));
  });
  CHECK(instructions(next) == 4);
  CHECK(instructions(copied([](const auto& x, const k::Index& row) { k::prefetch(x(k::ds(0, 3), row)); })) == 3);
  std::vector<float> x = normal(4 * 24, 5), y(x.size());
  run(next, x, y);
  CHECK(y == x);
}
