// Linear algebra, Fourier transforms, convolutions, fast composites: tests/mlx/generate/linear.py.
#include <doctest/doctest.h>

#include <limits>

#include "mlx/assertions.h"
#include "weft/fast.h"
#include "weft/fft.h"
#include "weft/indexing.h"
#include "weft/linalg.h"
#include "weft/ops.h"

namespace weft::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
using linalg::norm;
using V = std::vector<int>;
using fft::FFTNorm;

Arrays joined(std::initializer_list<Arrays> lists) {
  Arrays all;
  for (const Arrays& l : lists) all.insert(all.end(), l.begin(), l.end());
  return all;
}

const Bound decomposed{512, 16, false};  // condition numbers of some ten, through methods of different order

const std::vector<Assertion> matrices = {
    {"norm",
     [](const Arrays& in) {
       const array &r = in[0], &t = in[1];
       return Arrays{norm(r),
                     norm(r, 0),
                     norm(r, 1, true),
                     norm(r, 1.0, 1),
                     norm(r, infinity, 0),
                     norm(r, -infinity, 0),
                     norm(r, 0.0, 1),
                     norm(r, 3.0, 1),
                     norm(r, "fro"),
                     norm(r, "nuc"),
                     norm(r, 1.0),
                     norm(r, -1.0),
                     norm(r, 2.0),
                     norm(r, -2.0),
                     norm(r, infinity),
                     norm(t, V{1, 2}),
                     norm(t, 1.0, V{0, 2}),
                     norm(index(r, 0), 4.0),
                     norm(r, std::nullopt, true)};
     },
     decomposed},
    {"norm of complex",
     [](const Arrays& in) {
       return Arrays{norm(in[0]), norm(in[0], 1), norm(in[0], 1.0, 0), norm(in[0], infinity, 0), norm(in[0], "fro")};
     }},
    {"inverses",
     [](const Arrays& in) {
       const array &a = in[0], &s = in[1], &b = in[2];
       return Arrays{linalg::inv(a),
                     linalg::inv(s),
                     linalg::tri_inv(tril(a)),
                     linalg::tri_inv(triu(a), true),
                     linalg::cholesky(s),
                     linalg::cholesky(s, true),
                     linalg::cholesky_inv(linalg::cholesky(s)),
                     linalg::pinv(b),
                     linalg::solve(a, b),
                     linalg::solve(a, index(b, Slice(), 0)),
                     linalg::solve_triangular(tril(a), b),
                     linalg::solve_triangular(triu(a), b, true),
                     linalg::inv(stack({a, s}))};
     },
     decomposed},
    {"decompositions",
     [](const Arrays& in) {
       const array &a = in[0], &s = in[1], &r = in[2];
       auto [q, upper] = linalg::qr(r);
       auto [qa, ra] = linalg::qr(a);
       auto svd = linalg::svd(r);
       auto lu = linalg::lu(a);
       auto [packed, pivots] = linalg::lu_factor(a);
       return Arrays{abs(q),
                     abs(upper),
                     matmul(qa, ra),
                     linalg::svd(r, false)[0],
                     abs(slice(svd[0], {0, 0}, {5, 3})),
                     svd[1],
                     abs(svd[2]),
                     linalg::eigvalsh(s),
                     linalg::eigh(s).first,
                     abs(linalg::eigh(s).second),
                     linalg::eigvalsh(s, "U"),
                     lu[0],
                     lu[1],
                     lu[2],
                     packed,
                     pivots};
     },
     decomposed},
    {"eigenvalues",
     [](const Arrays& in) {
       auto [values, vectors] = linalg::eig(in[0]);
       return Arrays{sort(real(linalg::eigvals(in[0]))), sort(real(values)), sum(abs(square(vectors)), 0)};
     },
     decomposed},
    {"determinants",
     [](const Arrays& in) {
       auto [sign, log] = linalg::slogdet(in[0]);
       auto [signs, logs] = linalg::slogdet(in[1]);
       return Arrays{linalg::det(in[0]), sign, log, linalg::det(in[1]), signs, logs};
     },
     decomposed},
    {"cross",
     [](const Arrays& in) {
       return Arrays{linalg::cross(in[0], in[1]),
                     linalg::cross(slice(in[0], {0, 0}, {3, 3}), slice(in[1], {0, 0}, {3, 3}), 0),
                     linalg::cross(slice(in[0], {0, 0}, {5, 2}), in[1])};
     }},
    {"cross of two",
     [](const Arrays& in) {
       return Arrays{linalg::cross(slice(in[0], {0, 0}, {5, 2}), slice(in[0], {0, 1}, {5, 3}))};
     }},
    {"float64",
     [](const Arrays& in) {
       return Arrays{linalg::inv(in[0]), linalg::solve(in[0], in[1]), norm(in[0]), linalg::svd(in[0], false)[0]};
     },
     decomposed},
    {"determinants of other numbers",
     [](const Arrays& in) {
       Arrays all;
       for (const array& x : in) {
         const auto [sign, log] = linalg::slogdet(x);
         all.insert(all.end(), {linalg::det(x), sign, log});
       }
       return all;
     }},
    {"det of float64",
     [](const Arrays& in) { return Arrays{linalg::det(in[0])}; },
     {0x1p29, 1, false}},  // MLX multiplies in float32
    {"gradients",
     [](const Arrays& in) {
       const array &a = in[0], &s = in[2];
       return joined({gradient([](const Arrays& x) { return norm(x[0]); }, {a}),
                      gradient([](const Arrays& x) { return norm(x[0], 1); }, {a}),
                      gradient(
                          [](const Arrays& x) {
                            return linalg::cross(slice(x[0], {0, 0}, {4, 3}), slice(x[1], {0, 0}, {4, 3}));
                          },
                          {a, s})});
     },
     {64, 16, false}},
};

const Bound transformed{64, 8, false};

const std::vector<Assertion> transforms = {
    {"fft",
     [](const Arrays& in) {
       const array &x = in[0], &z = in[1];
       return Arrays{fft::fft(x),   fft::fft(z),          fft::fft(z, 0),  fft::fft(z, 4, -1),  fft::fft(z, 9, -1),
                     fft::ifft(z),  fft::ifft(z, 8, 1),   fft::rfft(x),    fft::rfft(x, 5, -1), fft::rfft(x, 0),
                     fft::irfft(z), fft::irfft(z, 7, -1), fft::irfft(z, 0)};
     },
     transformed},
    {"fft of more axes",
     [](const Arrays& in) {
       const array &t = in[0], &z = in[1];
       return Arrays{fft::fft2(t),
                     fft::ifft2(z),
                     fft::rfft2(t),
                     fft::irfft2(z),
                     fft::fftn(z),
                     fft::ifftn(z),
                     fft::rfftn(t),
                     fft::irfftn(z),
                     fft::fftn(z, V{0, 2}),
                     fft::fft2(z, {3, 5}, {-2, -1}),
                     fft::rfftn(t, {3, 4}, {1, 2}),
                     fft::irfft2(z, {4, 7}, {-2, -1})};
     },
     transformed},
    {"fft scales",
     [](const Arrays& in) {
       const array& z = in[0];
       return Arrays{fft::fft(z, -1, FFTNorm::Ortho),   fft::fft(z, -1, FFTNorm::Forward),
                     fft::ifft(z, -1, FFTNorm::Ortho),  fft::ifft(z, -1, FFTNorm::Forward),
                     fft::irfft(z, -1, FFTNorm::Ortho), fft::fftn(z, FFTNorm::Forward)};
     },
     transformed},
    {"fft frequencies",
     [](const Arrays& in) {
       const array& t = in[0];
       return Arrays{fft::fftfreq(7),  fft::fftfreq(8, 0.5),  fft::rfftfreq(7),  fft::rfftfreq(8, 2.0),
                     fft::fftshift(t), fft::fftshift(t, {1}), fft::ifftshift(t), fft::ifftshift(t, {0, 2})};
     }},
    {"fft of primes",
     [](const Arrays& in) {
       return Arrays{fft::fft(in[0]), fft::rfft(in[1]), fft::fft(concatenate({in[0], in[1]}))};
     },
     transformed},
};

const std::vector<Assertion> convolutions = {
    {"conv1d",
     [](const Arrays& in) {
       const array &x = in[0], &w = in[1];
       return Arrays{conv1d(x, w), conv1d(x, w, 2, 1), conv1d(x, w, 1, 0, 2), conv1d(x, in[2], 1, 0, 1, 4),
                     conv1d(x, in[3], 1, 2, 1, 2)};
     },
     transformed},
    {"conv2d",
     [](const Arrays& in) {
       const array &x = in[0], &w = in[1];
       return Arrays{conv2d(x, w), conv2d(x, w, {2, 1}, {1, 2}), conv2d(x, w, {1, 1}, {0, 0}, {2, 2}),
                     conv2d(x, in[2], {1, 1}, {1, 1}, {1, 1}, 4), conv2d(x, w, {2, 2})};
     },
     transformed},
    {"conv3d",
     [](const Arrays& in) {
       return Arrays{conv3d(in[0], in[1]), conv3d(in[0], in[1], {1, 2, 1}, {1, 1, 1}),
                     conv3d(in[0], in[1], {1, 1, 1}, {0, 0, 0}, {1, 2, 1})};
     },
     transformed},
    {"conv_transpose",
     [](const Arrays& in) {
       return Arrays{conv_transpose1d(in[0], in[3], 2), conv_transpose1d(in[0], in[3], 2, 1, 1, 1),
                     conv_transpose2d(in[1], in[4], {2, 1}, {1, 0}), conv_transpose3d(in[2], in[5], {2, 2, 2}),
                     conv_transpose1d(in[0], in[3], 1, 0, 2)};
     },
     transformed},
    {"conv_general",
     [](const Arrays& in) {
       const array &x = in[0], &w = in[1];
       return Arrays{conv_general(x, w, V{1, 2}, V{1, 0}, V{2, 1}, V{2, 1}, V{1, 2}),
                     conv_general(x, w, V{}, V{}, V{}, V{}, V{}, 1, true), conv_general(x, w, V{}, V{1})};
     },
     transformed},
    {"conv gradients",
     [](const Arrays& in) {
       return joined({gradient([](const Arrays& a) { return conv1d(a[0], a[1], 2, 1); }, {in[0], in[1]}),
                      gradient(
                          [](const Arrays& a) {
                            return conv2d(a[0], a[1], {2, 1}, {1, 0}, {1, 2});
                          },
                          {in[2], in[3]}),
                      gradient([](const Arrays& a) { return conv_transpose1d(a[0], a[1], 2); }, {in[0], in[1]})});
     },
     {64, 1024, false}},
};

array attention(const Arrays& a, const std::string& mode = "", const std::optional<array>& mask = std::nullopt) {
  return fast::scaled_dot_product_attention(a[0], a[1], a[2], 0.35f, mode, mask);
}

const std::vector<Assertion> composites = {
    {"layer_norm",
     [](const Arrays& in) {
       const array &x = in[0], &w = in[1], &b = in[2];
       return joined({{fast::layer_norm(x, w, b, 1e-5f), fast::layer_norm(x, std::nullopt, std::nullopt, 1e-5f),
                       fast::layer_norm(x, w, std::nullopt, 1e-3f)},
                      gradient([](const Arrays& a) { return fast::layer_norm(a[0], a[1], a[2], 1e-5f); }, in)});
     },
     {64, 16, false}},
    {"attention",
     [](const Arrays& in) {
       Arrays qkv(in.begin(), in.begin() + 3);
       return joined({{attention(qkv), attention(qkv, "", in[3]), attention(qkv, "", in[4]), attention(qkv, "causal")},
                      gradient([](const Arrays& a) { return attention(a, "causal"); }, qkv)});
     },
     {64, 64, false}},
    {"rope",
     [](const Arrays& in) {
       const array& x = in[0];
       return joined(
           {{fast::rope(x, 8, false, 10000.0f, 1.0f, 0), fast::rope(x, 4, true, 500.0f, 0.5f, 3),
             fast::rope(x, 8, false, std::nullopt, 1.0f, 1, in[1]), fast::rope(x, 8, true, 10000.0f, 1.0f, in[2])},
            gradient([](const Arrays& a) { return fast::rope(a[0], 6, false, 100.0f, 1.0f, 2); }, {x})});
     },
     {16, 256, false}},
    {"cross_entropy",
     [](const Arrays& in) {
       return joined({{fast::cross_entropy(in[0], in[1])},
                      gradient([&](const Arrays& a) { return fast::cross_entropy(a[0], in[1]); }, {in[0]})});
     }},
};

}  // namespace

TEST_CASE("linear algebra, transforms, convolutions and composites as in MLX") {
  std::vector<Assertion> all = matrices;
  for (const auto& more : {transforms, convolutions, composites}) all.insert(all.end(), more.begin(), more.end());
  check_assertions("linear", all);
}

}  // namespace weft::test
