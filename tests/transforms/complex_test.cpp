// Derivatives of complex functions: cotangents pair with tangents by Re(conj(g) t), and every function's vjp is the
// transpose of its jvp, which is its difference quotient.
#include <complex>

#include "support.h"
#include "weft/compile.h"
#include "weft/fft.h"

using namespace weft;
using namespace weft::testing;

namespace {

using C = std::complex<float>;
using Z = std::complex<double>;

array of(const std::vector<C>& values, Shape shape = {}) {
  if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
  return array::from_data(values.data(), shape, complex64);
}
std::vector<Z> values(const array& a) {
  const array z = astype(a, complex64);
  const C* data = z.data<C>();
  return {data, data + z.size()};
}
array draw(const Shape& shape, Dtype dtype, uint64_t seed) {
  const array re = random::normal(shape, float32, 0, 1, random::key(seed)),
              im = random::normal(shape, float32, 0, 1, random::key(seed + 1000));
  return dtype == complex64 ? re + im * array(C(0, 1)) : re;
}
double pairing(const array& g, const array& t) {
  const std::vector<Z> a = values(g), b = values(t);
  double total = 0;
  for (size_t k = 0; k < a.size(); ++k) total += (std::conj(a[k]) * b[k]).real();
  return total;
}
bool close(Z a, Z b, double tolerance = 1e-5) { return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b)); }

/// Against differences along a random direction; then the vjp against the jvp.
void check_derivatives(const char* name, const UnaryFunction& f, const array& x) {
  CAPTURE(name);
  const array t = draw(x.shape(), x.dtype(), 5), y = f(x), g = draw(y.shape(), y.dtype(), 9),
              moved = jvp(f, x, t).second, pulled = vjp(f, x, g).second;
  CHECK(moved.dtype() == y.dtype());
  CHECK(pulled.dtype() == x.dtype());
  const float h = 0.01f;
  const auto at = [&](float s) { return f(x + array(s * h) * t); };
  const std::vector<Z> slope = values((array(8.0f) * (at(1) - at(-1)) - (at(2) - at(-2))) / array(12 * h)),
                       given = values(moved);
  for (size_t k = 0; k < slope.size(); ++k) {
    CAPTURE(given[k]);
    CAPTURE(slope[k]);
    CHECK(close(given[k], slope[k], 3e-3));
  }
  const double forward = pairing(g, moved), backward = pairing(pulled, t);
  CAPTURE(forward);
  CAPTURE(backward);
  CHECK(std::abs(forward - backward) <= 2e-5 * std::max(1.0, std::abs(forward)));
}

array complexes() {
  return of({{0.5f, -1.0f}, {1.5f, 0.25f}, {-1.25f, 0.75f}, {-0.5f, -0.75f}, {0.25f, 1.75f}, {0.75f, 0.5f}});
}

}  // namespace

TEST_CASE("gradients by complex arguments: df/dx + i df/dy, as in MLX and PyTorch") {
  const C z(1, 2);
  const auto slope = [&](const UnaryFunction& f) { return values(grad(f)(array(z)))[0]; };
  CHECK(slope([](const array& a) { return real(a * a); }) == Z(2, -4));
  CHECK(slope([](const array& a) { return imag(a); }) == Z(0, 1));
  CHECK(slope([](const array& a) { return real(a); }) == Z(1, 0));
  CHECK(close(slope([](const array& a) { return abs(a); }), Z(z) / std::abs(Z(z))));
  CHECK(close(slope([](const array& a) { return square(abs(a)); }), 2.0 * Z(z)));
  CHECK(close(slope([](const array& a) { return a * a; }),
              2.0 * std::conj(Z(z))));  // of a complex value: the cotangent 1
  CHECK(vjp([](const array& x) { return x * array(C(2, 4)); }, array(3.0f), array(C(2, 3))).second.item<float>() == 16);
  // MLX's values of vjp with the cotangent 2 + 3i.
  const auto pulled = [&](const UnaryFunction& f) { return values(vjp(f, array(z), array(C(2, 3))).second)[0]; };
  CHECK(close(pulled([](const array& a) { return exp(a); }), Z(2, 3) * std::conj(std::exp(Z(z)))));
  CHECK(close(pulled([](const array& a) { return conjugate(a); }), Z(2, -3)));
  CHECK(close(pulled([](const array& a) { return array(C(3, -1)) / a; }),
              Z(2, 3) * std::conj(-Z(3, -1) / (Z(z) * Z(z)))));
}

TEST_CASE("the second derivative of abs, also on the axes: 1 / |z| across, 0 along") {
  const UnaryFunction size = [](const array&a) { return abs(a); }, slope = grad(size);
  const array along(C(1, 0)), across(C(0, 1));
  const auto curved = [&](const array& z, const array& t) { return values(jvp(slope, z, t).second)[0]; };
  CHECK(close(curved(array(C(2, 0)), along), 0));
  CHECK(close(curved(array(C(2, 0)), across), Z(0, 0.5)));
  CHECK(close(curved(array(C(0, -4)), along), 0.25));
  CHECK(close(curved(array(C(0, -4)), across), 0));
  CHECK(values(slope(array(C(0, 0))))[0] == Z(0, 0));
}

TEST_CASE("complex functions of one argument: differences, and vjp against jvp") {
  const std::pair<const char*, UnaryFunction> functions[] = {
      {"exp", [](const array& a) { return exp(a); }},
      {"log", [](const array& a) { return log(a); }},
      {"log2", [](const array& a) { return log2(a); }},
      {"log10", [](const array& a) { return log10(a); }},
      {"log1p", [](const array& a) { return log1p(a); }},
      {"sin", [](const array& a) { return sin(a); }},
      {"cos", [](const array& a) { return cos(a); }},
      {"tan", [](const array& a) { return tan(a); }},
      {"sinh", [](const array& a) { return sinh(a); }},
      {"cosh", [](const array& a) { return cosh(a); }},
      {"tanh", [](const array& a) { return tanh(a); }},
      {"arcsin", [](const array& a) { return arcsin(a); }},
      {"arccos", [](const array& a) { return arccos(a); }},
      {"arctan", [](const array& a) { return arctan(a * array(0.5f)); }},
      {"arcsinh", [](const array& a) { return arcsinh(a * array(0.5f)); }},
      {"arccosh", [](const array& a) { return arccosh(a); }},
      {"arctanh", [](const array& a) { return arctanh(a); }},
      {"sqrt", [](const array& a) { return sqrt(a); }},
      {"rsqrt", [](const array& a) { return rsqrt(a); }},
      {"square", [](const array& a) { return square(a); }},
      {"reciprocal", [](const array& a) { return reciprocal(a); }},
      {"negative", [](const array& a) { return -a; }},
      {"conjugate", [](const array& a) { return conjugate(a); }},
      {"real", [](const array& a) { return real(a); }},
      {"imag", [](const array& a) { return imag(a); }},
      {"abs", [](const array& a) { return abs(a); }},
      {"sign", [](const array& a) { return sign(a); }},
      {"power", [](const array& a) { return power(a, array(C(1.5f, -0.5f))); }},
      {"power of a constant", [](const array& a) { return power(array(C(1.5f, -0.5f)), a); }},
      {"logaddexp", [](const array& a) { return logaddexp(a, a * array(C(0.5f, 1))); }},
      {"product", [](const array& a) { return a * exp(a) * conjugate(a); }},
      {"quotient", [](const array& a) { return sin(a) / (a + array(C(0, 3))); }},
  };
  for (const auto& [name, f] : functions) check_derivatives(name, f, complexes());
}

TEST_CASE("complex functions along axes: differences, and vjp against jvp") {
  const std::pair<const char*, UnaryFunction> functions[] = {
      {"sum", [](const array& a) { return sum(a, 1); }},
      {"mean", [](const array& a) { return mean(a, 0); }},
      {"prod", [](const array& a) { return prod(a, 1); }},
      {"max", [](const array& a) { return max(a, 1); }},
      {"min", [](const array& a) { return min(a); }},
      {"var", [](const array& a) { return var(a, 1); }},
      {"std", [](const array& a) { return weft::std(a, 0, false, 1); }},
      {"logsumexp", [](const array& a) { return logsumexp(a, 1); }},
      {"softmax", [](const array& a) { return softmax(a, 1); }},
      {"cumsum", [](const array& a) { return cumsum(a, 1, true, false); }},
      {"cumprod", [](const array& a) { return cumprod(a, 1); }},
      {"cummax", [](const array& a) { return cummax(a, 1); }},
      {"cummin", [](const array& a) { return cummin(a, 1, true); }},
      {"exclusive cummax",
       [](const array& a) {
         return slice(cummax(a, 1, false, false), {0, 1}, {2, 3});
       }},
      {"exclusive cummin",
       [](const array& a) {
         return slice(cummin(a, 1, false, false), {0, 1}, {2, 3});
       }},
      {"logcumsumexp", [](const array& a) { return logcumsumexp(a, 1); }},
      {"sort", [](const array& a) { return sort(a, 1); }},
      {"topk", [](const array& a) { return topk(a, 2, 1); }},
      {"median", [](const array& a) { return median(a, 1); }},
      {"maximum", [](const array& a) { return maximum(a, array(C(0.6f, 0))); }},
      {"clip", [](const array& a) { return clip(a, array(C(-1, 0)), array(C(0.6f, 0))); }},
      {"take",
       [](const array& a) {
         return take(a, array({2, 0, 2}), 1) * a;
       }},
      {"matmul", [](const array& a) { return matmul(a, transpose(conjugate(a) * a)); }},
      {"where", [](const array& a) { return where(real(a) > array(0.0f), a * a, conjugate(a)); }},
      {"concatenate",
       [](const array& a) {
         return concatenate({a * a, transpose(transpose(a))}, 1);
       }},
      {"scatter",
       [](const array& a) {
         return scatter_add(a, {array({1})}, reshape(square(slice(a, {0, 0}, {1, 3})), {1, 1, 3}), {0});
       }},
      {"slice_update",
       [](const array& a) {
         return slice_update(a, square(slice(a, {0, 0}, {1, 3})), Shape{1, 0}, Shape{2, 3}) * a;
       }},
      {"fft", [](const array& a) { return fft::fft(a); }},
      {"ifft", [](const array& a) { return fft::ifft(a, 4, 1); }},
      {"irfft", [](const array& a) { return fft::irfft(a); }},
      {"norm", [](const array& a) { return sqrt(sum(square(abs(a)))); }},
  };
  for (const auto& [name, f] : functions) check_derivatives(name, f, reshape(complexes(), {2, 3}));
  const array x = {0.5f, -1.0f, 2.0f, 0.25f};
  check_derivatives(
      "rfft of real numbers", [](const array& a) { return fft::rfft(a); }, x);
  check_derivatives(
      "complex from real numbers", [](const array& a) { return exp(a * array(C(0.5f, 1))); }, x);
  check_derivatives(
      "real parts of a function of real numbers", [](const array& a) { return real(exp(a * array(C(0.5f, 1)))); }, x);
}

TEST_CASE("complex derivatives under compile, vmap, a second derivative, and rules of one's own") {
  const array x = complexes();
  const UnaryFunction f = [](const array& a) { return real(exp(a) / a) + square(abs(a)); };
  const UnaryFunction slopes = grad([&](const array& a) { return sum(f(a)); });
  const std::vector<Z> expected = values(slopes(x));
  const std::vector<Z> compiled = values(compile([&](const Arrays&a) { return Arrays{slopes(a[0])}; })({x})[0]),
                       mapped = values(vmap(grad(f))(x));
  for (size_t k = 0; k < expected.size(); ++k) {
    const Z z = values(x)[k];
    CHECK(close(expected[k], std::conj(std::exp(z) / z - std::exp(z) / (z * z)) + 2.0 * z));
    CHECK(close(compiled[k], expected[k]));
    CHECK(close(mapped[k], expected[k]));
  }
  check_derivatives(
      "second", [&](const array& a) { return slopes(a); }, x);
  // A user's vjp is taken as it is.
  const auto doubled =
      custom_vjp([](const Arrays& a) { return Arrays{a[0] * array(2.0f)}; },
                 [](const Arrays&, const Arrays& g, const Arrays&) { return Arrays{g[0] * array(C(0, 5))}; });
  CHECK(values(vjp([&](const array& a) { return doubled({a})[0]; }, array(C(1, 2)), array(C(1, 0))).second)[0] ==
        Z(0, 5));
}
