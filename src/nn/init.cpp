// Initial values.
#include "weft/nn/init.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "weft/linalg.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::nn::init {

namespace {

struct Fans {
  double in, out;
};

Fans fans(const char* op, const Shape& shape) {
  if (shape.size() < 2) throw_invalid(op, "a weight has at least two axes; the shape is " + to_string(shape));
  double window = 1;
  for (size_t k = 1; k + 1 < shape.size(); ++k) window *= static_cast<double>(shape[k].bound());
  return {window * static_cast<double>(shape.back().bound()), window * static_cast<double>(shape.front().bound())};
}

double he_fan(const char* op, const Shape& shape, Fan mode) {
  const Fans f = fans(op, shape);
  return mode == Fan::in ? f.in : f.out;
}

array normal_of(const Shape& shape, double std, Dtype dtype) {
  return normal(shape, 0, static_cast<float>(std), dtype);
}
array uniform_in(const Shape& shape, double bound, Dtype dtype) {
  return uniform(shape, static_cast<float>(-bound), static_cast<float>(bound), dtype);
}

void check_matrix(const char* op, const Shape& shape) {
  if (shape.size() != 2) throw_invalid(op, "a matrix is needed; the shape is " + to_string(shape));
}

}  // namespace

array normal(const Shape& shape, float mean, float std, Dtype dtype) { return random::normal(shape, dtype, mean, std); }
array uniform(const Shape& shape, float low, float high, Dtype dtype) {
  return random::uniform(array(low), array(high), shape, dtype);
}
array constant(const Shape& shape, float value, Dtype dtype) { return full(shape, array(value), dtype); }

array identity(const Shape& shape, Dtype dtype) {
  check_matrix("init.identity", shape);
  if (shape[0] != shape[1])
    throw_invalid("init.identity", "a square matrix is needed; the shape is " + to_string(shape));
  return eye(static_cast<int>(shape[0].bound()), dtype);
}

array glorot_normal(const Shape& shape, float gain, Dtype dtype) {
  const Fans f = fans("init.glorot_normal", shape);
  return normal_of(shape, gain * std::sqrt(2 / (f.in + f.out)), dtype);
}

array glorot_uniform(const Shape& shape, float gain, Dtype dtype) {
  const Fans f = fans("init.glorot_uniform", shape);
  return uniform_in(shape, gain * std::sqrt(6 / (f.in + f.out)), dtype);
}

array he_normal(const Shape& shape, Fan mode, float gain, Dtype dtype) {
  return normal_of(shape, gain / std::sqrt(he_fan("init.he_normal", shape, mode)), dtype);
}

array he_uniform(const Shape& shape, Fan mode, float gain, Dtype dtype) {
  return uniform_in(shape, gain * std::sqrt(3 / he_fan("init.he_uniform", shape, mode)), dtype);
}

// The zeros of a row are at the smallest of its random keys, which are drawn before the values.
array sparse(const Shape& shape, double sparsity, float mean, float std, Dtype dtype) {
  check_matrix("init.sparse", shape);
  if (!(sparsity >= 0 && sparsity <= 1))
    throw_invalid("init.sparse", "sparsity must lie in [0, 1]; it is " + std::to_string(sparsity));
  const int64_t zeros = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(shape[1].bound())));
  const array order = argsort(uniform(shape), 1), values = normal(shape, mean, std, dtype);
  return put_along_axis(values, slice(order, {0, 0}, {shape[0], zeros}), array(0, dtype), 1);
}

// A normal matrix has no preferred direction, so its Q is uniformly distributed once its signs are fixed (Mezzadri
// 2007).
array orthogonal(const Shape& shape, float gain, Dtype dtype) {
  if (shape.size() < 2)
    throw_invalid("init.orthogonal", "a weight has at least two axes; the shape is " + to_string(shape));
  const int64_t rows = shape[0].bound(), columns = rows == 0 ? 0 : num_elements(shape) / rows;
  const int64_t larger = std::max(rows, columns);
  const auto [q, r] = linalg::qr(normal({larger, larger}));
  return astype(reshape(slice(q * sign(diag(r)), {0, 0}, {rows, columns}) * array(gain), shape), dtype);
}

}  // namespace weft::nn::init
