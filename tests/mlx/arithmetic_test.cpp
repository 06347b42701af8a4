// Arithmetic, reductions, cumulative operations, products: tests/mlx/generate/arithmetic.py.
#include <doctest/doctest.h>

#include <limits>

#include "mlx/assertions.h"
#include "weft/einsum.h"
#include "weft/indexing.h"
#include "weft/ops.h"

namespace weft::test {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr Dtype all_dtypes[] = {bool_, uint8, uint16,  uint32,   uint64,  int8,    int16,
                                int32, int64, float16, bfloat16, float32, float64, complex64};

std::vector<Assertion> promotion() {
  std::vector<Assertion> cases;
  for (Dtype first : all_dtypes)
    cases.push_back({std::string("promotion of ") + dtype_name(first),
                     [](const Arrays& in) {
                       Arrays results;
                       for (Dtype t : all_dtypes) {
                         results.push_back(add(in[0], astype(array({2, 1, 1}), t)));
                         results.push_back(maximum(in[0], astype(array({1, 2, 1}), t)));
                       }
                       return results;
                     },
                     {}});
  return cases;
}

const std::vector<Assertion> elementwise = {
    {"broadcast",
     [](const Arrays& in) {
       const array &x = in[0], &y = in[1], &v = in[2];
       return Arrays{x + v,         x * y,          y - slice(x, {0, 0}, {3, 1}),
                     x / v,         maximum(y, v),  power(abs(x), v),
                     arctan2(y, x), logaddexp(x, v)};
     }},
    {"numbers",
     [](const Arrays& in) {
       const array &x = in[0], &n = in[1];
       return Arrays{x + 1,         2 - x,  x * 3,  1 / x,        power(x, array(2)), n + 1,        n - n % 2,
                     n % 4,         n % -4, -n,     n & array(3), n | array(8),       n ^ array(5), n << array(2),
                     n >> array(1), ~n,     abs(n), n / 4};
     }},
    {"comparisons",
     [](const Arrays& in) {
       const array &x = in[0], &v = in[1], &n = in[2];
       return Arrays{x<v, x <= 0, x> v,
                     n >= 3,
                     n == 4,
                     n != 4,
                     logical_and(x > 0, v > 0),
                     logical_or(x > 0, n > 0),
                     logical_not(n),
                     logical_xor(x > 0, n > 0)};
     }},
    {"isclose",
     [](const Arrays& in) {
       const array& x = in[0];
       return Arrays{isclose(x, x + 1e-6f),
                     allclose(x, x),
                     allclose(x, x + 1),
                     array_equal(x, x),
                     array_equal(x, index(x, Slice::to(2))),
                     isclose(x, x + 0.05f, 0, 0.1),
                     array_equal(x * nan, x * nan, true),
                     allclose(x * nan, x * nan, 1e-5, 1e-8, true)};
     }},
    {"divmod",
     [](const Arrays& in) {
       auto both = divmod(in[0], in[1]);
       return Arrays{both[0], both[1], floor_divide(in[0], in[1]), remainder(in[0], in[1]),
                     remainder(in[0], array(-0.5f))};
     }},
    {"clip",
     [](const Arrays& in) {
       return Arrays{clip(in[0], array(-0.5f), array(0.5f)), clip(in[0], std::nullopt, array(0.25f)),
                     clip(in[0], in[1], std::nullopt), clip(in[0], in[1], in[1] + 1)};
     }},
    {"nan_to_num",
     [](const Arrays& in) {
       return Arrays{nan_to_num(in[0]), nan_to_num(in[0], 2.0f, 9.0f), nan_to_num(in[0], 0, std::nullopt, -1.0f)};
     }},
    {"rounding",
     [](const Arrays& in) {
       return Arrays{round(in[0]), round(in[0], 2), round(in[0], -2), floor(in[0]), ceil(in[0]), trunc(in[0])};
     }},
    {"rounding of integers",
     [](const Arrays& in) {
       return Arrays{round(in[0]), round(in[0], -1), round(in[0], -2), floor(in[0])};
     }},
    {"float8",
     [](const Arrays& in) {
       return Arrays{to_fp8(in[0]), to_fp8(in[1]), from_fp8(to_fp8(in[1])), from_fp8(to_fp8(in[0]), float32)};
     }},
    {"complex",
     [](const Arrays& in) {
       const array &c = in[0], &d = in[1];
       return Arrays{c + d,   c - d,     c * d,         c / d, -c,    abs(c), conjugate(c),   real(c),
                     imag(c), square(c), reciprocal(c), c + 1, 2 * c, c == d, c * array(2.5f)};
     }},
    {"complex functions",
     [](const Arrays& in) {
       const array& c = in[0];
       return Arrays{exp(c), log(c),  sqrt(c), rsqrt(c), sin(c),      cos(c),
                     tan(c), sinh(c), cosh(c), tanh(c),  power(c, c), sign(c)};
     }},
    {"degrees",
     [](const Arrays& in) {
       return Arrays{degrees(in[0]), radians(in[0])};
     }},
};

using V = std::vector<int>;

const std::vector<Assertion> reductions = {
    {"complex reductions",
     [](const Arrays& in) {
       return Arrays{sum(in[0]), sum(in[0], 0), prod(in[0], 1), mean(in[0], 0), all(in[0]), any(in[0], 1)};
     }},
    {"reductions",
     [](const Arrays& in) {
       const array& y = in[0];
       return Arrays{sum(y),           sum(y, V{0, 2}), sum(y, 1, true),        sum(y, true),
                     prod(y, V{1, 2}), mean(y, 0),      mean(y, V{0, 1}, true), max(y, 2),
                     min(y, V{0, 1}),  max(y),          min(y, true),           sum(y, V{})};
     }},
    {"variance",
     [](const Arrays& in) {
       const array& y = in[0];
       return Arrays{var(y), var(y, 1), var(y, V{0, 2}, false, 1), std(y, 0), std(y, false, 1), var(y, 2, true, 2)};
     }},
    {"logic reductions",
     [](const Arrays& in) {
       const array &b = in[0], &n = in[1];
       return Arrays{all(b),          any(b), all(b, 0), any(b, 1, true), all(n, 1),
                     any(n, V{0, 1}), sum(b), sum(b, 0), prod(b, 1),      mean(b)};
     }},
    {"logsumexp and softmax",
     [](const Arrays& in) {
       const array& y = in[0];
       return Arrays{logsumexp(y),  logsumexp(y, V{0, 2}), logsumexp(y, 1, true), softmax(y),
                     softmax(y, 1), softmax(y, V{0, 2}),   softmax(y, -1, true)};
     }},
    {"softmax of half",
     [](const Arrays& in) {
       return Arrays{softmax(astype(in[0], float16), -1), softmax(astype(in[0], bfloat16), -1, true),
                     logsumexp(astype(in[0], float16), -1)};
     },
     {2, 0}},
    {"cumulative",
     [](const Arrays& in) {
       const array &x = in[0], &n = in[1];
       return Arrays{cumsum(x),
                     cumsum(x, 0),
                     cumsum(x, 1, true),
                     cumsum(x, 1, false, false),
                     cumprod(x, 1),
                     cumprod(x, 0, true, false),
                     cummax(x, 1),
                     cummin(x, 0),
                     cummax(x, 1, true),
                     logcumsumexp(x, 1),
                     logcumsumexp(x, 0, true),
                     cumsum(n, 0),
                     cumsum(n > 0, 1)};
     }},
    {"exclusive",
     [](const Arrays& in) {
       return Arrays{cummax(in[0], 1, false, false), cummin(in[1], 0, false, false),
                     logcumsumexp(in[0], 1, false, false)};
     }},
    {"diff",
     [](const Arrays& in) {
       return Arrays{diff(in[0]), diff(in[0], 1, 0), diff(in[0], 2)};
     }},
};

const std::vector<Assertion> products = {
    {"matmul",
     [](const Arrays& in) {
       const array &x = in[0], &m = in[1], &y = in[2], &v = in[3];
       return Arrays{matmul(x, m),           matmul(y, m), matmul(v, m),
                     matmul(x, v),           matmul(v, v), matmul(y, swapaxes(y, 1, 2)),
                     matmul(transpose(x), x)};
     }},
    {"matmul of half",
     [](const Arrays& in) {
       const array &x = in[0], &m = in[1];
       return Arrays{matmul(astype(x, float16), astype(m, float16)), matmul(astype(x, bfloat16), astype(m, bfloat16)),
                     matmul(astype(x, float16), m)};
     },
     {2, 1}},
    {"complex matmul",
     [](const Arrays& in) {
       return Arrays{matmul(in[0], in[1]), matmul(transpose(conjugate(in[0])), in[0])};
     }},
    {"addmm",
     [](const Arrays& in) {
       const array &x = in[0], &m = in[1], &a = in[2];
       return Arrays{addmm(a, x, m), addmm(a, x, m, 2.0f, 0.5f), addmm(index(a, 0), x, m)};
     }},
    {"products",
     [](const Arrays& in) {
       const array &x = in[0], &v = in[1], &m = in[2];
       return Arrays{outer(v, index(x, Slice(), 0)),
                     inner(x, v),
                     inner(v, v),
                     tensordot(x, m, 1),
                     tensordot(x, x, {0, 1}, {0, 1}),
                     kron(index(x, Slice::to(2)), v),
                     vecdot(x, x),
                     tensordot(x, m, 0),
                     vecdot(x, x, 0)};
     }},
    {"complex products",
     [](const Arrays& in) {
       return Arrays{outer(in[1], in[1]), inner(in[0], in[1]), vecdot(in[0], in[0]), kron(in[1], in[1])};
     }},
    {"hadamard_transform",
     [](const Arrays& in) {
       return Arrays{hadamard_transform(in[0]), hadamard_transform(in[0], 0.5f), hadamard_transform(in[1])};
     }},
    {"block_masked_mm",
     [](const Arrays& in) {
       const array &a = in[0], &b = in[1], &m = in[2], &w = in[3];
       return Arrays{block_masked_mm(a, b, 32, m), block_masked_mm(a, b, 32, std::nullopt, m, m),
                     block_masked_mm(a, b, 32, w, w, m)};
     },
     {64, 8}},
    {"gather_mm",
     [](const Arrays& in) {
       const array &a = in[0], &b = in[1], &i = in[2], &j = in[3];
       return Arrays{gather_mm(a, b, std::nullopt, j), gather_mm(a, b, i, j),
                     gather_mm(a, b, index(i, Slice::to(2)), index(j, Slice::to(2)))};
     }},
    {"segmented_mm", [](const Arrays& in) { return Arrays{segmented_mm(in[0], in[1], in[2])}; }},
    {"einsum",
     [](const Arrays& in) {
       const array &x = in[0], &m = in[1], &t = in[2], &y = in[3];
       array square = slice(m, {0, 0}, {4, 4});
       return Arrays{einsum("ij,jk->ik", {x, m}),
                     einsum("ij->ji", {x}),
                     einsum("ij->", {x}),
                     einsum("ii->i", {square}),
                     einsum("ij,ij->i", {x, x}),
                     einsum("abcd->dbca", {t}),
                     einsum("abcd,ce->abed", {t, m}),
                     einsum("...ij,jk->...ik", {y, m}),
                     einsum("ij,jk,kl->il", {x, m, transpose(m)}),
                     einsum("i,j->ij", {index(x, 0), index(x, 1)}),
                     einsum("bij,bkj->bik", {y, y}),
                     einsum("ii", {square}),
                     einsum("abc,abc->", {y, y}),
                     einsum("ij,kj->ik", {x, x})};
     }},
};

}  // namespace

TEST_CASE("arithmetic, reductions and products as in MLX") {
  std::vector<Assertion> all = promotion();
  for (const auto& more : {elementwise, reductions, products}) all.insert(all.end(), more.begin(), more.end());
  check_assertions("arithmetic", all);
}

}  // namespace weft::test
