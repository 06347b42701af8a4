// Each rule of the index algebra, by what it must leave behind.
#include <doctest/doctest.h>

#include <array>
#include <random>
#include <vector>

#include "base/error.h"
#include "base/index.h"

using namespace weft::ix;

namespace {

/// Variables of the extents a test needs.
struct Axes {
  Context cx;
  Expr var(const std::string& name, int64_t extent) { return cx.variable(name, 0, extent - 1); }
  Expr operator()(int64_t v) { return cx.constant(v); }
};

}  // namespace

TEST_CASE("index: sums and multiples have one form") {
  Axes x;
  const Expr i = x.var("i", 8), j = x.var("j", 8), k = x.var("k", 8);
  CHECK(i + j == j + i);
  CHECK((i + j) + k == i + (k + j));
  CHECK(i + i == i * 2);
  CHECK(i - i == x(0));
  CHECK((i + j * 3 + 2) * 4 == i * 4 + j * 12 + 8);
  CHECK((i * 3) * 5 == i * 15);
  CHECK(i * 0 == x(0));
  CHECK(i * 1 == i);
  CHECK(i + 0 == i);
  CHECK((i + 3) - 3 == i);
  CHECK((i + j) - (j + i) == x(0));
  CHECK(x(2) + x(5) == x(7));
  CHECK(to_string(i * 12 + j - 3) == "i*12 + j - 3");
  CHECK(to_string(j - i * 2 - 1) == "j - i*2 - 1");
  CHECK(to_string(x(1) - i * 2) == "i*-2 + 1");
  CHECK(to_string((i * 2 + j) / 5 % 3) == "(i*2 + j)/5%3");
  CHECK(to_string(x.cx.min(i, j + 1)) == "min(i, j + 1)");
  CHECK(to_string(Expr()) == "<none>");
}

TEST_CASE("index: intervals and congruences") {
  Axes x;
  const Expr i = x.cx.variable("i", -3, 8), j = x.var("j", 5);
  const Expr e = i * -2 + j * 4 + 1;
  CHECK(e->min == -15);
  CHECK(e->max == 23);
  CHECK(e->mod == 2);
  CHECK(e->rem == 1);
  CHECK((i % 5)->min == 0);
  CHECK((i % 5)->max == 4);
  CHECK((j % 3)->max == 2);
  CHECK((i / 4)->min == -1);
  CHECK((i / 4)->max == 2);
  const Expr m = x.cx.min(i * 6 + 1, j * 9 + 4);
  CHECK(m->mod == 3);
  CHECK(m->rem == 1);
  const Expr tight = (i * 6 + j * 3) % 9;  // multiples of three below nine
  CHECK(tight->max <= 6);
  CHECK(x(7)->mod == 0);
  CHECK(x(7)->rem == 7);
  CHECK(x.cx.variable("n", 4, 4)->mod == 0);
}

TEST_CASE("index: quotients") {
  Axes x;
  const Expr i = x.var("i", 8), j = x.var("j", 4), k = x.var("k", 100);
  CHECK((i * 4 + j) / 4 == i);
  CHECK((i * 8 + j) / 4 == i * 2);
  CHECK((i * 4 + k) / 4 == i + k / 4);
  CHECK((k / 3) / 5 == k / 15);
  CHECK((k + 8) / 4 == k / 4 + 2);
  CHECK((k - 1) / 4 == (k + 3) / 4 - 1);
  CHECK(i / 8 == x(0));
  CHECK((i + 16) / 8 == x(2));
  CHECK((i * 12 + j) / 24 == i / 2);  // j fits below the common factor
  CHECK((i * 6 + 3) / 12 == i / 2);
  CHECK((k % 12) / 4 == (k / 4) % 3);
  CHECK((i + k / 4) / 3 == (i * 4 + k) / 12);  // one division instead of two
  CHECK(x(-7) / 2 == x(-4));
  CHECK(k / 1 == k);
  CHECK(x.cx.floordiv(i * 4 + 7, 4) == i + 1);
}

TEST_CASE("index: remainders") {
  Axes x;
  const Expr i = x.var("i", 8), j = x.var("j", 4), k = x.var("k", 100);
  CHECK((i * 4 + j) % 4 == j);
  CHECK((k % 12) % 4 == k % 4);
  CHECK(((k % 12) * 2 + i) % 8 == (k * 2 + i) % 8);
  CHECK(i % 8 == i);
  CHECK((i + 16) % 8 == i);
  CHECK((i - 8) % 8 == i);
  CHECK((i * 12 + j) % 24 == (i % 2) * 12 + j);
  CHECK((k * 5) % 4 == k % 4);
  CHECK((k * 6 + 2) % 3 == x(2));
  CHECK((i * 4) % 4 == x(0));
  CHECK(x(-7) % 4 == x(1));
  CHECK(x.cx.min(i * 6, k * 4) % 2 == x(0));  // by congruence
}

TEST_CASE("index: quotient and remainder meet again") {
  Axes x;
  const Expr i = x.var("i", 100), j = x.var("j", 7);
  CHECK((i / 4) * 4 + i % 4 == i);
  CHECK((i / 4) * 12 + (i % 4) * 3 == i * 3);
  CHECK(((i + j) / 4) * 4 + (i + j) % 4 == i + j);
  CHECK((i / 12) * 12 + ((i / 4) % 3) * 4 + i % 4 == i);
  CHECK(((i / 4) % 3) * 4 + i % 4 == i % 12);
  CHECK((i / 12) * 3 + (i / 4) % 3 == i / 4);
  CHECK(i - i % 4 == (i / 4) * 4);
  CHECK(i - (i / 4) * 4 == i % 4);
  CHECK(j + i - (i % 4) * 1 == (i / 4) * 4 + j);
  CHECK(((i * 6) / 4) * 4 + (i * 6) % 4 == i * 6);
}

TEST_CASE("index: minima, maxima") {
  Axes x;
  const Expr i = x.var("i", 8), j = x.var("j", 8), k = x.cx.variable("k", 10, 20);
  auto& cx = x.cx;
  CHECK(cx.min(i, i) == i);
  CHECK(cx.min(i, k) == i);
  CHECK(cx.max(i, k) == k);
  CHECK(cx.min(i, i + 1) == i);
  CHECK(cx.max(i, i + 1) == i + 1);
  CHECK(cx.min(i, j) == cx.min(j, i));
  CHECK(cx.min(i + 3, j + 3) == cx.min(i, j) + 3);
  CHECK(cx.min(i * 4, j * 8) == cx.min(i, j * 2) * 4);
  CHECK(cx.min(k + i, k + j) == cx.min(i, j) + k);
  CHECK(cx.min(i * 4, j * 4) / 4 == cx.min(i, j));
  CHECK(cx.min(cx.min(i, x(5)), x(3)) == cx.min(i, x(3)));
  CHECK(cx.min(cx.min(i, x(5)), i) == cx.min(i, x(5)));
  CHECK(cx.min(cx.max(i, j), i) == i);
  CHECK(cx.max(cx.min(i, x(3)), x(0)) == cx.min(i, x(3)));
  CHECK(cx.max(x(2), x(9)) == x(9));
  CHECK(cx.min(cx.min(i + 10, j), i) == cx.min(i, j));  // i + 10 is never the least
  CHECK(cx.min(cx.min(j, i + 10), i) == cx.min(i, j));
  CHECK(cx.max(cx.max(i - 9, j), i) == cx.max(i, j));
}

TEST_CASE("index: comparisons") {
  Axes x;
  auto& cx = x.cx;
  const Expr i = x.var("i", 8), j = x.var("j", 4), k = x.var("k", 100);
  CHECK((i < 8) == x(1));
  CHECK((i < 0) == x(0));
  CHECK((i < i) == x(0));
  CHECK((i < i + 1) == x(1));
  CHECK((i + 3 < 10) == (i < 7));
  CHECK(cx.less(i + j, j + 5) == (i < 5));
  CHECK((i * 4 + j < 12) == (i < 3));
  CHECK((i * 4 + j < 13) == cx.less(i * 4 + j, x(13)));
  CHECK((i * 6 < 13) == (i < 3));
  CHECK((k / 4 < 3) == (k < 12));
  CHECK((k / 4 >= 3) == (k >= 12));
  CHECK((k >= 0) == x(1));
  CHECK(to_string(k >= 5) == "4 < k");
  CHECK(to_string(cx.less(j, i)) == "j < i");
  CHECK((x(3) < x(4)) == x(1));
}

TEST_CASE("index: connectives") {
  Axes x;
  auto& cx = x.cx;
  const Expr i = x.var("i", 8), j = x.var("j", 8), zero = x(0), one = x(1);
  const Expr p = i < 5, q = j < 3;
  CHECK((p && one) == p);
  CHECK((p && zero) == zero);
  CHECK((p && p) == p);
  CHECK((p && q) == (q && p));
  CHECK(((p && q) && p) == (p && q));
  CHECK((p && (i < 3)) == (i < 3));
  CHECK((p && (i >= 5)) == zero);
  CHECK(((i >= 2) && (i < 2)) == zero);
  CHECK(cx.either(p, i < 3) == p);
  CHECK(cx.either(p, i >= 5) == one);
  CHECK(cx.either(p, zero) == p);
  CHECK(cx.either(p, one) == one);
  CHECK(cx.both(i + 1, one) == one);  // any non-zero number is true
  CHECK(cx.both(i, one) == (i >= 1));
  CHECK(cx.both(i * 2 + 1, p) == p);
}

TEST_CASE("index: affine forms") {
  Axes x;
  const Expr i = x.var("i", 8), j = x.var("j", 4), k = x.var("k", 100);
  const Expr vars[] = {i, j};
  const auto a = affine(i * 12 - j * 3 + k / 7 + 5, vars);
  REQUIRE(a);
  CHECK(a->coefficients == std::vector<int64_t>{12, -3});
  CHECK(a->base == k / 7 + 5);
  CHECK_FALSE(affine((i + k) % 3, vars));
  CHECK_FALSE(affine(x.cx.min(i, k), vars));
  CHECK(affine(x.cx.min(k, k % 9 + 2) + j, vars));
  const auto zero = affine(k, vars);
  REQUIRE(zero);
  CHECK(zero->coefficients == std::vector<int64_t>{0, 0});
  CHECK(zero->base == k);
  const int64_t strides[] = {4, 1};
  CHECK(linear(x.cx, vars, strides, 7) == i * 4 + j + 7);
}

TEST_CASE("index: substitution and variables") {
  Axes x;
  const Expr i = x.var("i", 8), j = x.var("j", 4), o = x.var("o", 2);
  const Expr e = (i + 3) / 4 + x.cx.min(i, j);
  const Expr s = substitute(e, [&](int64_t id) { return id == i->value ? o * 4 + 1 : Expr(); });
  CHECK(s == o + 1 + x.cx.min(o * 4 + 1, j));
  CHECK(substitute(e, [](int64_t) { return Expr(); }) == e);
  CHECK(substitute(e, [&](int64_t) { return x(2); }) == x(3));
  std::vector<int64_t> seen;
  variables(e, [&](Expr v) { seen.push_back(v->value); });
  CHECK(seen.size() == 2);
  CHECK(depends_on(e, i));
  CHECK(depends_on(e, j));
  CHECK_FALSE(depends_on(e, o));
  CHECK(evaluate(e, std::vector<int64_t>{5, 3, 0}) == 5);
}

TEST_CASE("index: numbers near the ends of int64 make facts unbounded, never wrong") {
  Axes x;
  auto& cx = x.cx;
  const int64_t big = INT64_MAX;
  const Expr i = x.var("i", 8), n = cx.variable("n", INT64_MIN, INT64_MAX), u = cx.variable("u", 0, INT64_MAX);
  const Expr far = i * big;
  CHECK(far->max == INT64_MAX);
  CHECK(far->min == INT64_MIN);
  CHECK((far + far)->max == INT64_MAX);
  CHECK((n + 1)->min == INT64_MIN);
  CHECK((n + 1)->max == INT64_MAX);
  CHECK((u + 1)->min == 1);
  CHECK((u / 2)->max == INT64_MAX);  // "unbounded" stays so
  CHECK((n % 8)->max == 7);
  CHECK((n * 4)->mod == 4);
  CHECK((n * 4 + 3) % 4 == x(3));
  const Expr opaque = cx.min(n * 4 + 1, u * 8 + 5);  // too far out for the common factor to leave the minimum
  CHECK(opaque->mod == 4);
  CHECK(opaque->rem == 1);
  CHECK((opaque / 2)->mod == 2);
  CHECK((opaque / 2)->rem == 0);
  CHECK(opaque % 2 == x(1));
  CHECK((opaque / 4) * 4 + 1 == opaque);  // by congruence alone
  CHECK((n < 5) != x(0));
  CHECK((n < 5) != x(1));
  CHECK((n >= INT64_MIN) == x(1));
  const std::vector<int64_t> at{3, INT64_MIN, big};
  CHECK(evaluate(n < 5, at) == 1);
  CHECK(evaluate(cx.less(n, u), at) == 1);
  CHECK(evaluate(cx.min(n, u), at) == INT64_MIN);
  CHECK(evaluate(cx.max(n, u), at) == big);
  CHECK(evaluate(n % 7, at) == ((INT64_MIN % 7) + 7) % 7);
  CHECK(evaluate(n / 7, at) == INT64_MIN / 7 - 1);
  CHECK(cx.constant(big) + cx.constant(-1) == x(big - 1));
  const Expr over = cx.constant(big) + cx.constant(1);  // not a number of int64: kept as it is written
  CHECK_FALSE(over.is_constant());
  CHECK(over->min == INT64_MIN);
  CHECK(over->max == INT64_MAX);
  const Expr scaled = (i * (big / 4)) * 1000;
  CHECK(scaled->max == INT64_MAX);
  CHECK(cx.mul(cx.constant(INT64_MIN), -1)->max == INT64_MAX);
}

TEST_CASE("index: construction stays bounded") {
  Axes x;
  std::mt19937_64 random(11);
  std::vector<Expr> vars, pool;
  for (int k = 0; k < 100; ++k) vars.push_back(x.var("v" + std::to_string(k), 5 + k));
  Expr all = x(0);
  for (Expr v : vars) all = all + v * 3;  // more terms than a canonical sum holds
  CHECK(evaluate(all, std::vector<int64_t>(100, 2)) == 600);
  CHECK((all % 3) == x(0));
  pool = vars;
  for (int k = 0; k < 4000; ++k) {  // every node is used again and again: trees of exponential size, shared
    const Expr a = pool[random() % pool.size()], b = pool[pool.size() - 1 - random() % 8];
    const int64_t c = static_cast<int64_t>(random() % 30 + 2);
    switch (random() % 5) {
      case 0: pool.push_back(a + b * c); break;
      case 1: pool.push_back((a + b) / c); break;
      case 2: pool.push_back((a * c + b) % (c * 5)); break;
      case 3: pool.push_back(x.cx.min(a, b + c)); break;
      default: pool.push_back(x.cx.max(a, b * 2)); break;
    }
  }
  CHECK(x.cx.nodes() < 1'000'000);
  CHECK(to_string(pool.back()).size() < 20'000);
  const std::vector<int64_t> at(100, 3);
  CHECK(evaluate(pool.back(), at) >= pool.back()->min);
  CHECK(evaluate(pool.back(), at) <= pool.back()->max);
}

TEST_CASE("index: misuse is reported") {
  Axes x, y;
  const Expr i = x.var("i", 8), j = y.var("j", 8);
  CHECK_THROWS_AS(i / 0, weft::internal_error);
  CHECK_THROWS_AS(i % -4, weft::internal_error);
  CHECK_THROWS_AS(i + j, weft::internal_error);
  CHECK_THROWS_AS(x.cx.variable("empty", 3, 2), weft::internal_error);
  CHECK_THROWS_AS(evaluate(i, {}), weft::internal_error);
}

namespace {

std::vector<std::array<int, 4>> groups(std::vector<int64_t> from, std::vector<int64_t> to) {
  std::vector<std::array<int, 4>> out;
  for (const ReshapeGroup& g : reshape_groups(from, to))
    out.push_back({g.from_begin, g.from_end, g.to_begin, g.to_end});
  return out;
}
using Groups = std::vector<std::array<int, 4>>;

}  // namespace

TEST_CASE("index: reshape groups are as fine as can be") {
  CHECK(groups({2, 3, 4}, {6, 4}) == Groups{{0, 2, 0, 1}, {2, 3, 1, 2}});
  CHECK(groups({6, 4}, {2, 3, 4}) == Groups{{0, 1, 0, 2}, {1, 2, 2, 3}});
  CHECK(groups({2, 3}, {2, 3}) == Groups{{0, 1, 0, 1}, {1, 2, 1, 2}});
  CHECK(groups({2, 3}, {3, 2}) == Groups{{0, 2, 0, 2}});
  CHECK(groups({2, 1, 3}, {2, 3}) == Groups{{0, 1, 0, 1}, {1, 3, 1, 2}});
  CHECK(groups({2, 3}, {2, 3, 1, 1}) == Groups{{0, 1, 0, 1}, {1, 2, 1, 4}});
  CHECK(groups({1}, {}) == Groups{{0, 1, 0, 0}});
  CHECK(groups({}, {1, 1}) == Groups{{0, 0, 0, 2}});
  CHECK(groups({}, {}).empty());
  CHECK_THROWS_AS(groups({2, 3}, {5}), weft::internal_error);
  CHECK_THROWS_AS(groups({0, 3}, {0}), weft::internal_error);
}

TEST_CASE("index: reshapes split and merge with no more arithmetic than needed") {
  Axes x;
  const Expr i = x.var("i", 2), j = x.var("j", 3), m = x.var("m", 6), k = x.var("k", 4);
  const std::vector<int64_t> split{2, 3, 4}, merged{6, 4};
  const auto a = reindex_reshape(x.cx, std::vector<Expr>{m, k}, split, merged);
  CHECK(a == std::vector<Expr>{m / 3, m % 3, k});
  const auto b = reindex_reshape(x.cx, std::vector<Expr>{i, j, k}, merged, split);
  CHECK(b == std::vector<Expr>{i * 3 + j, k});
  CHECK(reindex_reshape(x.cx, a, merged, split) == std::vector<Expr>{m, k});
  CHECK(reindex_reshape(x.cx, b, split, merged) == std::vector<Expr>{i, j, k});
  const std::vector<int64_t> ones{1, 6, 1, 4};
  CHECK(reindex_reshape(x.cx, std::vector<Expr>{m, k}, ones, merged) == std::vector<Expr>{x(0), m, x(0), k});
}
