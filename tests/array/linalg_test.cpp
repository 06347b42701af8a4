// Decompositions put together again, against golden values of NumPy, their derivatives against finite differences in
// float64, batches, edges, and what is refused.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "weft/weft.h"

using namespace weft;

namespace {

/// Numbers in [-1, 1] that follow no line.
array sample(const Shape& shape, double seed, Dtype dtype = float64) {
  std::vector<double> v;
  for (int64_t k = 0; k < num_elements(shape); ++k)
    v.push_back(std::sin(seed + 12.9898 * static_cast<double>(k + 1) * static_cast<double>(k % 7 + 1)));
  return astype(array::from_data(v.data(), shape, float64), dtype);
}
array transposed(const array& a) { return swapaxes(a, -1, -2); }
array unit(int n, Dtype dtype = float64) { return eye(n, dtype); }
array positive(int n, double seed, Shape lead = {}, Dtype dtype = float64) {
  lead.push_back(n), lead.push_back(n);
  const array m = sample(lead, seed, dtype);
  return matmul(m, transposed(m)) + unit(n, dtype);
}
array of(const std::vector<double>& values, Shape shape, Dtype dtype = float64) {
  return astype(array::from_data(values.data(), std::move(shape), float64), dtype);
}

double distance(const array& a, const array& b) {
  REQUIRE(a.shape() == b.shape());
  return a.size() == 0 ? 0 : max(abs(astype(a, float64) - astype(b, float64))).item<double>();
}
double tolerance(Dtype t) { return t == float64 ? 1e-11 : 2e-5; }
bool all_nan(const array& a) { return all(isnan(a)).item<bool>(); }

const array& tall() {
  static const array a = of({1, 2, 0.5, 3, -1, 4, 2, 2, -3, 0.5, 1, 1}, {4, 3});
  return a;
}
const array& square3() {
  static const array a = of({0, 2, 1, 3, -1, 2, 1, 1, 1}, {3, 3});
  return a;
}

/// The gradient and the tangents of a scalar function against central differences along one direction; and the
/// gradient's own derivative, where `second` says so.
void differentiates(const std::function<array(const array&)>& f, const array& x, bool second = true) {
  const array direction = sample(x.shape(), 0.7);
  const auto along = [&](const std::function<array(const array&)>& g) {
    const array h(1e-5, float64);
    return (g(x + direction * h) - g(x - direction * h)) * array(0.5e5, float64);
  };
  const double expected = along(f).item<double>(), scale = std::max(1.0, std::fabs(expected));
  CHECK(sum(grad(f)(x) * direction).item<double>() == doctest::Approx(expected).epsilon(2e-6 * scale));
  CHECK(jvp(f, x, direction).second.item<double>() == doctest::Approx(expected).epsilon(2e-6 * scale));
  if (!second || default_device().type == Device::gpu)
    return;  // graphs of ordinary operators, the same on every device
  const array weight = sample(x.shape(), 2.3);
  const auto slope = [&](const array& v) { return sum(grad(f)(v) * weight); };
  const double twice = along(slope).item<double>();
  CHECK(sum(grad(slope)(x) * direction).item<double>() ==
        doctest::Approx(twice).epsilon(1e-5 * std::max(1.0, std::fabs(twice))));
}
array weighted(const array& v, double seed) { return sum(v * sample(v.shape(), seed)); }

}  // namespace

TEST_CASE("linalg: factors put together are the matrix") {
  for (const auto& [t, lead] : {std::pair{float32, Shape{3}}, {float64, Shape{2, 2}}}) {
    const double off = tolerance(t);
    for (const int n : {1, 17}) {
      CAPTURE(n);
      const array a = positive(n, n, lead, t);
      const array l = linalg::cholesky(a), u = linalg::cholesky(a, true);
      CHECK(distance(matmul(l, transposed(l)), a) < n * off);
      CHECK(distance(matmul(transposed(u), u), a) < n * off);
      CHECK(distance(tril(l), l) == 0);
      CHECK(distance(matmul(linalg::cholesky_inv(l), a), broadcast_to(unit(n, t), a.shape())) < 10 * n * off);
      CHECK(distance(linalg::cholesky_inv(u, true), linalg::cholesky_inv(l)) < 10 * n * off);
      CHECK(distance(matmul(linalg::tri_inv(l), l), broadcast_to(unit(n, t), a.shape())) < n * off);
      CHECK(distance(matmul(linalg::tri_inv(u, true), u), broadcast_to(unit(n, t), a.shape())) < n * off);
      const auto [w, v] = linalg::eigh(a);
      CHECK(distance(matmul(v * expand_dims(w, -2), transposed(v)), a) < 3 * n * off);
      CHECK(distance(matmul(transposed(v), v), broadcast_to(unit(n, t), a.shape())) < n * off);
      CHECK(distance(sort(w, -1), w) == 0);
      CHECK(distance(linalg::eigvalsh(a, "U"), w) < 2 * n * off);
    }
    for (const auto& [m, n] : {std::pair{1, 1}, {19, 8}, {3, 6}}) {
      Shape shape = lead;
      shape.push_back(m), shape.push_back(n);
      const array a = sample(shape, m + n, t);
      const int k = std::min(m, n);
      const auto [q, r] = linalg::qr(a);
      CHECK(distance(matmul(q, r), a) < 20 * off);
      CHECK(q.shape().back() == k);
      CHECK(distance(matmul(transposed(q), q), broadcast_to(unit(k, t), matmul(transposed(q), q).shape())) < 20 * off);
      CHECK(distance(triu(r), r) == 0);
      const std::vector<array> f = linalg::svd(a);
      CHECK(f[0].shape().back() == m);
      CHECK(f[2].shape().back() == n);
      CHECK(distance(matmul(transposed(f[0]), f[0]), broadcast_to(unit(m, t), f[0].shape())) < 20 * off);
      CHECK(distance(matmul(f[2], transposed(f[2])), broadcast_to(unit(n, t), f[2].shape())) < 20 * off);
      const array u = split(f[0], Shape{k}, -1)[0], vt = split(f[2], Shape{k}, -2)[0];
      CHECK(distance(matmul(u * expand_dims(f[1], -2), vt), a) < 20 * off);
      CHECK(distance(linalg::svd(a, false)[0], f[1]) < 20 * off);
      const array p = linalg::pinv(a);
      CHECK(distance(matmul(matmul(a, p), a), a) < 200 * off);
      const std::vector<array> plu = linalg::lu(a);
      CHECK(plu[0].dtype() == uint32);
      CHECK(distance(matmul(take_along_axis(plu[1], expand_dims(plu[0], -1), -2), plu[2]), a) < 20 * off);
      CHECK(distance(tril(plu[1]), plu[1]) == 0);
      CHECK(distance(triu(plu[2]), plu[2]) == 0);
    }
  }
}

TEST_CASE("linalg: values, orders and signs are NumPy's") {
  const array a = of({4, 1, -2, 1, 3, 0.5, -2, 0.5, 6}, {3, 3});
  CHECK(distance(linalg::cholesky(a), of({2, 0, 0, 0.5, 1.6583124, 0, -1, 0.60302269, 2.15322169}, {3, 3})) < 1e-7);
  CHECK(distance(linalg::eigvalsh(a), of({1.76138721, 4, 7.23861279}, {3})) < 1e-7);
  const auto [q, r] = linalg::qr(tall());
  CHECK(distance(q, of({-0.26490647, 0.58028816, 0.53062579, -0.79471941, -0.57448528, 0.19236204, -0.52981294,
                        0.49904782, -0.67326713, -0.13245324, 0.29014408, 0.47764472},
                       {4, 3})) < 1e-7);
  CHECK(distance(r, of({-3.77491722, -0.92717265, -1.8543453, 0, 3.02330132, -3.21479641, 0, 0, 3.53220717}, {3, 3})) <
        1e-7);
  CHECK(distance(linalg::svd(tall(), false)[0], of({5.58854429, 4.00253314, 1.80219342}, {3})) < 1e-7);
  const auto [packed, pivots] = linalg::lu_factor(tall());
  CHECK(distance(packed, of({3, -1, 4, 2.0 / 3, 8.0 / 3, -17.0 / 3, 1.0 / 3, 0.875, 4.125, 1.0 / 6, 0.4375, 0.68181818},
                            {4, 3})) < 1e-7);
  CHECK(array_equal(pivots, astype(array({1, 2, 2}), uint32)).item<bool>());
  CHECK(linalg::det(square3()).item<double>() == doctest::Approx(2));
  CHECK(linalg::det(stack({square3(), transposed(square3()) * array(-1.0, float64)})).to_vector<double>()[1] ==
        doctest::Approx(-2));
  CHECK(linalg::slogdet(square3()).first.item<double>() == 1);
  CHECK(linalg::slogdet(square3()).second.item<double>() == doctest::Approx(std::log(2.0)));
  CHECK(distance(linalg::inv(square3()), of({-1.5, -0.5, 2.5, -0.5, -0.5, 1.5, 2, 1, -3}, {3, 3})) < 1e-12);
  const array w = linalg::eigvals(of({0, -2, 0, 1, 1, 0, 0, 3, -4}, {3, 3}));
  CHECK(w.dtype() == complex128);
  CHECK(distance(real(w), of({-4, 0.5, 0.5}, {3})) < 1e-12);
  CHECK(distance(imag(w), of({0, -std::sqrt(1.75), std::sqrt(1.75)}, {3})) < 1e-12);
}

TEST_CASE("linalg: general eigenvectors") {
  for (const int n : {1, 2, 6, 9}) {
    const array a = sample({3, n, n}, n, float32);
    const auto [w, v] = linalg::eig(a);
    CHECK(v.shape() == Shape{3, n, n});
    const array left = matmul(astype(a, complex64), v), right = v * expand_dims(w, -2);
    CHECK(max(abs(left - right)).item<float>() < 2e-5f);
    CHECK(max(abs(sum(square(abs(v)), -2) - array(1.0f))).item<float>() < 1e-5f);
  }
}

TEST_CASE("linalg: systems, vectors and leading axes") {
  const array a = positive(4, 1, {3}), b = sample({3, 4, 2}, 2);
  CHECK(distance(matmul(a, linalg::solve(a, b)), b) < 1e-12);
  CHECK(linalg::solve(a, sample({4}, 1)).shape() == Shape{3, 4});
  const array one = positive(4, 3), many = sample({2, 3, 4, 5}, 4), wide = linalg::solve(one, many);
  CHECK(distance(matmul(one, wide), many) < 1e-11);
  const array l = linalg::cholesky(one);
  CHECK(distance(matmul(l, linalg::solve_triangular(l + triu(sample({4, 4}, 1), 1), many)), many) <
        1e-11);  // the other part is not read
  CHECK(distance(matmul(transposed(l), linalg::solve_triangular(transposed(l), many, true)), many) < 1e-11);
  const array large = sample({150, 150}, 5) + unit(150) * array(10.0, float64);
  CHECK(distance(matmul(large, linalg::inv(large)), unit(150)) < 1e-11);
  CHECK(linalg::slogdet(large).second.item<double>() ==
        doctest::Approx(sum(log(linalg::svd(large, false)[0])).item<double>()));
}

TEST_CASE("linalg: large matrices") {
  for (const Dtype t : {float32, float64}) {
    const double off = 100 * tolerance(t);
    const int n = 96;
    const array a = positive(n, 1, {2}, t), high = sample({2, 130, n}, 2, t), wide = transposed(high);
    const array ones = broadcast_to(unit(n, t), {2, n, n}), l = linalg::cholesky(a);
    CHECK(distance(matmul(l, transposed(l)), a) < off);
    CHECK(distance(tril(l), l) == 0);
    for (const array& right : {wide, split(wide, Shape{7}, -1)[0]}) {
      CHECK(distance(matmul(l, linalg::solve_triangular(l, right)), right) < off);
      CHECK(distance(matmul(transposed(l), linalg::solve_triangular(transposed(l), right, true)), right) < off);
      CHECK(distance(matmul(a, linalg::solve(a, right)), right) < 10 * off);
    }
    const auto [w, v] = linalg::eigh(a);
    CHECK(distance(matmul(v * expand_dims(w, -2), transposed(v)), a) < off);
    CHECK(distance(linalg::eigvalsh(a), w) < off);
    for (const array& m : {high, wide}) {
      const auto [q, r] = linalg::qr(m);
      CHECK(distance(matmul(q, r), m) < off);
      CHECK(distance(matmul(transposed(q), q), ones) < off);
      const std::vector<array> f = linalg::svd(m);
      CHECK(distance(matmul(split(f[0], Shape{n}, -1)[0] * expand_dims(f[1], -2), split(f[2], Shape{n}, -2)[0]), m) <
            off);
      CHECK(distance(matmul(transposed(f[0]), f[0]), broadcast_to(unit(f[0].shape().back(), t), f[0].shape())) < off);
      CHECK(distance(linalg::svd(m, false)[0], f[1]) < off);
      const std::vector<array> plu = linalg::lu(m);
      CHECK(distance(matmul(take_along_axis(plu[1], expand_dims(plu[0], -1), -2), plu[2]), m) < off);
    }
    CHECK(all_nan(linalg::cholesky(-a)));
  }
}

TEST_CASE("linalg: many small matrices") {
  for (const Dtype t : {float32, float64})
    for (const int n : {1, 8, 33}) {
      CAPTURE(n);
      const double off = 4 * n * tolerance(t);
      const array a = positive(n, n, {3, 5}, t), b = sample({3, 5, n, 4}, 1, t), g = sample({3, 5, n, n}, 2, t),
                  high = sample({3, 5, 2 * n, n}, 3, t), ones = broadcast_to(unit(n, t), a.shape());
      const array l = linalg::cholesky(a);
      CHECK(distance(matmul(l, transposed(l)), a) < off);
      CHECK(distance(matmul(l, linalg::solve_triangular(l, b)), b) < off);
      CHECK(distance(matmul(transposed(l), linalg::solve_triangular(transposed(l), b, true)), b) < off);
      CHECK(distance(matmul(a, linalg::solve(a, b)), b) < 4 * off);
      const std::vector<array> plu = linalg::lu(g);
      CHECK(distance(matmul(take_along_axis(plu[1], expand_dims(plu[0], -1), -2), plu[2]), g) < off);
      for (const array& m : {g, high}) {
        const auto [q, r] = linalg::qr(m);
        CHECK(distance(matmul(q, r), m) < off);
        CHECK(distance(matmul(transposed(q), q), ones) < off);
        const std::vector<array> f = linalg::svd(m);
        CHECK(distance(matmul(split(f[0], Shape{n}, -1)[0] * expand_dims(f[1], -2), f[2]), m) < 2 * off);
        CHECK(distance(matmul(transposed(f[0]), f[0]), broadcast_to(unit(f[0].shape().back(), t), f[0].shape())) < off);
        CHECK(distance(linalg::svd(m, false)[0], f[1]) < 2 * off);
      }
      const auto [w, v] = linalg::eigh(a);
      CHECK(distance(matmul(v * expand_dims(w, -2), transposed(v)), a) < 2 * off);
      CHECK(distance(matmul(transposed(v), v), ones) < off);
      CHECK(distance(sort(w, -1), w) == 0);
      // One that is not positive definite leaves the others alone.
      const array mixed = a * reshape(astype(array({1.0f, 1.0f, 1.0f, -1.0f, 1.0f}), t), {5, 1, 1}),
                  c = linalg::cholesky(mixed);
      CHECK(array_equal(all(isnan(c), std::vector<int>{-1, -2}),
                        broadcast_to(array({false, false, false, true, false}), {3, 5}))
                .item<bool>());
    }
}

TEST_CASE("linalg: a compiled step gives the same bits at every run") {
  for (const int n : {12, 70, 300}) {
    if (n > 100 && default_device().type == Device::cpu) continue;  // nothing that smaller ones do not show there
    CAPTURE(n);
    const array a = positive(n, n, {n == 12 ? 6 : 1}, float32), b = sample({n == 12 ? 6 : 1, n, 5}, 3, float32);
    eval(a, b);
    const auto step = compile([](const std::vector<array>& in) {
      const int rows = static_cast<int>(in[0].shape().back());
      const array x = tanh(matmul(in[0], in[0]) * array(0.01f)) + in[0] + eye(rows) * array(static_cast<float>(rows)),
                  l = linalg::cholesky(x), y = linalg::solve_triangular(l, in[1]);
      return std::vector<array>{softmax(y, -1), linalg::solve(x, y), linalg::qr(x).second, linalg::eigh(x).first,
                                linalg::svd(x, false)[0]};
    });
    std::vector<std::vector<float>> first;
    for (int run = 0; run < 6; ++run) {
      std::vector<array> now = step({a, b});
      eval(now);
      if (run == 0) CHECK(max(abs(sum(now[0], -1) - array(1.0f))).item<float>() < 1e-5f);
      for (size_t k = 0; k < now.size(); ++k) {
        const std::vector<float> v = now[k].to_vector<float>();
        if (run == 0) first.push_back(v);
        else CHECK((v == first[k]));
      }
    }
  }
}

TEST_CASE("linalg: norms") {
  const array a = tall();
  const double inf = INFINITY;
  CHECK(linalg::norm(a).item<double>() == doctest::Approx(7.106335201775948));
  for (const auto& [ord, value] : {std::pair{1.0, 8.5},
                                   {-1.0, 6.0},
                                   {2.0, 5.588544293542862},
                                   {-2.0, 1.8021934225617142},
                                   {inf, 8.0},
                                   {-inf, 2.5}})
    CHECK(linalg::norm(a, ord).item<double>() == doctest::Approx(value));
  CHECK(linalg::norm(a, "fro").item<double>() == doctest::Approx(7.106335201775948));
  CHECK(linalg::norm(a, "nuc").item<double>() == doctest::Approx(11.393270857352107));
  const array v = array({3.0f, -4.0f, 0.0f});
  for (const auto& [ord, value] :
       {std::pair{0.0, 2.0f}, {1.0, 7.0f}, {2.0, 5.0f}, {3.0, 4.49794f}, {inf, 4.0f}, {-inf, 0.0f}})
    CHECK(linalg::norm(v, ord).item<float>() == doctest::Approx(value));
  const array b = sample({2, 4, 3}, 1);
  CHECK(linalg::norm(b, 1).shape() == Shape{2, 3});
  CHECK(linalg::norm(b, std::vector<int>{0, 2}, true).shape() == Shape{1, 4, 1});
  CHECK(linalg::norm(b, 2.0, std::vector<int>{1, 2}, true).shape() == Shape{2, 1, 1});
  CHECK(distance(linalg::norm(b, "nuc", std::vector<int>{2, 0}),
                 linalg::norm(transpose(b, {1, 2, 0}), "nuc", std::vector<int>{1, 2})) < 1e-12);
  CHECK(distance(linalg::norm(b, 1.0, std::vector<int>{2, 1}), linalg::norm(b, inf, std::vector<int>{1, 2})) < 1e-12);
  CHECK(linalg::norm(array({3, 4})).item<float>() == doctest::Approx(5));
}

// mlx.core.linalg.norm of [1+2j, -3+0.5j, 0.25-1j, 2] and of the same as two rows, MLX 0.32.4.
TEST_CASE("linalg: norms of complex numbers have MLX's values and dtypes") {
  const std::vector<complex64_t> values{{1, 2}, {-3, 0.5f}, {0.25f, -1}, {2, 0}};
  const array v = array::from_data(values.data(), {4}, complex64), m = reshape(v, {2, 2});
  const double inf = INFINITY;
  const auto check = [](const array& norm, Dtype dtype, const std::vector<float>& expected) {
    CHECK(norm.dtype() == dtype);
    const auto got = astype(real(norm), float32).to_vector<float>();
    REQUIRE(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
  };
  for (const array& a : {v, m}) check(linalg::norm(a), float32, {4.39459896f});
  check(linalg::norm(m, "fro"), float32, {4.39459896f});
  check(linalg::norm(m, "nuc"), float32, {4.91332912f});
  check(linalg::norm(v, 2.0), float32, {4.39459896f});
  check(linalg::norm(m, 2.0, 1), float32, {3.77491736f, 2.25f});
  for (const auto& [ord, value] : {std::pair{0.0, 4.0f},
                                   {1.0, 8.30822563f},
                                   {-1.0, 0.44520542f},
                                   {-2.0, 0.816691339f},
                                   {3.0, 3.64451742f},
                                   {0.5, 32.1351814f},
                                   {inf, 3.04138136f},
                                   {-inf, 1.03077638f}})
    check(linalg::norm(v, ord), complex64, {value});
  for (const auto& [ord, value] : {std::pair{1.0, 5.04138136f},
                                   {-1.0, 3.26684427f},
                                   {2.0, 4.35957003f},
                                   {-2.0, 0.553758979f},
                                   {inf, 5.27744961f},
                                   {-inf, 3.0307765f}})
    check(linalg::norm(m, ord), complex64, {value});
  check(linalg::norm(m, 1.0, 1), complex64, {5.27744961f, 3.0307765f});
  CHECK_THROWS_AS(linalg::norm(m, 3.0), std::invalid_argument);
}

TEST_CASE("linalg: cross products") {
  const array x = array({1.0f, 0.0f, 0.0f}), y = array({0.0f, 1.0f, 0.0f});
  CHECK(array_equal(linalg::cross(x, y), array({0.0f, 0.0f, 1.0f})).item<bool>());
  CHECK(array_equal(linalg::cross(array({1.0f, 2.0f}), array({3.0f, 4.0f})), array({0.0f, 0.0f, -2.0f})).item<bool>());
  CHECK(array_equal(linalg::cross(array({1.0f, 2.0f}), array({3.0f, 4.0f, 5.0f})), array({10.0f, -5.0f, -2.0f}))
            .item<bool>());
  CHECK(linalg::cross(sample({3, 4}, 1), sample({3, 1}, 2), 0).shape() == Shape{3, 4});
}

TEST_CASE("linalg: derivatives of factors") {
  const array a = sample({2, 4, 4}, 1), spd = positive(4, 2, {2}), high = sample({2, 5, 3}, 3),
              low = sample({2, 3, 5}, 4);
  differentiates([](const array& v) { return weighted(linalg::cholesky(v), 5); }, spd);
  differentiates([](const array& v) { return weighted(linalg::cholesky(v, true), 5); }, spd);
  differentiates([](const array& v) { return weighted(linalg::inv(v), 5); }, spd);
  differentiates([](const array& v) { return weighted(linalg::tri_inv(v, true), 5); }, spd);
  differentiates([](const array& v) { return weighted(linalg::cholesky_inv(v), 5); }, linalg::cholesky(spd), false);
  differentiates([&](const array& v) { return weighted(linalg::solve(v, high + high), 5); }, positive(5, 2, {2}));
  differentiates([&](const array& v) { return weighted(linalg::solve(spd, v) * v, 5); }, sample({2, 4, 3}, 1));
  differentiates([&](const array& v) { return weighted(linalg::solve_triangular(v, high), 5); }, positive(5, 2, {2}),
                 false);
  differentiates([](const array& v) { return weighted(linalg::det(v), 5) + weighted(linalg::slogdet(v).second, 6); },
                 a);
  for (const array& m : {a, high, low}) {
    differentiates([](const array& v) { return weighted(linalg::lu(v)[1], 5) + weighted(linalg::lu(v)[2], 6); }, m);
    differentiates([](const array& v) { return weighted(linalg::qr(v).first, 5) + weighted(linalg::qr(v).second, 6); },
                   m);
    differentiates([](const array& v) { return weighted(linalg::svd(v, false)[0], 5); }, m);
    differentiates([](const array& v) { return linalg::norm(linalg::pinv(v)) + weighted(linalg::pinv(v), 5); }, m,
                   false);
  }
}

TEST_CASE("linalg: derivatives of vectors whose signs are free") {
  const array high = sample({2, 5, 3}, 3), low = sample({2, 3, 5}, 4), a = sample({4, 4}, 1);
  for (const array& m : {high, low, a})
    differentiates(
        [](const array& v) {
          const std::vector<array> f = linalg::svd(v);
          const int k = f[1].shape().back();
          const std::vector<array> u = split(f[0], Shape{k}, -1), vt = split(f[2], Shape{k}, -2);
          const array complement = matmul(u[1], transposed(u[1]));  // of the other columns, their span
          return weighted(square(u[0]), 5) + weighted(square(vt[0]), 6) + weighted(f[1], 7) + weighted(complement, 8) +
                 weighted(matmul(transposed(vt[1]), vt[1]), 9);
        },
        m, m.shape(-2) > m.shape(-1));
  differentiates(
      [](const array& v) {
        return weighted(square(linalg::eigh(v).second), 5) + weighted(exp(linalg::eigh(v).first), 6);
      },
      positive(4, 2));
  differentiates([](const array& v) { return weighted(linalg::eigvalsh(v, "U"), 6); }, positive(4, 2));
  CHECK(distance(grad([](const array& v) { return sum(linalg::svd(v, false)[0]); })(unit(3)), unit(3)) <
        1e-12);  // no gaps, and none are needed
  CHECK(distance(grad([](const array& v) { return sum(linalg::eigvalsh(v)); })(unit(3)), unit(3)) < 1e-12);
  CHECK(distance(grad([](const array& v) { return sum(linalg::pinv(v)); })(unit(3)),
                 zeros({3, 3}, float64) - ones({3, 3}, float64)) < 1e-12);
}

TEST_CASE("linalg: derivatives of general eigenvalues and eigenvectors") {
  // In float32, as exact as its differences allow; in float64: complex_linalg_test.cpp.
  const array a = sample({4, 4}, 1, float32), direction = sample({4, 4}, 2, float32);
  const auto f = [](const array& v) {
    const auto [w, vectors] = linalg::eig(v);
    const array size = square(real(vectors)) + square(imag(vectors));
    return sum(real(w) * array({1.0f, 2.0f, 3.0f, 4.0f})) + sum(square(imag(w))) +
           sum(size * sample({4, 4}, 3, float32));
  };
  const array h(1e-2f);
  const float expected = ((f(a + direction * h) - f(a - direction * h)) * array(50.0f)).item<float>();
  CHECK(sum(grad(f)(a) * direction).item<float>() == doctest::Approx(expected).epsilon(0.01));
  CHECK(jvp(f, a, direction).second.item<float>() == doctest::Approx(expected).epsilon(0.01));
}

TEST_CASE("linalg: batches by vmap, and compiled functions") {
  const array a = positive(3, 1, {4}), b = sample({4, 3, 2}, 2);
  CHECK(distance(vmap([](const array& v) { return linalg::cholesky(v); })(a), linalg::cholesky(a)) == 0);
  CHECK(distance(vmap([](const array& v) { return linalg::inv(v); }, 2, 2)(transpose(a, {1, 2, 0})),
                 transpose(linalg::inv(a), {1, 2, 0})) < 1e-14);
  CHECK(distance(vmap([](const array& v, const array& w) { return linalg::solve(v, w); })(a, b), linalg::solve(a, b)) <
        1e-14);
  CHECK(distance(vmap([](const array& v) { return linalg::svd(v, false)[0]; })(b), linalg::svd(b, false)[0]) == 0);
  CHECK(distance(vmap([](const array& v) { return linalg::det(v); })(a), linalg::det(a)) < 1e-14);
  const auto program = compile(
      [](const std::vector<array>& in) {
        return std::vector<array>{linalg::solve(in[0], in[1]), linalg::eigh(in[0]).first};
      },
      {});
  for (int run = 0; run < 3; ++run) CHECK(distance(program({a, b})[0], linalg::solve(a, b)) < 1e-12);
}

TEST_CASE("linalg: empty arrays, and matrices that have no factor or no inverse") {
  for (const Shape& shape : {Shape{0, 3, 3}, Shape{2, 0, 0}, Shape{0, 0}}) {
    const array a = zeros(shape);
    CHECK(linalg::cholesky(a).shape() == shape);
    CHECK(linalg::inv(a).shape() == shape);
    CHECK(linalg::qr(a).first.shape() == shape);
    CHECK(linalg::svd(a)[2].shape() == shape);
    CHECK(linalg::eigh(a).second.shape() == shape);
    CHECK(linalg::eig(a).second.shape() == shape);
    CHECK(linalg::pinv(a).shape() == shape);
    CHECK(linalg::lu(a)[2].shape() == shape);
    eval({linalg::cholesky(a), linalg::inv(a), linalg::qr(a).second, linalg::svd(a)[0], linalg::eigh(a).second,
          linalg::eig(a).second, linalg::pinv(a), linalg::lu(a)[1]});
  }
  CHECK(distance(linalg::det(zeros({2, 0, 0})), ones({2})) == 0);
  CHECK(linalg::svd(zeros({3, 0}))[0].shape() == Shape{3, 3});
  const array two = stack({of({1, 2, 2, 1}, {2, 2}), unit(2)}), none = zeros({2, 2}, float64);
  const auto part = [](const array& v, int k) { return take(v, array(k), 0); };
  CHECK(all_nan(part(linalg::cholesky(two), 0)));
  CHECK(distance(part(linalg::cholesky(two), 1), unit(2)) == 0);
  const array rank_one = stack({of({1, 2, 2, 4}, {2, 2}), unit(2)});
  CHECK(all_nan(part(linalg::inv(rank_one), 0)));
  CHECK(distance(part(linalg::inv(rank_one), 1), unit(2)) == 0);
  CHECK(linalg::det(rank_one).to_vector<double>() == std::vector<double>{0, 1});
  CHECK(linalg::slogdet(none).first.item<double>() == 0);
  CHECK(linalg::slogdet(none).second.item<double>() == -INFINITY);
  CHECK(distance(linalg::pinv(none), none) == 0);
  CHECK(distance(linalg::pinv(part(rank_one, 0)), part(rank_one, 0) * array(1.0 / 25, float64)) < 1e-12);
  for (const array& m :
       {part(rank_one, 0), matmul(sample({5, 1}, 1), sample({1, 4}, 2)), none}) {  // vectors of no singular value
    const std::vector<array> f = linalg::svd(m);
    CHECK(distance(matmul(transposed(f[0]), f[0]), unit(f[0].shape().back())) < 1e-12);
    CHECK(distance(matmul(f[2], transposed(f[2])), unit(f[2].shape().back())) < 1e-12);
  }
  const array bad = full({2, 2}, array(NAN));
  CHECK(all_nan(linalg::svd(bad)[1]));
  CHECK(all_nan(linalg::eigh(bad).first));
  CHECK(all_nan(real(linalg::eigvals(bad))));
  CHECK(all_nan(linalg::cholesky(bad)));
}

TEST_CASE("linalg: what is refused") {
  CHECK_THROWS_WITH_AS(linalg::inv(zeros({2, 3})), "[inv] needs square matrices, got float32 (2,3)",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(linalg::svd(zeros({3})), doctest::Contains("[svd] needs matrices along the last two axes"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      linalg::qr(zeros({3, 3}, int32)),
      doctest::Contains("[qr] matrices must be float32, float64, complex64 or complex128, got int32 (3,3)"),
      std::invalid_argument);
  CHECK_THROWS_WITH_AS(linalg::solve(zeros({3, 3}, complex64), zeros({4, 1}, float64)),
                       doctest::Contains("[solve] the right side must have as many rows as the matrices"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(linalg::eigh(zeros({3, 3}), "l"), doctest::Contains("UPLO must be"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(linalg::solve(zeros({3, 3}), zeros({2, 1})), doctest::Contains("as many rows"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(linalg::solve(zeros({2, 3, 3}), zeros({4, 3, 1})), doctest::Contains("cannot be broadcast"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(linalg::norm(zeros({2, 2, 2}), 2.0), doctest::Contains("one axis or two"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(linalg::norm(zeros({2, 2}), "max"), doctest::Contains("no norm named"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(linalg::norm(zeros({2, 2}), 3.0), doctest::Contains("matrices have norms of order"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(linalg::cross(zeros({4}), zeros({3})), doctest::Contains("2 or 3 elements"),
                       std::invalid_argument);
}
