// The library of the kernel language in the interpreter, against loops in float64 and the standard library.
#include "weft/kernel_library.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/half.h"
#include "kernel/language/library_kernels.h"
#include "kernel/language/run.h"

namespace {

namespace k = weft::k;
using namespace test_kernels;

std::vector<float> normals(int64_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> numbers;
  std::vector<float> out(static_cast<size_t>(n));
  for (float& v : out) v = numbers(engine);
  return out;
}
/// Small whole numbers: their sums are exact.
std::vector<float> wholes(int64_t n, unsigned seed) {
  std::vector<float> out = normals(n, seed);
  for (float& v : out) v = std::round(8 * v);
  return out;
}
std::vector<float> ascending(int64_t n, unsigned seed) {
  std::vector<float> out = wholes(n, seed);
  std::sort(out.begin(), out.end());
  return out;
}

TEST_CASE("an array of any length is reduced by any number of programs") {
  for (const int64_t n : {1, 63, 1000})
    for (const int64_t programs : {1, 3}) {
      auto x = wholes(n, 1);
      std::vector<float> parts(static_cast<size_t>(programs)), whole(1);
      run(sums_of(n, programs, 64), x, parts);
      run(sums_of(programs, 1, 2), parts, whole);
      CHECK(whole[0] == std::accumulate(x.begin(), x.end(), 0.0f));
      run(most_in_order(n, 96), x, whole);
      CHECK(whole[0] == *std::max_element(x.begin(), x.end()));
    }
}

TEST_CASE("an array of any length is scanned, by one program, in order, and in three kernels") {
  for (const int64_t n : {1, 48, 500}) {
    auto x = wholes(n, 2);
    std::vector<float> wanted(x.size()), before(x.size()), y(x.size());
    std::partial_sum(x.begin(), x.end(), wanted.begin());
    std::exclusive_scan(x.begin(), x.end(), before.begin(), 0.0f);
    for (const int64_t block : {1, 48, 64}) {
      run(scanned_by_one(n, block, false), x, y);
      CHECK(y == wanted);
      run(scanned_by_one(n, block, true), x, y);
      CHECK(y == before);
      run(scanned_in_order(n, block), x, y);
      CHECK(y == wanted);
      std::vector<float> sums(static_cast<size_t>(k::cdiv(n, block))), starts(sums.size());
      run(block_sums(n, block), x, sums);
      run(scanned_by_one(k::cdiv(n, block), 16, true), sums, starts);
      run(block_scans(n, block), x, starts, y);
      CHECK(y == wanted);
    }
  }
}

TEST_CASE("digits are ranked stably") {
  std::mt19937 engine(3);
  std::vector<uint32_t> keys(70);
  for (uint32_t& v : keys) v = static_cast<uint32_t>(engine()) & 0xffff;
  std::vector<uint32_t> sorted = keys, pass(keys.size());
  std::sort(sorted.begin(), sorted.end());
  std::vector<int32_t> counts(16);
  for (const int64_t shift : {0, 4, 8, 12}) {  // only a stable order of each digit sorts the whole keys
    run(radix_pass(70, shift), keys, pass, counts);
    for (size_t d = 0; d < 16; ++d)
      CHECK(counts[d] == std::count_if(keys.begin(), keys.end(), [&](uint32_t v) { return (v >> shift & 15) == d; }));
    keys = pass;
  }
  CHECK(keys == sorted);
}

template <class T>
void check_order(std::vector<T> x, weft::Dtype t) {
  std::vector<uint32_t> bits(x.size());
  std::vector<T> again(x.size());
  run(bits_of<T>(static_cast<int64_t>(x.size()), t), x, bits, again);
  CHECK(again == x);
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t j = 0; j < x.size(); ++j)
      if (x[i] != x[j]) CHECK((bits[i] < bits[j]) == (x[i] < x[j]));
}

TEST_CASE("bits are ordered as elements are") {
  check_order<float>({0, -1, 1, 3e38f, -3e38f, INFINITY, -INFINITY, 1e-40f, -1e-40f, 2.5f}, weft::float32);
  check_order<int32_t>({0, -1, 1, INT32_MAX, INT32_MIN, 77, -78}, weft::int32);
}

TEST_CASE("two ascending arrays are merged from any position on") {
  for (const auto& [n, m] : {std::pair<int64_t, int64_t>{70, 45}, {1, 90}, {33, 1}, {64, 64}})
    for (const int64_t block : {1, 32, 200}) {
      auto a = ascending(n, 4), b = ascending(m, 5);
      std::vector<float> wanted(a.size() + b.size()), got(wanted.size());
      std::merge(a.begin(), a.end(), b.begin(), b.end(), wanted.begin());
      run(merged(n, m, block), a, b, got);
      CHECK(got == wanted);
    }
  auto low = ascending(40, 6), high = low;
  for (float& v : high) v += 1000;
  std::vector<float> got(80);
  run(merged(40, 40, 32), high, low, got);
  CHECK(std::is_sorted(got.begin(), got.end()));
}

TEST_CASE("a matrix is transposed by way of scratch") {
  auto x = normals(70 * 45, 7);
  std::vector<float> y(x.size());
  run(transposed(70, 45, 32, 16), x, y);
  for (size_t i = 0; i < 70; ++i)
    for (size_t j = 0; j < 45; ++j) CHECK(y[j * 70 + i] == x[i * 45 + j]);
}

TEST_CASE("the online softmax sums exponentials of rows without scores, of large ones, of all") {
  auto x = normals(5 * 100, 8);
  for (size_t i = 0; i < 100; ++i) x[i] = -INFINITY, x[100 + i] += 1e4f, x[200 + i] = i < 40 ? -INFINITY : x[200 + i];
  std::vector<float> got(5);
  run(log2_sums(5, 100, 32), x, got);
  CHECK(got[0] == -INFINITY);
  for (size_t row = 1; row < 5; ++row) {
    double most = -INFINITY, sum = 0;
    for (size_t i = 0; i < 100; ++i) most = std::max(most, static_cast<double>(x[row * 100 + i]));
    for (size_t i = 0; i < 100; ++i) sum += std::exp2(x[row * 100 + i] - most);
    CHECK(got[row] == doctest::Approx(most + std::log2(sum)).epsilon(1e-6));
  }
}

TEST_CASE("moments of rows far from 0 keep their variance") {
  auto x = normals(5 * 100, 9);
  for (size_t i = 0; i < x.size(); ++i) x[i] += i < 300 ? 0.0f : 1000.0f;
  std::vector<float> mean(5), variance(5);
  run(variances(5, 100, 32), x, mean, variance);
  for (size_t row = 0; row < 5; ++row) {
    double m = 0, v = 0;
    for (size_t i = 0; i < 100; ++i) m += x[row * 100 + i] / 100.0;
    for (size_t i = 0; i < 100; ++i) v += (x[row * 100 + i] - m) * (x[row * 100 + i] - m) / 100;
    CHECK(mean[row] == doctest::Approx(m).epsilon(1e-6));
    CHECK(variance[row] == doctest::Approx(v).epsilon(1e-4));
  }
}

TEST_CASE("a product with an epilogue, tiles in bands") {
  auto a = normals(70 * 50, 10), b = normals(50 * 45, 11), bias = normals(45, 12);
  std::vector<float> c(70 * 45);
  run(product(70, 45, 50, {32, 16, 24}), a, b, bias, c);
  for (size_t i = 0; i < 70; ++i)
    for (size_t j = 0; j < 45; ++j) {
      double sum = 0;
      for (size_t p = 0; p < 50; ++p) sum += static_cast<double>(a[i * 50 + p]) * b[p * 45 + j];
      CHECK(c[i * 45 + j] == doctest::Approx(std::max(2 * sum + bias[j], 0.0)).epsilon(1e-4));
    }
}

/// Returns the elements of a quantised operand, and scales of it, which exponents or floats are.
template <class T>
std::vector<T> quantised(size_t n, unsigned seed) {
  std::vector<T> out;
  for (const float v : wholes(static_cast<int64_t>(n), seed)) {
    if constexpr (std::same_as<T, uint8_t>) out.push_back(static_cast<T>(weft::float_to_low(v / 4, weft::float8_e4m3)));
    else out.push_back(static_cast<T>(v));
  }
  return out;
}
double number_of(uint8_t v) { return weft::low_to_float(v, weft::float8_e4m3); }
double number_of(int8_t v) { return v; }

/// Runs a quantised product, and checks it against a sum in float64.
template <class T, class S>
void check_scaled(const k::Program& program, std::vector<S> x, std::vector<S> y, double (*scale)(S)) {
  const auto dims = [&](size_t p) {
    const std::vector<int64_t>& d = program.params()[p].dims;
    return std::pair{static_cast<size_t>(d[0]), static_cast<size_t>(d[1])};
  };
  const auto [m, depth] = dims(0);
  const auto n = dims(2).second;
  const auto [xr, xc] = dims(1);
  const auto [yr, yc] = dims(3);
  std::vector<T> a = quantised<T>(m * depth, 20), b = quantised<T>(depth * n, 21);
  std::vector<float> c(m * n);
  run(program, a, x, b, y, c);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (size_t p = 0; p < depth; ++p) {
        const double term = number_of(a[i * depth + p]) * scale(x[i * xr / m * xc + p * xc / depth]) *
                            number_of(b[p * n + j]) * scale(y[p * yr / depth * yc + j * yc / n]);
        sum += term, size += std::abs(term);
      }
      CHECK(std::abs(c[i * n + j] - sum) <= 1e-5 * size);
    }
}

TEST_CASE("quantised products have scales of all, of rows and columns, and of blocks") {
  using k::e4m3;
  const auto as_is = +[](float v) { return static_cast<double>(v); };
  const auto floats = [](int64_t n, unsigned seed) {
    std::vector<float> out = normals(n, seed);
    for (float& v : out) v = std::exp(v);
    return out;
  };
  struct Blocks {
    std::vector<int64_t> of_a, of_b;
  };
  const Blocks all[] = {{{1, 1}, {1, 1}}, {{6, 1}, {1, 10}}, {{6, 4}, {4, 2}}, {{2, 2}, {3, 10}}, {{3, 1}, {24, 5}}};
  for (const Blocks& x : all) {
    const auto of_a = floats(x.of_a[0] * x.of_a[1], 22), of_b = floats(x.of_b[0] * x.of_b[1], 23);
    check_scaled<uint8_t>(scaled<e4m3, float>({6, 10, 24}, x.of_a, x.of_b, weft::float8_e4m3, weft::float32), of_a,
                          of_b, as_is);
    check_scaled<int8_t>(scaled<k::i8, float>({6, 10, 24}, x.of_a, x.of_b, weft::int8, weft::float32), of_a, of_b,
                         as_is);
  }
  check_scaled<int8_t>(scaled<k::i8, float>({6, 10, 24}, {6, 3}, {3, 10}, weft::int8, weft::float32, 8), floats(18, 24),
                       floats(30, 25), as_is);
  // Exponents of 2; 255 is NaN, 0 the least.
  const std::vector<uint8_t> exponents{127, 130, 120, 126, 128, 125};
  check_scaled<uint8_t>(
      scaled<e4m3, uint8_t>({6, 10, 24}, {6, 1}, {3, 2}, weft::float8_e4m3, weft::uint8), exponents, exponents,
      +[](uint8_t e) { return std::ldexp(1.0, e - 127); });
  const k::Program one = scaled<k::i8, uint8_t>({1, 1, 1}, {1, 1}, {1, 1}, weft::int8, weft::uint8);
  std::vector<int8_t> three{3};
  std::vector<uint8_t> x{0}, y{254};
  std::vector<float> c(1);
  run(one, three, x, three, y, c);
  CHECK(c[0] == 9);
  x[0] = 255;
  run(one, three, x, three, y, c);
  CHECK(std::isnan(c[0]));
}

TEST_CASE("scales that divide no operand are refused") {
  const auto why = [](std::vector<int64_t> of_a, std::vector<int64_t> of_b) {
    try {
      scaled<k::i8, float>({6, 10, 24}, std::move(of_a), std::move(of_b), weft::int8, weft::float32);
    } catch (const std::invalid_argument& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(why({4, 1}, {1, 1}).find("dot_scaled: [4,1] scales of the left operand do not divide [6,24]") !=
        std::string::npos);
  CHECK(why({6, 1}, {5, 10}).find("dot_scaled: [5,10] scales of the right operand do not divide [24,10]") !=
        std::string::npos);
}

TEST_CASE("batches of matrices that are cut off along every axis") {
  auto a = wholes(7 * 19 * 11, 16), b = wholes(7 * 11 * 21, 17);
  std::vector<float> c(7 * 19 * 21), sums(2 * 19 * 21);
  run(batches(7, 19, 21, 11), a, b, c, sums);
  for (size_t q = 0; q < 7; ++q)
    for (size_t i = 0; i < 19; ++i)
      for (size_t j = 0; j < 21; ++j) {
        float sum = 0;
        for (size_t p = 0; p < 11; ++p) sum += a[(q * 19 + i) * 11 + p] * b[(q * 11 + p) * 21 + j];
        CHECK(c[(q * 19 + i) * 21 + j] == sum + 3 * 1 * 2);
      }
  for (size_t at = 0; at < 19 * 21; ++at) {
    float sum = (11 + 3) * 1 * 2;  // of the fourth matrix
    for (size_t q = 4; q < 7; ++q) sum += c[q * 19 * 21 + at];
    CHECK(sums[19 * 21 + at] == sum);
  }
}

TEST_CASE("attention with a window, a bias, and queries that see nothing") {
  constexpr size_t length = 75, d = 16, window = 20, blind = 3;
  auto q = normals(length * d, 13), keys = normals(length * d, 14), values = normals(length * d, 15);
  std::vector<float> out(length * d), lse(length);
  run(attended<float>(length, d, 32, 24, window, blind, weft::float32), q, keys, values, out, lse);
  for (size_t i = 0; i < length; ++i) {
    std::vector<double> sum(d);
    double total = 0;
    for (size_t j = i > window ? i - window : 0; j <= i && i >= blind; ++j) {
      double s = 0;
      for (size_t c = 0; c < d; ++c) s += static_cast<double>(q[i * d + c]) * keys[j * d + c];
      const double weight = std::exp2(s * 1.4426950408889634 / 4 - 0.25 * static_cast<double>(i - j));
      total += weight;
      for (size_t c = 0; c < d; ++c) sum[c] += weight * values[j * d + c];
    }
    if (i < blind) CHECK(lse[i] == -INFINITY);
    else CHECK(lse[i] == doctest::Approx(std::log2(total)).epsilon(1e-5));
    for (size_t c = 0; c < d; ++c)
      CHECK(out[i * d + c] == doctest::Approx(i < blind ? 0 : sum[c] / total).epsilon(1e-4));
  }
}

TEST_CASE("bands of tiles name each tile once") {
  struct Tiling {
    int64_t rows, columns, band;
  };
  for (const Tiling& t : {Tiling{5, 7, 2}, {4, 4, 4}, {3, 2, 8}}) {
    const auto program =
        k::trace("bands", {written({t.rows, t.columns}, weft::int32)}, {t.rows * t.columns}, [&](Refs r) {
          const auto [i, j] = k::swizzle2d(k::program_id(0), t.rows, t.columns, t.band);
          to<int32_t, 2>(r[0])(i, j) = k::cast<int32_t>(k::program_id(0) + 1);
        });
    std::vector<int32_t> order(static_cast<size_t>(t.rows * t.columns));
    run(program, order);
    std::vector<int32_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < order.size(); ++i) CHECK(sorted[i] == static_cast<int32_t>(i) + 1);
    CHECK(order[static_cast<size_t>(t.columns)] == 2);  // the second tile lies below the first one
  }
}

}  // namespace
