// complex64 where an order is needed, and functions at infinities, NaN and branch cuts: by real, then by imaginary
// parts, as in MLX; a NaN in either part comes last.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "weft/weft.h"

using namespace weft;
using C = std::complex<float>;
using Z = std::complex<double>;
using Bools = std::vector<bool>;
using Positions = std::vector<uint32_t>;

namespace {

const float inf = INFINITY;

array of(const std::vector<C>& values, Shape shape = {}) {
  if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
  return array::from_data(values.data(), shape, complex64);
}
std::vector<C> values(const array& a) {
  CHECK(a.dtype() == complex64);
  const C* data = a.data<C>();
  return {data, data + a.size()};
}
bool same_part(double a, double b, double tolerance) {
  if (std::isnan(b)) return std::isnan(a);
  if (std::isinf(b)) return a == b;
  if (b == 0) return a == 0 && std::signbit(a) == std::signbit(b);
  return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}
void check_parts(const char* name, C at, C got, Z expected) {
  CAPTURE(name);
  CAPTURE(at);
  CAPTURE(got);
  CAPTURE(expected);
  CHECK(same_part(got.real(), expected.real(), 4e-6));
  CHECK(same_part(got.imag(), expected.imag(), 4e-6));
}
bool before(C a, C b) { return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag()); }

std::vector<C> mixed(size_t n) {
  std::vector<C> out;
  for (size_t k = 0; k < n; ++k)
    out.emplace_back(static_cast<float>(k * 7 % 5) - 2, static_cast<float>(k * 11 % 7) - 3);
  return out;
}

}  // namespace

TEST_CASE("complex numbers compare by real parts, equal ones by imaginary parts") {
  const array a = of({{1, 2}, {1, -2}, {0, 0}, {2, 0}, {-1, 5}, {1, NAN}, {NAN, 1}}),
              b = of({{1, 1}, {1, -2}, {-0.0f, -1}, {1, 9}, {-1, 6}, {1, 1}, {1, 1}});
  CHECK(less(a, b).to_vector<bool>() == Bools{0, 0, 0, 0, 1, 0, 0});
  CHECK(less_equal(a, b).to_vector<bool>() == Bools{0, 1, 0, 0, 1, 0, 0});
  CHECK(greater(a, b).to_vector<bool>() == Bools{1, 0, 1, 1, 0, 0, 0});
  CHECK(greater_equal(a, b).to_vector<bool>() == Bools{1, 1, 1, 1, 0, 0, 0});
  const array x = slice(a, {0}, {5}), y = slice(b, {0}, {5});
  CHECK(values(maximum(x, y)) == std::vector<C>{{1, 2}, {1, -2}, {0, 0}, {2, 0}, {-1, 6}});
  CHECK(values(minimum(x, y)) == std::vector<C>{{1, 1}, {1, -2}, {0, -1}, {1, 9}, {-1, 5}});
  for (const auto& f : {maximum, minimum})
    for (const C& z : values(f(of({{1, NAN}, {2, 0}}), of({{3, 1}, {1, NAN}}), {}))) CHECK(std::isnan(z.imag()));
  CHECK(values(clip(of({{1, 2}, {1, -2}, {-1, 5}, {0.5f, 3}}), array(0), array(1))) ==
        std::vector<C>{{1, 0}, {1, -2}, {0, 0}, {0.5f, 3}});
  CHECK(less(of({{1, 2}}), array(2)).item<bool>());
}

TEST_CASE("complex extremes, their places, and sorting") {
  const std::vector<C> x = mixed(35);
  const array a = of(x, {5, 7});
  const auto row = [&](size_t i) {
    return std::vector<C>(x.begin() + static_cast<std::ptrdiff_t>(7 * i),
                          x.begin() + static_cast<std::ptrdiff_t>(7 * i) + 7);
  };
  const std::vector<C> top = values(max(a, 1)), low = values(min(a, 1)), sorted = values(sort(a, 1)),
                       best = values(topk(a, 3, 1));
  const Positions at = argmax(a, 1).to_vector<uint32_t>(), least = argmin(a, 1).to_vector<uint32_t>(),
                  order = argsort(a, 1).to_vector<uint32_t>();
  for (size_t i = 0; i < 5; ++i) {
    const std::vector<C> r = row(i);
    std::vector<C> s = r;
    std::stable_sort(s.begin(), s.end(), before);
    CHECK(top[i] == s.back());
    CHECK(low[i] == s.front());
    CHECK(at[i] == static_cast<uint32_t>(std::max_element(r.begin(), r.end(), before) - r.begin()));
    CHECK(least[i] == static_cast<uint32_t>(std::min_element(r.begin(), r.end(), before) - r.begin()));
    for (size_t k = 0; k < 7; ++k) {
      CHECK(sorted[7 * i + k] == s[k]);
      CHECK(r[order[7 * i + k]] == s[k]);
    }
    CHECK(std::vector<C>(best.begin() + static_cast<std::ptrdiff_t>(3 * i),
                         best.begin() + static_cast<std::ptrdiff_t>(3 * i) + 3) ==
          std::vector<C>(s.end() - 3, s.end()));
  }
  CHECK(max(a).item<C>() == *std::max_element(x.begin(), x.end(), before));
  CHECK(values(partition(a, 3, 1)) == sorted);
  CHECK(argpartition(a, 3, 1).to_vector<uint32_t>() == order);
  CHECK(values(sort(transpose(a), 0)) == values(transpose(sort(a, 1))));
  CHECK(median(of({{2, 0}, {-1, 5}, {1, -2}, {1, 2}})).item<C>() == C(1, 0));
  CHECK(median(of({{2, 0}, {-1, 5}, {1, -2}})).item<C>() == C(1, -2));
  // Equal numbers keep their order; NaN in either part is last, and is an extreme.
  const array bad = of({{1, NAN}, {0, 0}, {NAN, 1}, {inf, -1}, {-inf, 3}, {1, 1}});
  CHECK(argsort(bad).to_vector<uint32_t>() == Positions{4, 1, 5, 3, 0, 2});
  CHECK(argsort(of({{1, 1}, {0, 2}, {1, 1}, {0, 2}})).to_vector<uint32_t>() == Positions{1, 3, 0, 2});
  CHECK(std::isnan(max(bad).item<C>().real()));
  CHECK(std::isnan(min(bad).item<C>().imag()));
  CHECK(argmax(bad).item<uint32_t>() == 0);
  CHECK(max(of({{-inf, -5}, {-inf, -7}})).item<C>() == C(-inf, -5));
  CHECK(values(sort(zeros({0}, complex64))).empty());
}

TEST_CASE("complex cumulative reductions") {
  const std::vector<C> x{{1, 2}, {1, -2}, {0.5f, 0.25f}, {2, 0}, {-1, 5}, {1, 2}, {0.75f, -1}};
  const array a = of(x);
  const size_t n = x.size();
  const C start_max(-inf, -inf), start_min(inf, inf);
  struct Cumulative {
    array (*f)(const array&, int, bool, bool, StreamOrDevice);
    C first;
    C (*next)(C, C);
  };
  const Cumulative cumulatives[] = {
      {[](const array& v, int axis, bool r, bool i, StreamOrDevice s) { return cumsum(v, axis, r, i, s); }, C(0),
       [](C p, C q) { return p + q; }},
      {[](const array& v, int axis, bool r, bool i, StreamOrDevice s) { return cumprod(v, axis, r, i, s); }, C(1),
       [](C p, C q) { return p * q; }},
      {cummax, start_max, [](C p, C q) { return before(q, p) ? p : q; }},
      {cummin, start_min, [](C p, C q) { return before(p, q) ? p : q; }},
  };
  for (const Cumulative& p : cumulatives)
    for (const bool reverse : {false, true})
      for (const bool inclusive : {false, true}) {
        const std::vector<C> got = values(p.f(a, 0, reverse, inclusive, {}));
        C total = p.first;
        for (size_t k = 0; k < n; ++k) {
          const size_t at = reverse ? n - 1 - k : k;
          const C next = k == 0 && inclusive ? x[at] : p.next(total, x[at]);
          const C expected = inclusive ? next : total;
          check_parts("cumulative", x[at], got[at], Z(expected));
          total = next;
        }
      }
  const std::vector<C> logs = values(logcumsumexp(a)), shifted = values(logcumsumexp(a, false, false));
  Z total = 0;
  for (size_t k = 0; k < n; ++k) {
    CHECK(std::abs(std::exp(Z(shifted[k])) - total) < 1e-4 * std::max(1.0, std::abs(total)));
    total += std::exp(Z(x[k]));
    CHECK(std::abs(std::exp(Z(logs[k])) - total) < 1e-4 * std::abs(total));
  }
  CHECK(shifted[0] == C(-inf, 0));
  CHECK(values(cummax(reshape(a, {7, 1}), 0)) == values(cummax(a, 0)));
}

TEST_CASE("statistics, sums of exponentials and rounding of complex numbers") {
  const std::vector<C> x{{1, 2}, {1, -2}, {0, 0}, {2, 0}, {-1, 5}, {1, 2}};
  const array a = of(x), v = var(a), e = logsumexp(a), p = softmax(a);
  Z mean = 0, sum = 0;
  for (const C& z : x) mean += Z(z) / 6.0, sum += std::exp(Z(z));
  double spread = 0;
  for (const C& z : x) spread += std::norm(Z(z) - mean);
  CHECK(v.dtype() == float32);
  CHECK(v.item<float>() == doctest::Approx(spread / 6));
  CHECK(weft::std(a, false, 1).dtype() == float32);
  CHECK(weft::std(a, false, 1).item<float>() == doctest::Approx(std::sqrt(spread / 5)));
  CHECK(std::abs(std::exp(Z(e.item<C>())) - sum) < 1e-5 * std::abs(sum));
  for (size_t k = 0; k < 6; ++k) CHECK(std::abs(Z(values(p)[k]) - std::exp(Z(x[k])) / sum) < 1e-5);
  check_parts("logsumexp", 0, logsumexp(of({{-inf, 0}, {-inf, 0}})).item<C>(), Z(-inf, 0));
  check_parts("logsumexp", 0, logsumexp(of({{inf, 1}, {2, 0}})).item<C>(), Z(inf, 1));
  check_parts("logaddexp", 0, logaddexp(of({{1, 2}}), of({{1, 1}})).item<C>(), Z(1.562563, 1.5));  // MLX's
  check_parts("logaddexp", 0, logaddexp(of({{inf, 1}}), of({{1, 1}})).item<C>(), Z(inf, 1));
  check_parts("logaddexp", 0, logaddexp(of({{-inf, 3}}), of({{1, 1}})).item<C>(), Z(1, 1));
  CHECK(values(round(of({{0.5f, 1.5f}, {2.5f, -0.75f}}))) == std::vector<C>{{0, 2}, {2, -1}});
  check_parts("round", 0, round(of({{1.2345f, -2.469f}}), 2).item<C>(), Z(1.23, -2.47));
  check_parts("floor_divide", 0, floor_divide(of({{1, 2}}), of({{1, 1}})).item<C>(),
              Z(1.5, 0.5));  // the quotient, as in MLX
  CHECK(values(arange(0.5, 5, 1.25, complex64)) == std::vector<C>{0.5f, 1.75f, 3.0f, 4.25f});
  CHECK(isposinf(of({{inf, 0}, {inf, 1}, {-inf, 0}})).to_vector<bool>() == Bools{1, 0, 0});
  CHECK(isneginf(of({{inf, 0}, {-inf, 1}, {-inf, 0}})).to_vector<bool>() == Bools{0, 0, 1});
  CHECK(isclose(of({{1, 2}, {1, 2}, {inf, 1}, {NAN, 1}}), of({{1, 2.000001f}, {1, 2.1f}, {inf, 1}, {NAN, 1}}))
            .to_vector<bool>() == Bools{1, 0, 1, 0});
  CHECK(isclose(of({{NAN, 1}}), of({{1, NAN}}), 1e-5, 1e-8, true).item<bool>());
  CHECK(allclose(a, a * array(C(1, 1e-6f))).item<bool>());
}

TEST_CASE("exp at infinities is C's") {
  for (float re : {-inf, -200.0f, -1.0f, 0.0f, 1.0f, 89.0f, 200.0f, inf, NAN})
    for (float im : {-inf, -2.0f, -0.0f, 0.0f, 1e-30f, 2.0f, inf, NAN}) {
      const C z(re, im), got = exp(of({z})).item<C>(), expected = std::exp(z);
      CAPTURE(z);
      CAPTURE(got);
      CAPTURE(expected);
      const auto same = [&](float a, float b) {
        return std::isnan(b) ? std::isnan(a)
                             : a == b || std::abs(a - b) <= 1e-5f * std::abs(b) ||
                                   (std::isinf(a) && std::isinf(b) && std::isinf(im));
      };
      CHECK(same(got.real(), expected.real()));
      CHECK(same(got.imag(), expected.imag()));
    }
}

TEST_CASE("functions and quotients at infinities and zeros are C's") {
  check_parts("sqrt", 0, sqrt(of({{-3, inf}})).item<C>(), Z(inf, inf));
  check_parts("sqrt", 0, sqrt(of({{-inf, 2}})).item<C>(), Z(0, inf));
  check_parts("sqrt", 0, sqrt(of({{inf, -2}})).item<C>(), Z(inf, -0.0));
  check_parts("sin", 0, sin(of({{0, inf}})).item<C>(), Z(0, inf));
  check_parts("cosh", 0, cosh(of({{inf, 0}})).item<C>(), Z(inf, 0));
  check_parts("tanh", 0, tanh(of({{-inf, 2}})).item<C>(), Z(-1, 0));
  check_parts("tanh", 0, tanh(of({{20, 1}})).item<C>(), Z(std::tanh(Z(20, 1))));
  check_parts("tanh", 0, tanh(of({{-0.0f, -0.0f}})).item<C>(), Z(-0.0, -0.0));
  check_parts("log1p", 0, log1p(of({{-0.0f, 0}})).item<C>(), Z(-0.0, 0));
  check_parts("divide", 0, divide(of({{2, 3}}), of({{inf, -inf}})).item<C>(), Z(-0.0, 0));
  check_parts("divide", 0, divide(of({{2, 3}}), of({{-0.0f, 0}})).item<C>(), Z(-inf, -inf));
  check_parts("reciprocal", 0, reciprocal(of({{0, 0}})).item<C>(), Z(inf, NAN));
  CHECK(abs(of({{NAN, -inf}})).item<float>() == inf);
  // Near 1 the imaginary part of tanh is that of 1 / cosh², which 1 - tanh² would lose.
  CHECK(std::abs(tanh(of({{10, 0.5f}})).item<C>().imag() / std::tanh(Z(10, 0.5)).imag() - 1) < 1e-5);
  CHECK(std::abs(arctanh(of({{1, 1e-20f}})).item<C>().real() / std::atanh(Z(1, 1e-20)).real() - 1) < 1e-5);
}

TEST_CASE("inverse functions on their cuts, near their branch points and at infinity are C's") {
  struct Function {
    const char* name;
    array (*weft)(const array&, StreamOrDevice);
    Z (*standard)(const Z&);
  };
  const Function functions[] = {
      {"arcsin", arcsin, [](const Z& z) { return std::asin(z); }},
      {"arccos", arccos, [](const Z& z) { return std::acos(z); }},
      {"arctan", arctan, [](const Z& z) { return std::atan(z); }},
      {"arcsinh", arcsinh, [](const Z& z) { return std::asinh(z); }},
      {"arccosh", arccosh, [](const Z& z) { return std::acosh(z); }},
      {"arctanh", arctanh, [](const Z& z) { return std::atanh(z); }},
  };
  std::vector<C> points;
  for (float x : {0.0f, -0.0f, 3.0f, -3.0f, 0.5f, -0.5f, 1.0001f, -0.9999f, 1e5f, -1e10f, 1e-5f, inf, -inf})
    for (float y : {0.0f, -0.0f, 2.0f, -2.0f, 0.25f, 1e-4f, -1e-4f, 1e8f, inf, -inf}) points.emplace_back(x, y);
  for (const Function& f : functions) {
    const std::vector<C> got = values(f.weft(of(points), {}));
    for (size_t k = 0; k < points.size(); ++k) {
      const Z expected = f.standard(Z(points[k]));
      CAPTURE(f.name);
      CAPTURE(points[k]);
      CAPTURE(got[k]);
      CAPTURE(expected);
      const auto same = [](double a, double b) {
        return std::isinf(b) ? a == b : std::abs(a - b) <= 4e-6 * std::max(1.0, std::abs(b));
      };
      CHECK(same(got[k].real(), expected.real()));
      CHECK(same(got[k].imag(), expected.imag()));
    }
  }
}

TEST_CASE("complex orders under compile and vmap") {
  const array a = of(mixed(24), {4, 6});
  const auto f = [](const std::vector<array>& v) {
    return std::vector<array>{sort(v[0], -1),     argsort(v[0], -1), max(v[0], -1),
                              cumprod(v[0], -1),  arccosh(v[0]),     maximum(v[0], conjugate(v[0])),
                              logsumexp(v[0], -1)};
  };
  const std::vector<array> plain = f({a}), compiled = compile(f)({a}), mapped = vmap(f)({a});
  for (size_t k = 0; k < plain.size(); ++k) {
    CAPTURE(k);
    CHECK(allclose(compiled[k], plain[k], 1e-5, 1e-5).item<bool>());
    CHECK(allclose(mapped[k], plain[k], 1e-5, 1e-5).item<bool>());
  }
}
