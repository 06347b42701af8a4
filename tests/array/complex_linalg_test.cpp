// Decompositions of complex matrices: factors put together again, derivatives against finite differences of functions
// for which the phases of vectors do not matter, batches, edges.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <functional>

#include "weft/weft.h"

using namespace weft;
using Z = std::complex<double>;

namespace {

array reals(const Shape& shape, double seed) {
  std::vector<double> v;
  for (int64_t k = 0; k < num_elements(shape); ++k)
    v.push_back(std::sin(seed + 12.9898 * static_cast<double>(k + 1) * static_cast<double>(k % 7 + 1)));
  return array::from_data(v.data(), shape, float64);
}
array sample(const Shape& shape, double seed, Dtype dtype = complex128) {
  return astype(reals(shape, seed) + reals(shape, seed + 3) * array(Z(0, 1)), dtype);
}
array adjoint(const array& a) { return conjugate(swapaxes(a, -1, -2)); }
array positive(int n, double seed, Shape lead = {}, Dtype dtype = complex128) {
  lead.push_back(n), lead.push_back(n);
  const array m = sample(lead, seed, dtype);
  return matmul(m, adjoint(m)) + eye(n, dtype);
}
double distance(const array& a, const array& b) {
  REQUIRE(a.shape() == b.shape());
  return a.size() == 0 ? 0 : max(astype(abs(a - b), float64)).item<double>();
}
bool all_nan(const array& a) { return all(isnan(a)).item<bool>(); }
array columns(const array& a, int count) {
  Shape stop = a.shape();
  stop.back() = count;
  return slice(a, Shape(a.ndim(), 0), stop);
}
array rows(const array& a, int count) { return swapaxes(columns(swapaxes(a, -1, -2), count), -1, -2); }
array unit(int n) { return eye(n, complex128); }

/// The gradient and the tangents of a real function against central differences along one direction, and the gradient's
/// own derivative, where `second` says so. Gradients pair with tangents by Re(conj(g) t).
void differentiates(const std::function<array(const array&)>& f, const array& x, bool second = true) {
  const array direction = sample(x.shape(), 0.7);
  const auto pairing = [](const array& g, const array& t) { return sum(real(conjugate(g) * t)); };
  const auto along = [&](const std::function<array(const array&)>& g) {
    const array h(1e-5, float64);
    return (g(x + direction * h) - g(x - direction * h)) * array(0.5e5, float64);
  };
  const double expected = along(f).item<double>(), scale = std::max(1.0, std::fabs(expected));
  CHECK(pairing(grad(f)(x), direction).item<double>() == doctest::Approx(expected).epsilon(2e-6 * scale));
  CHECK(jvp(f, x, direction).second.item<double>() == doctest::Approx(expected).epsilon(2e-6 * scale));
  if (!second || default_device().type == Device::gpu) return;
  const array weight = sample(x.shape(), 2.3);
  const auto slope = [&](const array& v) { return pairing(grad(f)(v), weight); };
  const double twice = along(slope).item<double>();
  CHECK(pairing(grad(slope)(x), direction).item<double>() ==
        doctest::Approx(twice).epsilon(1e-5 * std::max(1.0, std::fabs(twice))));
}
/// A real number of all elements: their real and imaginary parts count differently.
array weighted(const array& v, double seed) {
  return issubdtype(v.dtype(), complexfloating) ? sum(real(v * sample(v.shape(), seed)))
                                                : sum(v * reals(v.shape(), seed));
}

}  // namespace

TEST_CASE("complex linalg: factors put together are the matrix") {
  for (const auto& [t, lead] : {std::pair{complex64, Shape{3}}, {complex128, Shape{2, 2}}}) {
    const double off = t == complex128 ? 1e-11 : 4e-5;
    for (const int n : {1, 2, 9}) {
      CAPTURE(n);
      const array a = positive(n, n, lead, t);
      const array l = linalg::cholesky(a), u = linalg::cholesky(a, true);
      CHECK(l.dtype() == t);
      CHECK(distance(matmul(l, adjoint(l)), a) < n * off);
      CHECK(distance(matmul(adjoint(u), u), a) < n * off);
      CHECK(distance(tril(l), l) == 0);
      CHECK(max(abs(imag(diagonal(l, 0, -2, -1)))).item<double>() == 0);
      CHECK(distance(matmul(linalg::cholesky_inv(l), a), broadcast_to(eye(n, t), a.shape())) < 20 * n * off);
      CHECK(distance(linalg::cholesky(tril(a) + triu(sample(a.shape(), 5, t), 1)), l) == 0);  // one triangle is read
      const auto [w, v] = linalg::eigh(a);
      CHECK(w.dtype() == (t == complex128 ? float64 : float32));
      CHECK(distance(matmul(a, v), v * astype(expand_dims(w, -2), t)) < 2 * n * off);
      CHECK(distance(matmul(adjoint(v), v), broadcast_to(eye(n, t), a.shape())) < n * off);
      CHECK(distance(linalg::eigvalsh(a, "U"), w) < 2 * n * off);
      Shape wide = lead, tall = lead;
      wide.push_back(n), wide.push_back(n + 3), tall.push_back(n + 3), tall.push_back(n);
      for (const Shape& shape : {a.shape(), wide, tall}) {
        CAPTURE(to_string(shape));
        const array m = sample(shape, 4, t);
        const int k = n, height = static_cast<int>(shape[shape.size() - 2].bound()),
                  width = static_cast<int>(shape.back().bound());
        const std::vector<array> f = linalg::svd(m);
        CHECK(f[0].dtype() == t);
        CHECK(distance(matmul(columns(f[0], k) * astype(expand_dims(f[1], -2), t), rows(f[2], k)), m) < n * off);
        CHECK(distance(matmul(adjoint(f[0]), f[0]), broadcast_to(eye(height, t), f[0].shape())) < n * off);
        CHECK(distance(matmul(f[2], adjoint(f[2])), broadcast_to(eye(width, t), f[2].shape())) < n * off);
        CHECK(distance(linalg::svd(m, false)[0], f[1]) < n * off);
        const auto [q, r] = linalg::qr(m);
        CHECK(distance(matmul(q, r), m) < n * off);
        CHECK(distance(matmul(adjoint(q), q), broadcast_to(eye(k, t), matmul(adjoint(q), q).shape())) < n * off);
        CHECK(distance(triu(r), r) == 0);
        const std::vector<array> p = linalg::lu(m);
        const array order = broadcast_to(expand_dims(p[0], -1), p[1].shape());
        CHECK(distance(matmul(take_along_axis(p[1], order, -2), p[2]), m) < n * off);
        const array inverse = linalg::pinv(m);
        CHECK(distance(matmul(matmul(m, inverse), m), m) < 100 * n * off);
      }
      const array b = sample({n, 2}, 6, t), x = linalg::solve(a, b);
      CHECK(distance(matmul(a, x), broadcast_to(b, x.shape())) < 20 * n * off);
      CHECK(distance(matmul(a, linalg::inv(a)), broadcast_to(eye(n, t), a.shape())) < 20 * n * off);
      CHECK(distance(matmul(triu(a), linalg::solve_triangular(a, b, true)), broadcast_to(b, x.shape())) < 20 * n * off);
      const array m = sample({n, n}, 8, t);
      const auto [values, vectors] = linalg::eig(m);
      CHECK(values.dtype() == t);
      CHECK(distance(matmul(m, vectors), vectors * expand_dims(values, -2)) < 20 * n * off);
      CHECK(distance(linalg::norm(vectors, 2.0, 0), ones({n}, w.dtype())) < off);
      CHECK(distance(sort(values), values) == 0);
      CHECK(distance(prod(values), linalg::det(m)) < 20 * n * off);
      const auto [sign_of, log_of] = linalg::slogdet(m);
      CHECK(distance(sign_of * exp(astype(log_of, t)), linalg::det(m)) < 20 * n * off);
    }
  }
}

TEST_CASE("complex linalg: known values") {
  const std::vector<Z> given{{2, 0}, {0, 1}, {0, -1}, {3, 0}};
  const array a = array::from_data(given.data(), {2, 2}, complex128);
  const double root = std::sqrt(5.0);
  CHECK(distance(linalg::eigvalsh(a), array({(5 - root) / 2, (5 + root) / 2}, float64)) < 1e-6);
  CHECK(std::abs(linalg::det(a).item<Z>() - 5.0) < 1e-14);
  CHECK(linalg::cholesky(a).data<Z>()[0] == std::sqrt(2.0));
  const array real_eigen = linalg::eigvals(array({0.0, -2.0, 1.0, 0.0}, {2, 2}, float64));
  CHECK(real_eigen.dtype() == complex128);
  CHECK(std::abs(real_eigen.data<Z>()[0] - Z(0, -std::sqrt(2.0))) < 1e-15);
  CHECK(linalg::eig(zeros({2, 2}, float32)).first.dtype() == complex64);
  CHECK(linalg::solve(zeros({2, 2}, complex64), zeros({2}, float64)).dtype() == complex128);
  CHECK(distance(linalg::norm(a, "nuc"), array(5.0, complex128)) < 1e-13);
}

TEST_CASE("complex linalg: derivatives") {
  const array spd = positive(4, 2, {2}), low = sample({2, 4, 3}, 3);
  const auto hermitian = [](const array& v) { return (v + adjoint(v)) * array(0.5, float64); };
  differentiates([](const array& v) { return weighted(linalg::cholesky(v), 5); }, spd);
  differentiates([](const array& v) { return weighted(linalg::cholesky(v, true), 5); }, spd);
  differentiates([](const array& v) { return weighted(linalg::inv(v), 5); }, spd);
  differentiates([](const array& v) { return weighted(linalg::tri_inv(v, true), 5); }, spd);
  differentiates([&](const array& v) { return weighted(linalg::solve(v, low), 5); }, spd);
  differentiates([&](const array& v) { return weighted(linalg::solve(spd, v) * v, 5); }, sample({2, 4, 3}, 1));
  differentiates([&](const array& v) { return weighted(linalg::solve_triangular(v, low), 5); }, spd);
  differentiates([&](const array& v) { return weighted(linalg::solve_triangular(spd, v, true), 5); }, low);
  differentiates([](const array& v) { return weighted(linalg::det(v), 5) + weighted(linalg::slogdet(v).second, 6); },
                 sample({2, 3, 3}, 1));
  differentiates([](const array& v) { return weighted(linalg::slogdet(v).first, 6); }, sample({2, 3, 3}, 1));
  for (const Shape& shape : {Shape{2, 3, 3}, Shape{4, 3}, Shape{3, 4}}) {
    CAPTURE(to_string(shape));
    const array m = sample(shape, 4);
    differentiates([](const array& v) { return weighted(linalg::lu(v)[1], 5) + weighted(linalg::lu(v)[2], 6); }, m);
    differentiates([](const array& v) { return weighted(linalg::qr(v).first, 5) + weighted(linalg::qr(v).second, 6); },
                   m);
    differentiates([](const array& v) { return weighted(linalg::svd(v, false)[0], 5); }, m);
    differentiates([](const array& v) { return weighted(linalg::pinv(v), 5); }, m);
    differentiates([](const array& v) { return astype(real(linalg::norm(v, "nuc")), float64); },
                   reshape(m, shape.size() == 3 ? Shape{6, 3} : shape));
    // Products of a left and the right vector to one singular value have no free phase, nor have spans.
    differentiates(
        [](const array& v) {
          const std::vector<array> f = linalg::svd(v);
          const array u = columns(f[0], 2), vh = rows(f[2], 2);
          return weighted(matmul(u, vh), 5) + weighted(matmul(u, adjoint(u)), 6) + weighted(square(abs(vh)), 7) +
                 weighted(exp(f[1]), 8);
        },
        m);
  }
  differentiates(
      [&](const array& v) {
        const auto [w, vectors] = linalg::eigh(hermitian(v));
        const array one = columns(vectors, 1);
        return weighted(square(abs(vectors)), 5) + weighted(exp(w), 6) + weighted(matmul(one, adjoint(one)), 7);
      },
      sample({2, 4, 4}, 2));
  differentiates([](const array& v) { return weighted(linalg::eigvalsh(v, "U"), 6); }, spd);
  // One triangle is read: the gradient lies there, and that of the diagonal is real.
  const array slope = grad([](const array& v) { return weighted(linalg::eigh(v).first, 6); })(positive(3, 1));
  CHECK(distance(tril(slope), slope) == 0);
  CHECK(max(abs(imag(diagonal(slope, 0, 0, 1)))).item<double>() == 0);
  CHECK(distance(grad([](const array& v) { return sum(linalg::eigvalsh(v)); })(unit(3)), unit(3)) < 1e-12);
}

TEST_CASE("complex linalg: derivatives of general eigenvalues and eigenvectors") {
  const auto f = [](const array& v) {
    const auto [w, vectors] = linalg::eig(v);
    const array one = columns(vectors, 1);
    return weighted(w, 5) + weighted(square(abs(vectors)), 6) + weighted(matmul(one, adjoint(one)), 7);
  };
  differentiates(f, sample({2, 4, 4}, 3));
  // Of a real matrix: gradients are real.
  const array a = reals({4, 4}, 3), t = reals({4, 4}, 9), h(1e-5, float64);
  const double expected = ((f(a + t * h) - f(a - t * h)) * array(0.5e5, float64)).item<double>();
  const array slope = grad(f)(a);
  CHECK(slope.dtype() == float64);
  CHECK(sum(slope * t).item<double>() == doctest::Approx(expected).epsilon(1e-6));
  CHECK(jvp(f, a, t).second.item<double>() == doctest::Approx(expected).epsilon(1e-6));
}

TEST_CASE("complex linalg: vmap, compile, and edges") {
  const array many = positive(3, 2, {5}), sides = sample({5, 3}, 4);
  const auto f = [](const array& m, const array& b) {
    return linalg::solve(m, b) + take(linalg::cholesky(m), 2, 0) * take(linalg::qr(m).second, 1, 0) +
           linalg::eigvals(m) * linalg::det(m) + astype(linalg::eigvalsh(m), complex128);
  };
  std::vector<array> expected;
  for (int k = 0; k < 5; ++k) expected.push_back(f(take(many, k, 0), take(sides, k, 0)));
  const auto all = vmap(f);
  CHECK(distance(all(many, sides), stack(expected)) < 1e-11);
  const auto program = compile([&](const std::vector<array>& in) { return std::vector<array>{all(in[0], in[1])}; }, {});
  for (int run = 0; run < 2; ++run) CHECK(distance(program({many, sides})[0], stack(expected)) < 1e-11);

  for (const Shape& shape : {Shape{0, 3, 3}, Shape{2, 0, 0}}) {
    const array a = zeros(shape, complex64);
    CHECK(linalg::eigh(a).second.shape() == shape);
    CHECK(linalg::eig(a).second.shape() == shape);
    CHECK(linalg::inv(a).shape() == shape);
    eval({linalg::cholesky(a), linalg::qr(a).second, linalg::svd(a)[0], linalg::pinv(a), linalg::lu(a)[1]});
  }
  std::vector<Z> one(9, 1.0);
  one[4] = Z(0, NAN);
  const array bad = array::from_data(one.data(), {3, 3}, complex128);
  CHECK(all_nan(linalg::svd(bad)[1]));
  CHECK(all_nan(linalg::eigh(bad).first));
  CHECK(all_nan(linalg::eigvals(bad)));
  CHECK(all_nan(linalg::inv(ones({2, 2}, complex128))));
  CHECK(all_nan(linalg::cholesky(negative(unit(2)))));
  const array same = linalg::svd(ones({3, 3}, complex64))[1];  // rank one
  CHECK(distance(same, array({3.0f, 0.0f, 0.0f})) < 1e-5);
  CHECK_THROWS_WITH_AS(linalg::qr(zeros({3}, complex64)), doctest::Contains("[qr] needs matrices"),
                       std::invalid_argument);
}
