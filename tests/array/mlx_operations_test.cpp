// Every function of MLX's ops.h, in each of its overloads with each number of arguments that it takes, and what it
// returns: compiled, not run. Quantised products are not among them.
#include <type_traits>

#include "weft/ops.h"

using namespace weft;

namespace {

using Arrays = std::vector<array>;
/// Every one of the results has type R.
template <class R, class... T>
void are(const T&...) requires((std::is_same_v<R, T> && ...));

static_assert(requires(array a, Arrays v, StreamOrDevice s, int i, size_t n, double d, float x, bool yes,
                       std::vector<int> axes, Shape shape, Strides strides, Dtype t, std::string text,
                       std::initializer_list<int> list, std::optional<array> o, std::optional<float> ox,
                       std::optional<Dtype> ot, std::pair<int, int> two, std::tuple<int, int, int> three,
                       std::vector<std::pair<int, int>> pairs) {
  are<array>(arange(d, d, d, t), arange(d, d, d, t, s), arange(d, d, d), arange(d, d, d, s), arange(d, d, t),
             arange(d, d, t, s), arange(d, d), arange(d, d, s), arange(d, t), arange(d, t, s), arange(d), arange(d, s),
             arange(i, i, i), arange(i, i, i, s), arange(i, i), arange(i, i, s), arange(i), arange(i, s));
  are<array>(linspace(d, d, i, yes), linspace(d, d, i, yes, t), linspace(d, d, i, yes, t, s), linspace(d, d),
             linspace(d, d, i), linspace(d, d, i, t), linspace(d, d, i, t, s));
  are<array>(astype(a, t), astype(a, t, s));
  are<array>(as_strided(a, shape, strides, n), as_strided(a, shape, strides, n, s));
  are<array>(copy(a), copy(a, s));
  are<array>(full(shape, a, t), full(shape, a, t, s), full(shape, a), full(shape, a, s));
  are<array>(full_like(a, a, t), full_like(a, a, t, s), full_like(a, a), full_like(a, a, s));
  are<array>(zeros(shape, t), zeros(shape, t, s), zeros(shape), zeros(shape, s));
  are<array>(zeros_like(a), zeros_like(a, s), zeros_like(a, t), zeros_like(a, t, s));
  are<array>(ones(shape, t), ones(shape, t, s), ones(shape), ones(shape, s));
  are<array>(ones_like(a), ones_like(a, s), ones_like(a, t), ones_like(a, t, s));
  are<array>(eye(i, i, i, t), eye(i, i, i, t, s), eye(i, t), eye(i, t, s), eye(i, i), eye(i, i, s), eye(i, i, i),
             eye(i, i, i, s), eye(i), eye(i, s));
  are<array>(identity(i, t), identity(i, t, s), identity(i), identity(i, s));
  are<array>(tri(i, i, i, t), tri(i, i, i, t, s), tri(i, t), tri(i, t, s));
  are<array>(tril(a), tril(a, i), tril(a, i, s));
  are<array>(triu(a), triu(a, i), triu(a, i, s));
  are<array>(reshape(a, shape), reshape(a, shape, s));
  are<array>(unflatten(a, i, shape), unflatten(a, i, shape, s));
  are<array>(flatten(a, i), flatten(a, i, i), flatten(a, i, i, s), flatten(a), flatten(a, s));
  are<array>(hadamard_transform(a), hadamard_transform(a, ox), hadamard_transform(a, ox, s));
  are<array>(squeeze(a, axes), squeeze(a, axes, s), squeeze(a, i), squeeze(a, i, s), squeeze(a), squeeze(a, s));
  are<array>(expand_dims(a, axes), expand_dims(a, axes, s), expand_dims(a, i), expand_dims(a, i, s));
  are<array>(flip(a, axes), flip(a, axes, s), flip(a, i), flip(a, i, s), flip(a), flip(a, s));
  are<array>(slice(a, shape, shape, shape), slice(a, shape, shape, shape, s), slice(a, list, shape, shape),
             slice(a, list, shape, shape, s), slice(a, shape, shape), slice(a, shape, shape, s),
             slice(a, a, axes, shape), slice(a, a, axes, shape, s));
  are<array>(slice_update(a, a, shape, shape, shape), slice_update(a, a, shape, shape, shape, s),
             slice_update(a, a, shape, shape), slice_update(a, a, shape, shape, s), slice_update(a, a, a, axes),
             slice_update(a, a, a, axes, s));
  are<array>(slice_update_add(a, a, shape, shape, shape), slice_update_add(a, a, shape, shape, shape, s),
             slice_update_add(a, a, shape, shape), slice_update_add(a, a, shape, shape, s));
  are<array>(slice_update_prod(a, a, shape, shape, shape), slice_update_prod(a, a, shape, shape, shape, s),
             slice_update_prod(a, a, shape, shape), slice_update_prod(a, a, shape, shape, s));
  are<array>(slice_update_max(a, a, shape, shape, shape), slice_update_max(a, a, shape, shape, shape, s),
             slice_update_max(a, a, shape, shape), slice_update_max(a, a, shape, shape, s));
  are<array>(slice_update_min(a, a, shape, shape, shape), slice_update_min(a, a, shape, shape, shape, s),
             slice_update_min(a, a, shape, shape), slice_update_min(a, a, shape, shape, s));
  are<array>(clip(a), clip(a, o), clip(a, o, o), clip(a, o, o, s));
  are<array>(concatenate(v, i), concatenate(v, i, s), concatenate(v), concatenate(v, s));
  are<array>(stack(v, i), stack(v, i, s), stack(v), stack(v, s));
  are<array>(repeat(a, i, i), repeat(a, i, i, s), repeat(a, i), repeat(a, i, s));
  are<array>(tile(a, axes), tile(a, axes, s));
  are<array>(transpose(a, axes), transpose(a, axes, s), transpose(a, list), transpose(a, list, s), transpose(a),
             transpose(a, s));
  are<array>(swapaxes(a, i, i), swapaxes(a, i, i, s));
  are<array>(moveaxis(a, i, i), moveaxis(a, i, i, s));
  are<array>(pad(a, axes, shape, shape), pad(a, axes, shape, shape, a), pad(a, axes, shape, shape, a, text),
             pad(a, axes, shape, shape, a, text, s), pad(a, pairs), pad(a, pairs, a), pad(a, pairs, a, text),
             pad(a, pairs, a, text, s), pad(a, two), pad(a, two, a), pad(a, two, a, text), pad(a, two, a, text, s),
             pad(a, i), pad(a, i, a), pad(a, i, a, text), pad(a, i, a, text, s));
  are<array>(broadcast_to(a, shape), broadcast_to(a, shape, s));
  are<array>(equal(a, a), equal(a, a, s));
  are<array>(not_equal(a, a), not_equal(a, a, s));
  are<array>(greater(a, a), greater(a, a, s));
  are<array>(greater_equal(a, a), greater_equal(a, a, s));
  are<array>(less(a, a), less(a, a, s));
  are<array>(less_equal(a, a), less_equal(a, a, s));
  are<array>(array_equal(a, a, yes), array_equal(a, a, yes, s), array_equal(a, a), array_equal(a, a, s));
  are<array>(isnan(a), isnan(a, s));
  are<array>(isinf(a), isinf(a, s));
  are<array>(isfinite(a), isfinite(a, s));
  are<array>(isposinf(a), isposinf(a, s));
  are<array>(isneginf(a), isneginf(a, s));
  are<array>(where(a, a, a), where(a, a, a, s));
  are<array>(nan_to_num(a), nan_to_num(a, x), nan_to_num(a, x, ox), nan_to_num(a, x, ox, ox),
             nan_to_num(a, x, ox, ox, s));
  are<array>(all(a, yes), all(a, yes, s), all(a), all(a, s), all(a, axes), all(a, axes, yes), all(a, axes, yes, s),
             all(a, i), all(a, i, yes), all(a, i, yes, s));
  are<array>(allclose(a, a), allclose(a, a, d), allclose(a, a, d, d), allclose(a, a, d, d, yes),
             allclose(a, a, d, d, yes, s));
  are<array>(isclose(a, a), isclose(a, a, d), isclose(a, a, d, d), isclose(a, a, d, d, yes),
             isclose(a, a, d, d, yes, s));
  are<array>(any(a, yes), any(a, yes, s), any(a), any(a, s), any(a, axes), any(a, axes, yes), any(a, axes, yes, s),
             any(a, i), any(a, i, yes), any(a, i, yes, s));
  are<array>(sum(a, yes), sum(a, yes, s), sum(a), sum(a, s), sum(a, axes), sum(a, axes, yes), sum(a, axes, yes, s),
             sum(a, i), sum(a, i, yes), sum(a, i, yes, s));
  are<array>(count_nonzero(a), count_nonzero(a, yes), count_nonzero(a, yes, s), count_nonzero(a, i),
             count_nonzero(a, i, yes), count_nonzero(a, i, yes, s), count_nonzero(a, axes), count_nonzero(a, axes, yes),
             count_nonzero(a, axes, yes, s));
  are<array>(mean(a, yes), mean(a, yes, s), mean(a), mean(a, s), mean(a, axes), mean(a, axes, yes),
             mean(a, axes, yes, s), mean(a, i), mean(a, i, yes), mean(a, i, yes, s));
  are<array>(median(a, yes), median(a, yes, s), median(a), median(a, s), median(a, axes), median(a, axes, yes),
             median(a, axes, yes, s), median(a, i), median(a, i, yes), median(a, i, yes, s));
  are<array>(var(a, yes), var(a, yes, i), var(a, yes, i, s), var(a), var(a, s), var(a, axes), var(a, axes, yes),
             var(a, axes, yes, i), var(a, axes, yes, i, s), var(a, i), var(a, i, yes), var(a, i, yes, i),
             var(a, i, yes, i, s));
  are<array>(weft::std(a, yes), weft::std(a, yes, i), weft::std(a, yes, i, s), weft::std(a), weft::std(a, s),
             weft::std(a, axes), weft::std(a, axes, yes), weft::std(a, axes, yes, i), weft::std(a, axes, yes, i, s),
             weft::std(a, i), weft::std(a, i, yes), weft::std(a, i, yes, i), weft::std(a, i, yes, i, s));
  are<array>(prod(a, yes), prod(a, yes, s), prod(a), prod(a, s), prod(a, axes), prod(a, axes, yes),
             prod(a, axes, yes, s), prod(a, i), prod(a, i, yes), prod(a, i, yes, s));
  are<array>(max(a, yes), max(a, yes, s), max(a), max(a, s), max(a, axes), max(a, axes, yes), max(a, axes, yes, s),
             max(a, i), max(a, i, yes), max(a, i, yes, s));
  are<array>(min(a, yes), min(a, yes, s), min(a), min(a, s), min(a, axes), min(a, axes, yes), min(a, axes, yes, s),
             min(a, i), min(a, i, yes), min(a, i, yes, s));
  are<array>(hanning(i), hanning(i, s));
  are<array>(hamming(i), hamming(i, s));
  are<array>(bartlett(i), bartlett(i, s));
  are<array>(blackman(i), blackman(i, s));
  are<array>(argmin(a, yes), argmin(a, yes, s), argmin(a), argmin(a, s), argmin(a, i), argmin(a, i, yes),
             argmin(a, i, yes, s));
  are<array>(argmax(a, yes), argmax(a, yes, s), argmax(a), argmax(a, s), argmax(a, i), argmax(a, i, yes),
             argmax(a, i, yes, s));
  are<array>(sort(a), sort(a, s), sort(a, i), sort(a, i, s));
  are<array>(argsort(a), argsort(a, s), argsort(a, i), argsort(a, i, s));
  are<array>(partition(a, i), partition(a, i, s), partition(a, i, i), partition(a, i, i, s));
  are<array>(argpartition(a, i), argpartition(a, i, s), argpartition(a, i, i), argpartition(a, i, i, s));
  are<array>(searchsorted(a, a), searchsorted(a, a, text), searchsorted(a, a, text, s));
  are<array>(topk(a, i), topk(a, i, s), topk(a, i, i), topk(a, i, i, s));
  are<array>(logcumsumexp(a), logcumsumexp(a, yes), logcumsumexp(a, yes, yes), logcumsumexp(a, yes, yes, s),
             logcumsumexp(a, i), logcumsumexp(a, i, yes), logcumsumexp(a, i, yes, yes),
             logcumsumexp(a, i, yes, yes, s));
  are<array>(logsumexp(a, yes), logsumexp(a, yes, s), logsumexp(a), logsumexp(a, s), logsumexp(a, axes),
             logsumexp(a, axes, yes), logsumexp(a, axes, yes, s), logsumexp(a, i), logsumexp(a, i, yes),
             logsumexp(a, i, yes, s));
  are<array>(abs(a), abs(a, s));
  are<array>(positive(a), positive(a, s));
  are<array>(negative(a), negative(a, s));
  are<array>(sign(a), sign(a, s));
  are<array>(logical_not(a), logical_not(a, s));
  are<array>(logical_and(a, a), logical_and(a, a, s));
  are<array>(logical_or(a, a), logical_or(a, a, s));
  are<array>(logical_xor(a, a), logical_xor(a, a, s));
  are<array>(reciprocal(a), reciprocal(a, s));
  are<array>(add(a, a), add(a, a, s));
  are<array>(subtract(a, a), subtract(a, a, s));
  are<array>(multiply(a, a), multiply(a, a, s));
  are<array>(divide(a, a), divide(a, a, s));
  are<array>(floor_divide(a, a), floor_divide(a, a, s));
  are<array>(remainder(a, a), remainder(a, a, s));
  are<array>(maximum(a, a), maximum(a, a, s));
  are<array>(minimum(a, a), minimum(a, a, s));
  are<array>(floor(a), floor(a, s));
  are<array>(ceil(a), ceil(a, s));
  are<array>(trunc(a), trunc(a, s));
  are<array>(square(a), square(a, s));
  are<array>(exp(a), exp(a, s));
  are<array>(sin(a), sin(a, s));
  are<array>(cos(a), cos(a, s));
  are<array>(tan(a), tan(a, s));
  are<array>(arcsin(a), arcsin(a, s));
  are<array>(arccos(a), arccos(a, s));
  are<array>(arctan(a), arctan(a, s));
  are<array>(arctan2(a, a), arctan2(a, a, s));
  are<array>(sinh(a), sinh(a, s));
  are<array>(cosh(a), cosh(a, s));
  are<array>(tanh(a), tanh(a, s));
  are<array>(arcsinh(a), arcsinh(a, s));
  are<array>(arccosh(a), arccosh(a, s));
  are<array>(arctanh(a), arctanh(a, s));
  are<array>(degrees(a), degrees(a, s));
  are<array>(radians(a), radians(a, s));
  are<array>(log(a), log(a, s));
  are<array>(log2(a), log2(a, s));
  are<array>(log10(a), log10(a, s));
  are<array>(log1p(a), log1p(a, s));
  are<array>(logaddexp(a, a), logaddexp(a, a, s));
  are<array>(sigmoid(a), sigmoid(a, s));
  are<array>(erf(a), erf(a, s));
  are<array>(erfinv(a), erfinv(a, s));
  are<array>(expm1(a), expm1(a, s));
  are<array>(stop_gradient(a), stop_gradient(a, s));
  are<array>(round(a, i), round(a, i, s), round(a), round(a, s));
  are<array>(matmul(a, a), matmul(a, a, s));
  are<array>(gather(a, v, axes, shape), gather(a, v, axes, shape, s), gather(a, a, i, shape),
             gather(a, a, i, shape, s));
  are<array>(kron(a, a), kron(a, a, s));
  are<array>(take(a, a, i), take(a, a, i, s), take(a, i, i), take(a, i, i, s), take(a, a), take(a, a, s), take(a, i),
             take(a, i, s));
  are<array>(take_along_axis(a, a, i), take_along_axis(a, a, i, s));
  are<array>(put_along_axis(a, a, a, i), put_along_axis(a, a, a, i, s));
  are<array>(scatter_add_axis(a, a, a, i), scatter_add_axis(a, a, a, i, s));
  are<array>(scatter(a, v, a, axes), scatter(a, v, a, axes, s), scatter(a, a, a, i), scatter(a, a, a, i, s));
  are<array>(scatter_add(a, v, a, axes), scatter_add(a, v, a, axes, s), scatter_add(a, a, a, i),
             scatter_add(a, a, a, i, s));
  are<array>(scatter_prod(a, v, a, axes), scatter_prod(a, v, a, axes, s), scatter_prod(a, a, a, i),
             scatter_prod(a, a, a, i, s));
  are<array>(scatter_max(a, v, a, axes), scatter_max(a, v, a, axes, s), scatter_max(a, a, a, i),
             scatter_max(a, a, a, i, s));
  are<array>(scatter_min(a, v, a, axes), scatter_min(a, v, a, axes, s), scatter_min(a, a, a, i),
             scatter_min(a, a, a, i, s));
  are<array>(masked_scatter(a, a, a), masked_scatter(a, a, a, s));
  are<array>(sqrt(a), sqrt(a, s));
  are<array>(rsqrt(a), rsqrt(a, s));
  are<array>(softmax(a, axes), softmax(a, axes, yes), softmax(a, axes, yes, s), softmax(a), softmax(a, yes),
             softmax(a, yes, s), softmax(a, i), softmax(a, i, yes), softmax(a, i, yes, s));
  are<array>(power(a, a), power(a, a, s));
  are<array>(cumsum(a), cumsum(a, yes), cumsum(a, yes, yes), cumsum(a, yes, yes, ot), cumsum(a, yes, yes, ot, s),
             cumsum(a, yes, yes, s), cumsum(a, i), cumsum(a, i, yes), cumsum(a, i, yes, yes),
             cumsum(a, i, yes, yes, ot), cumsum(a, i, yes, yes, ot, s), cumsum(a, i, yes, yes, s));
  are<array>(cumprod(a), cumprod(a, yes), cumprod(a, yes, yes), cumprod(a, yes, yes, ot), cumprod(a, yes, yes, ot, s),
             cumprod(a, yes, yes, s), cumprod(a, i), cumprod(a, i, yes), cumprod(a, i, yes, yes),
             cumprod(a, i, yes, yes, ot), cumprod(a, i, yes, yes, ot, s), cumprod(a, i, yes, yes, s));
  are<array>(cummax(a), cummax(a, yes), cummax(a, yes, yes), cummax(a, yes, yes, s), cummax(a, i), cummax(a, i, yes),
             cummax(a, i, yes, yes), cummax(a, i, yes, yes, s));
  are<array>(cummin(a), cummin(a, yes), cummin(a, yes, yes), cummin(a, yes, yes, s), cummin(a, i), cummin(a, i, yes),
             cummin(a, i, yes, yes), cummin(a, i, yes, yes, s));
  are<array>(diff(a), diff(a, i), diff(a, i, i), diff(a, i, i, s));
  are<array>(conv_general(a, a), conv_general(a, a, axes), conv_general(a, a, axes, axes),
             conv_general(a, a, axes, axes, axes), conv_general(a, a, axes, axes, axes, axes),
             conv_general(a, a, axes, axes, axes, axes, axes), conv_general(a, a, axes, axes, axes, axes, axes, i),
             conv_general(a, a, axes, axes, axes, axes, axes, i, yes),
             conv_general(a, a, axes, axes, axes, axes, axes, i, yes, s), conv_general(a, a, axes, axes, axes, axes, i),
             conv_general(a, a, axes, axes, axes, axes, i, yes), conv_general(a, a, axes, axes, axes, axes, i, yes, s));
  are<array>(conv1d(a, a), conv1d(a, a, i), conv1d(a, a, i, i), conv1d(a, a, i, i, i), conv1d(a, a, i, i, i, i),
             conv1d(a, a, i, i, i, i, s));
  are<array>(conv2d(a, a), conv2d(a, a, two), conv2d(a, a, two, two), conv2d(a, a, two, two, two),
             conv2d(a, a, two, two, two, i), conv2d(a, a, two, two, two, i, s));
  are<array>(conv3d(a, a), conv3d(a, a, three), conv3d(a, a, three, three), conv3d(a, a, three, three, three),
             conv3d(a, a, three, three, three, i), conv3d(a, a, three, three, three, i, s));
  are<array>(conv_transpose1d(a, a), conv_transpose1d(a, a, i), conv_transpose1d(a, a, i, i),
             conv_transpose1d(a, a, i, i, i), conv_transpose1d(a, a, i, i, i, i), conv_transpose1d(a, a, i, i, i, i, i),
             conv_transpose1d(a, a, i, i, i, i, i, s));
  are<array>(conv_transpose2d(a, a), conv_transpose2d(a, a, two), conv_transpose2d(a, a, two, two),
             conv_transpose2d(a, a, two, two, two), conv_transpose2d(a, a, two, two, two, two),
             conv_transpose2d(a, a, two, two, two, two, i), conv_transpose2d(a, a, two, two, two, two, i, s));
  are<array>(conv_transpose3d(a, a), conv_transpose3d(a, a, three), conv_transpose3d(a, a, three, three),
             conv_transpose3d(a, a, three, three, three), conv_transpose3d(a, a, three, three, three, three),
             conv_transpose3d(a, a, three, three, three, three, i),
             conv_transpose3d(a, a, three, three, three, three, i, s));
  are<array>(from_fp8(a, t), from_fp8(a, t, s));
  are<array>(to_fp8(a), to_fp8(a, s));
  are<array>(tensordot(a, a), tensordot(a, a, i), tensordot(a, a, i, s), tensordot(a, a, axes, axes),
             tensordot(a, a, axes, axes, s));
  are<array>(outer(a, a), outer(a, a, s));
  are<array>(inner(a, a), inner(a, a, s));
  are<array>(vecdot(a, a), vecdot(a, a, i), vecdot(a, a, i, s));
  are<array>(addmm(a, a, a), addmm(a, a, a, x), addmm(a, a, a, x, x), addmm(a, a, a, x, x, s));
  are<array>(block_masked_mm(a, a, i), block_masked_mm(a, a, i, o), block_masked_mm(a, a, i, o, o),
             block_masked_mm(a, a, i, o, o, o), block_masked_mm(a, a, i, o, o, o, s));
  are<array>(gather_mm(a, a), gather_mm(a, a, o), gather_mm(a, a, o, o), gather_mm(a, a, o, o, yes),
             gather_mm(a, a, o, o, yes, s));
  are<array>(segmented_mm(a, a, a), segmented_mm(a, a, a, s));
  are<std::vector<array>>(quantize(a), quantize(a, i), quantize(a, i, i), quantize(a, i, i, text),
                          quantize(a, i, i, text, o), quantize(a, i, i, text, o, s));
  are<array>(dequantize(a, a), dequantize(a, a, o), dequantize(a, a, o, i), dequantize(a, a, o, i, i),
             dequantize(a, a, o, i, i, text), dequantize(a, a, o, i, i, text, o), dequantize(a, a, o, i, i, text, o, t),
             dequantize(a, a, o, i, i, text, o, t, s));
  are<array>(quantized_matmul(a, a, a), quantized_matmul(a, a, a, o), quantized_matmul(a, a, a, o, yes),
             quantized_matmul(a, a, a, o, yes, i), quantized_matmul(a, a, a, o, yes, i, i),
             quantized_matmul(a, a, a, o, yes, i, i, text), quantized_matmul(a, a, a, o, yes, i, i, text, s));
  are<array>(qqmm(a, a), qqmm(a, a, o), qqmm(a, a, o, i), qqmm(a, a, o, i, i), qqmm(a, a, o, i, i, text),
             qqmm(a, a, o, i, i, text, o), qqmm(a, a, o, i, i, text, o, o), qqmm(a, a, o, i, i, text, o, o, s));
  are<array>(gather_qmm(a, a, a), gather_qmm(a, a, a, o), gather_qmm(a, a, a, o, o), gather_qmm(a, a, a, o, o, o),
             gather_qmm(a, a, a, o, o, o, yes), gather_qmm(a, a, a, o, o, o, yes, i),
             gather_qmm(a, a, a, o, o, o, yes, i, i), gather_qmm(a, a, a, o, o, o, yes, i, i, text),
             gather_qmm(a, a, a, o, o, o, yes, i, i, text, o), gather_qmm(a, a, a, o, o, o, yes, i, i, text, o, yes),
             gather_qmm(a, a, a, o, o, o, yes, i, i, text, o, yes, s));
  are<array>(gather_qqmm(a, a), gather_qqmm(a, a, o), gather_qqmm(a, a, o, o), gather_qqmm(a, a, o, o, o),
             gather_qqmm(a, a, o, o, o, i), gather_qqmm(a, a, o, o, o, i, i), gather_qqmm(a, a, o, o, o, i, i, text),
             gather_qqmm(a, a, o, o, o, i, i, text, o), gather_qqmm(a, a, o, o, o, i, i, text, o, o),
             gather_qqmm(a, a, o, o, o, i, i, text, o, o, yes), gather_qqmm(a, a, o, o, o, i, i, text, o, o, yes, s));
  are<std::vector<array>>(unique(a, i), unique(a, i, yes), unique(a, i, yes, yes), unique(a, i, yes, yes, yes),
                          unique(a, i, yes, yes, yes, o), unique(a, i, yes, yes, yes, o, s));
  are<std::tuple<array, array>>(minmax(a), minmax(a, s), minmax(a, yes), minmax(a, yes, s), minmax(a, axes),
                                minmax(a, axes, yes), minmax(a, axes, yes, s), minmax(a, i), minmax(a, i, yes),
                                minmax(a, i, yes, s));
  are<array>(diagonal(a), diagonal(a, i), diagonal(a, i, i), diagonal(a, i, i, i), diagonal(a, i, i, i, s));
  are<array>(diag(a), diag(a, i), diag(a, i, s));
  are<array>(trace(a, i, i, i, t), trace(a, i, i, i, t, s), trace(a, i, i, i), trace(a, i, i, i, s), trace(a),
             trace(a, s));
  are<array>(atleast_1d(a), atleast_1d(a, s));
  are<array>(atleast_2d(a), atleast_2d(a, s));
  are<array>(atleast_3d(a), atleast_3d(a, s));
  are<array>(number_of_elements(a, axes, yes), number_of_elements(a, axes, yes, t),
             number_of_elements(a, axes, yes, t, s));
  are<array>(conjugate(a), conjugate(a, s));
  are<array>(bitwise_and(a, a), bitwise_and(a, a, s));
  are<array>(bitwise_or(a, a), bitwise_or(a, a, s));
  are<array>(bitwise_xor(a, a), bitwise_xor(a, a, s));
  are<array>(left_shift(a, a), left_shift(a, a, s));
  are<array>(right_shift(a, a), right_shift(a, a, s));
  are<array>(bitwise_invert(a), bitwise_invert(a, s));
  are<array>(view(a, t), view(a, t, s));
  are<array>(roll(a, i), roll(a, i, s), roll(a, shape), roll(a, shape, s), roll(a, i, i), roll(a, i, i, s),
             roll(a, i, axes), roll(a, i, axes, s), roll(a, shape, i), roll(a, shape, i, s), roll(a, shape, axes),
             roll(a, shape, axes, s));
  are<array>(real(a), real(a, s));
  are<array>(imag(a), imag(a, s));
  are<array>(contiguous(a), contiguous(a, yes), contiguous(a, yes, s));
  are<Arrays>(split(a, i, i), split(a, i, i, s), split(a, i), split(a, i, s), split(a, shape, i), split(a, shape, i, s),
              split(a, shape), split(a, shape, s));
  are<Arrays>(unstack(a, i), unstack(a, i, s), unstack(a), unstack(a, s));
  are<Arrays>(meshgrid(v), meshgrid(v, yes), meshgrid(v, yes, text), meshgrid(v, yes, text, s));
  are<Arrays>(broadcast_arrays(v), broadcast_arrays(v, s));
  are<Arrays>(divmod(a, a), divmod(a, a, s));
  are<Arrays>(depends(v, v));
  are<Arrays>(atleast_1d(v), atleast_1d(v, s));
  are<Arrays>(atleast_2d(v), atleast_2d(v, s));
  are<Arrays>(atleast_3d(v), atleast_3d(v, s));
  // Numbers in the place of arrays.
  are<array>(full(shape, x), full(shape, i, t), full(shape, yes), full_like(a, d), full_like(a, i, t),
             full_like(a, i, t, s));
  are<array>(pad(a, i, a), where(a, x, x), maximum(a, 0.0f), clip(a, array(0), array(1)), divide(2.0, a), power(a, 2));
  are<array>(a + a, a + x, d + a, a - a, a - i, i - a, -a, a * a, a * d, x * a, a / a, a / x, d / a, a % a, a % i,
             i % a);
  are<array>(a == a, a == i, x == a, a != a, a != i, x != a, a<a, a<i, x<a, a <= a, a <= i, x <= a, a> a, a> i, x> a,
             a >= a, a >= i, x >= a);
  are<array>(a && a, a || a, a & a, a | a, a ^ a, a << a, a >> a, ~a);
});

}  // namespace
