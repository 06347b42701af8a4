// weft/random.h: distributions that are functions of uniform numbers, in MLX's order of operations.
#include <cmath>
#include <numbers>

#include "array/op_support.h"
#include "base/error.h"
#include "weft/linalg.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::random {
namespace {

void require_float_result(const char* op, Dtype dtype) {
  if (!is_float(dtype))
    throw_invalid(op, std::string("numbers are drawn in floating types only, got ") + dtype_name(dtype));
}

// Draws argmax(gumbel + logits) for each element of `shape`, to which the logits without their axis broadcast. The axis
// keeps its position, counted from the last.
array draw(const array& logits, int64_t axis, const Shape& shape, const std::optional<array>& key,
           const StreamOrDevice& s) {
  const int64_t after = static_cast<int64_t>(logits.ndim()) - 1 - axis, at = static_cast<int64_t>(shape.size()) - after;
  Shape all = shape;
  all.insert(all.begin() + at, logits.shape()[static_cast<size_t>(axis)]);
  return argmax(add(gumbel(all, float32, key, s), logits, s), static_cast<int>(at), false, s);
}

Shape without_axis(const array& logits, int64_t axis) {
  Shape shape = logits.shape();
  shape.erase(shape.begin() + axis);
  return shape;
}

// Draws many samples of one distribution: uniform numbers are searched in its cumulative weights. Memory is that of the
// distribution and of the samples.
array draw_by_search(const array& logits, const Shape& shape, const std::optional<array>& key,
                     const StreamOrDevice& s) {
  const array x = astype(logits, promote_types(logits.dtype(), float32), s), top = max(x, s);
  // Where the largest logit is infinite, the distribution is uniform over those that are.
  const array weights = where(isinf(top, s), astype(equal(x, top, s), x.dtype(), s), exp(subtract(x, top, s), s), s);
  const array below = cumsum(weights, 0, false, false, s),
              u = multiply(uniform(shape, float32, key, s), sum(weights, s), s);
  return subtract(searchsorted(below, u, "right", s), array(1, uint32), s);
}

array draw_many(const array& logits, int64_t axis, const Shape& shape, const std::optional<array>& key,
                const StreamOrDevice& s) {
  const int64_t n = logits.shape()[static_cast<size_t>(axis)];
  if (n > 0 && static_cast<int64_t>(logits.size()) == n && !shape.empty())
    return draw_by_search(reshape(logits, {n}, s), shape, key, s);
  return draw(logits, axis, shape, key, s);
}

int64_t axis_of(const array& logits, int axis) { return detail::one_axis("categorical", axis, logits.ndim()); }

}  // namespace

array truncated_normal(const array& lower, const array& upper, const Shape& shape, Dtype dtype,
                       const std::optional<array>& key, StreamOrDevice s) {
  require_float_result("truncated_normal", dtype);
  const array root(std::numbers::sqrt2, dtype), low = astype(lower, dtype, s), high = astype(upper, dtype, s);
  const array a = erf(divide(low, root, s), s), b = erf(divide(high, root, s), s);
  const array drawn = multiply(root, erfinv(uniform(a, b, shape, dtype, key, s), s), s);
  return maximum(minimum(high, drawn, s), low, s);
}
array truncated_normal(const array& lower, const array& upper, Dtype dtype, const std::optional<array>& key,
                       StreamOrDevice s) {
  return truncated_normal(lower, upper, broadcast_shapes(lower.shape(), upper.shape()), dtype, key, s);
}

array laplace(const Shape& shape, Dtype dtype, float loc, float scale, const std::optional<array>& key,
              StreamOrDevice s) {
  require_float_result("laplace", dtype);
  const array u = uniform(array(std::nextafter(-1.0f, 0.0f)), array(1.0f), shape, float32, key, s);
  const array unit = astype(multiply(sign(u, s), log1p(negative(abs(u, s), s), s), s), dtype, s);
  const array scaled = scale == 1 ? unit : multiply(array(scale, dtype), unit, s);
  return loc == 0 ? scaled : add(array(loc, dtype), scaled, s);
}

array categorical(const array& logits, int axis, const std::optional<array>& key, StreamOrDevice s) {
  const detail::OnStream on_stream("categorical", s);
  const int64_t at = axis_of(logits, axis);
  return draw_many(logits, at, without_axis(logits, at), key, s);
}
array categorical(const array& logits, int axis, const Shape& shape, const std::optional<array>& key,
                  StreamOrDevice s) {
  const detail::OnStream on_stream("categorical", s);
  const int64_t at = axis_of(logits, axis);
  const Shape rest = without_axis(logits, at);
  bool fits = rest.size() <= shape.size();
  for (size_t k = 0; fits && k < rest.size(); ++k)
    fits = rest[rest.size() - 1 - k] == 1 || rest[rest.size() - 1 - k] == shape[shape.size() - 1 - k];
  if (!fits)
    throw_invalid("categorical",
                  "distributions of shape " + to_string(rest) + " do not broadcast to shape " + to_string(shape));
  return draw_many(logits, at, shape, key, s);
}
array categorical(const array& logits, int axis, int num_samples, const std::optional<array>& key, StreamOrDevice s) {
  const detail::OnStream on_stream("categorical", s);
  const int64_t at = axis_of(logits, axis);
  if (num_samples < 0)
    throw_invalid("categorical", "the number of samples must not be negative, got " + std::to_string(num_samples));
  const array column = expand_dims(logits, -1, s);
  Shape shape = without_axis(column, at);
  shape.back() = num_samples;
  return draw_many(column, at, shape, key, s);
}

array permutation(int x, const std::optional<array>& key, StreamOrDevice s) {
  if (x < 0) throw_invalid("permutation", "the number of elements must not be negative, got " + std::to_string(x));
  return argsort(bits({x}, 4, key, s), s);
}
array permutation(const array& x, int axis, const std::optional<array>& key, StreamOrDevice s) {
  const int64_t at = detail::one_axis("permutation", axis, x.ndim());
  return take(x, permutation(static_cast<int>(x.shape()[static_cast<size_t>(at)]), key, s), static_cast<int>(at), s);
}

// Returns mean + z · U √S Vᵀ with the singular value decomposition of cov. U = V except for vectors of singular value
// 0, so the choice of signs does not matter.
array multivariate_normal(const array& mean, const array& cov, const Shape& shape, Dtype dtype,
                          const std::optional<array>& key, StreamOrDevice s) {
  const char* op = "multivariate_normal";
  if (dtype != float32) throw_invalid(op, std::string("numbers are drawn in float32 only, got ") + dtype_name(dtype));
  if (mean.ndim() < 1 || cov.ndim() < 2)
    throw_invalid(
        op, "mean is [..., n] and cov [..., n, n], got " + detail::describe(mean) + " and " + detail::describe(cov));
  const Dim n = mean.shape(-1);
  if (cov.shape(-1) != n || cov.shape(-2) != n)
    throw_invalid(op, "cov must have as many rows and columns as mean has elements, got " + detail::describe(mean) +
                          " and " + detail::describe(cov));
  const Shape leading = broadcast_shapes(Shape(cov.shape().begin(), cov.shape().end() - 2),
                                         Shape(mean.shape().begin(), mean.shape().end() - 1));
  Shape result = broadcast_shapes(leading, shape);
  result.push_back(n);
  const std::vector<array> f = linalg::svd(astype(cov, float32, s), true, s);
  const array root = matmul(multiply(f[0], expand_dims(sqrt(f[1], s), -2, s), s), f[2], s);
  const array z = expand_dims(normal(result, float32, 0.0f, 1.0f, key, s), -2, s);
  return add(mean, squeeze(matmul(z, root, s), -2, s), s);
}

}  // namespace weft::random
