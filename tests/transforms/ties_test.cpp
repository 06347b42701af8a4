// Derivatives where arguments are equal, and of integers: the conventions are MLX's.
#include <cmath>

#include "support.h"
#include "weft/nn/functions.h"

using namespace weft;
using namespace weft::testing;

namespace {

Floats slope(const UnaryFunction& f, const array& x) {
  return grad([&](const array& a) { return sum(f(a)); })(x).to_vector<float>();
}
Floats pulled(const UnaryFunction& f, const array& x, const array& cotangent) {
  return vjp(f, x, cotangent).second.to_vector<float>();
}
Floats pushed(const UnaryFunction& f, const array& x, const array& tangent) {
  return jvp(f, x, tangent).second.to_vector<float>();
}

}  // namespace

TEST_CASE("of two equal arguments the second one has the gradient") {
  const array a = {1.0f, 2.0f, 3.0f, NAN}, b = {1.0f, 3.0f, 2.0f, 1.0f};
  for (const auto& f : {maximum, minimum}) {
    const Arrays g = vjp([&](const Arrays& v) { return Arrays{f(v[0], v[1], {})}; }, {a, b}, {ones({4})}).second;
    const bool greatest = f(a, b, {}).to_vector<float>()[1] == 3;
    CHECK(g[0].to_vector<float>() == (greatest ? Floats{0, 0, 1, 0} : Floats{0, 1, 0, 0}));
    CHECK(g[1].to_vector<float>() == (greatest ? Floats{1, 1, 0, 0} : Floats{1, 0, 1, 0}));
    const array moved = jvp([&](const Arrays& v) { return Arrays{f(v[0], v[1], {})}; }, {a, b},
                            {array({1.0f, 1.0f, 1.0f, 1.0f}), array({10.0f, 10.0f, 10.0f, 10.0f})})
                            .second[0];
    CHECK(moved.to_vector<float>() == (greatest ? Floats{10, 10, 1, 0} : Floats{10, 1, 10, 0}));
  }
  const array x = {-1.0f, 0.0f, 0.5f, 1.0f, 2.0f};
  CHECK(slope([](const array& v) { return clip(v, array(0.0f), array(1.0f)); }, x) == Floats{0, 0, 1, 0, 0});
}

TEST_CASE("activations where their pieces meet") {
  const array x = {-1.0f, 0.0f, 1.0f, 6.0f, 7.0f};
  CHECK(slope(nn::relu, x) == Floats{0, 0, 1, 1, 1});
  CHECK(slope(nn::relu2, x) == Floats{0, 0, 2, 12, 14});
  CHECK(slope(nn::relu6, x) == Floats{0, 0, 1, 0, 0});
}

TEST_CASE("a cumulative reduction's extreme belongs to the latest of equals") {
  const array x = {3.0f, 3.0f, 1.0f, 5.0f, 5.0f}, g = {1.0f, 10.0f, 100.0f, 1000.0f, 10000.0f};
  struct Case {
    array (*f)(const array&, int, bool, bool, StreamOrDevice);
    bool reverse, inclusive;
    Floats expected;
  };
  const Case cases[] = {
      {cummax, false, true, {1, 110, 0, 1000, 10000}}, {cummax, false, false, {10, 1100, 0, 10000, 0}},
      {cummax, true, true, {0, 0, 0, 1111, 10000}},    {cummax, true, false, {0, 0, 0, 111, 1000}},
      {cummin, false, true, {1, 10, 11100, 0, 0}},     {cummin, false, false, {10, 100, 11000, 0, 0}},
      {cummin, true, true, {0, 0, 111, 1000, 10000}},  {cummin, true, false, {0, 0, 11, 100, 1000}},
  };
  for (const Case& c : cases) {
    const auto f = [&](const array& v) { return c.f(v, 0, c.reverse, c.inclusive, {}); };
    CHECK(pulled(f, x, g) == c.expected);
    // The tangent is the transpose's: <g, J t> = <J' g, t>.
    const array t = {1.0f, 2.0f, 4.0f, 8.0f, 16.0f};
    CHECK(sum(array(jvp(f, x, t).second) * g).item<float>() == sum(vjp(f, x, g).second * t).item<float>());
  }
}

TEST_CASE("every update that equals a scattered extreme has the whole gradient, and so has the operand") {
  const array a = {1.0f, 5.0f, 3.0f}, u = {1.0f, 2.0f, 5.0f, 5.0f}, i = {0, 0, 1, 1}, g = {1.0f, 10.0f, 100.0f};
  const auto check = [&](const auto& f, const Floats& by_a, const Floats& by_u) {
    const Arrays got = vjp([&](const Arrays& v) { return Arrays{f(v[0], v[1])}; }, {a, u}, {g}).second;
    CHECK(got[0].to_vector<float>() == by_a);
    CHECK(got[1].to_vector<float>() == by_u);
    const Arrays t{array({1.0f, 2.0f, 4.0f}), array({8.0f, 16.0f, 32.0f, 64.0f})};
    const array moved = jvp([&](const Arrays& v) { return Arrays{f(v[0], v[1])}; }, {a, u}, t).second[0];
    CHECK(sum(moved * g).item<float>() == (sum(got[0] * t[0]) + sum(got[1] * t[1])).item<float>());
  };
  check(
      [&](const array& v, const array& w) {
        return scatter_max(v, {i}, reshape(w, {4, 1}), {0});
      },
      {0, 10, 100}, {0, 1, 10, 10});
  check(
      [&](const array& v, const array& w) {
        return scatter_min(v, {i}, reshape(w, {4, 1}), {0});
      },
      {1, 10, 100}, {1, 0, 10, 10});
}

TEST_CASE("equal extremes of a reduction share") {
  CHECK(slope([](const array& v) { return max(v); }, array({1.0f, 3.0f, 3.0f})) == Floats{0, 0.5f, 0.5f});
  CHECK(pushed([](const array& v) { return max(v); }, array({1.0f, 3.0f, 3.0f}), array({1.0f, 2.0f, 4.0f})) ==
        Floats{3});
}

TEST_CASE("cotangents of integers are integers, cast on the way") {
  const array x = {1.5f, 2.5f}, c = {2.7f, 2.0f};
  CHECK(pulled([](const array& a) { return astype(a, int32); }, x, c) == Floats{2, 2});
  CHECK(pulled([](const array& a) { return astype(a, bool_); }, x, c) == Floats{1, 1});
  CHECK(pulled([&](const array& a) { return astype(a, int32) * x; }, x, c) == Floats{4, 5});
  const array moved = jvp([](const array& a) { return astype(a, int32); }, x, c).second;
  CHECK(moved.dtype() == int32);
  CHECK(moved.to_vector<int>() == std::vector<int>{2, 2});

  struct Case {
    const char* name;
    UnaryFunction f;
    std::vector<int> expected;
  };
  const array n = {3, -4, 5};
  const Case cases[] = {
      {"negative", [](const array& a) { return -a; }, {-2, -2, -2}},
      {"abs", [](const array& a) { return abs(a); }, {2, -2, 2}},
      {"square", [](const array& a) { return square(a); }, {12, -16, 20}},
      {"product", [](const array& a) { return a * a; }, {12, -16, 20}},
      {"power", [](const array& a) { return power(a, array(2)); }, {12, -16, 20}},
      {"remainder", [](const array& a) { return a % array(2); }, {2, 2, 2}},
      {"maximum", [](const array& a) { return maximum(a, array(3)); }, {0, 0, 2}},
      {"minimum", [](const array& a) { return minimum(a, array(3)); }, {0, 2, 0}},
      {"clip", [](const array& a) { return clip(a, array(-3), array(4)); }, {2, 0, 0}},
      {"sum", [](const array& a) { return sum(a, true); }, {2, 2, 2}},
      {"prod", [](const array& a) { return prod(a, true); }, {-40, 30, -24}},
      {"max", [](const array& a) { return max(a, true); }, {0, 0, 2}},
      {"sort", [](const array& a) { return sort(a); }, {2, 2, 2}},
      {"cumsum", [](const array& a) { return cumsum(a); }, {6, 4, 2}},
      {"cumprod", [](const array& a) { return cumprod(a); }, {-46, 36, -24}},
      {"cummax", [](const array& a) { return cummax(a); }, {4, 0, 2}},
      {"cummin", [](const array& a) { return cummin(a); }, {2, 4, 0}},
      {"where", [](const array& a) { return where(a > array(0), a, array(0) * a); }, {2, 0, 2}},
      {"take",
       [](const array& a) {
         return take(a, array({0, 0, 1}));
       },
       {4, 2, 0}},
      {"concatenate",
       [](const array& a) {
         return concatenate({slice(a, {0}, {1}), slice(a, {1}, {3})});
       },
       {2, 2, 2}},
      {"trunc", [](const array& a) { return trunc(a); }, {2, 2, 2}},
      {"broadcast bools",
       [](const array& a) {
         return broadcast_to(astype(a, bool_), {2, 3});
       },
       {1, 1, 1}},
      {"bools taken",
       [](const array& a) {
         return take(astype(a, bool_), array({0, 0, 1}));
       },
       {1, 1, 0}},
      // discrete functions have none
      {"sign", [](const array& a) { return sign(a); }, {0, 0, 0}},
      {"floor", [](const array& a) { return floor(a); }, {0, 0, 0}},
      {"ceil", [](const array& a) { return ceil(a); }, {0, 0, 0}},
      {"round", [](const array& a) { return round(a); }, {0, 0, 0}},
      {"floor_divide", [](const array& a) { return floor_divide(a, array(2)); }, {0, 0, 0}},
      {"bitwise_and", [](const array& a) { return bitwise_and(a, array(2)); }, {0, 0, 0}},
      {"left_shift", [](const array& a) { return left_shift(a, array(1)); }, {0, 0, 0}},
      {"greater", [](const array& a) { return a > array(2); }, {0, 0, 0}},
      {"argmax", [](const array& a) { return argmax(a, true); }, {0, 0, 0}},
      {"argsort", [](const array& a) { return argsort(a); }, {0, 0, 0}},
      {"stop_gradient", [](const array& a) { return stop_gradient(a); }, {0, 0, 0}},
  };
  for (const Case& k : cases) {
    CAPTURE(k.name);
    const array cotangent = ones(k.f(n).shape()) * 2.0f, got = vjp(k.f, n, cotangent).second;
    CHECK(got.dtype() == int32);
    CHECK(got.to_vector<int>() == k.expected);
    const array tangent = jvp(k.f, n, array({2, 3, 4})).second;
    CHECK(tangent.dtype() == k.f(n).dtype());
  }
  CHECK(pushed([](const array& a) { return a * a; }, array({3, -4, 5}), array({2, 3, 4})) == Floats{12, -24, 40});
}

TEST_CASE("gradients of and by integers") {
  CHECK(grad([](const array& a) { return a * a; })(array(3)).item<int>() == 6);
  CHECK(grad([](const array& a) { return a * a; })(array(3)).dtype() == int32);
  CHECK(grad([](const array& a) { return astype(a * a, int32); })(array(3.0f)).item<float>() == 6);
  CHECK(grad([](const array& a) { return a; })(array(true)).item<bool>());
  CHECK(grad([](const array& a) { return argmax(a); })(array({3.0f, 2.0f})).to_vector<float>() == Floats{0, 0});
  CHECK(vjp([](const array& a) { return a * a; }, array(3), array(2.7f)).second.item<int>() == 12);
}
