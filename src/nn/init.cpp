// Starting values. Those that need more than a draw (sparse, orthogonal) are computed on the host.
#include "weft/nn/init.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
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

array normal_of(const Shape& shape, double std) { return normal(shape, 0, static_cast<float>(std)); }
array uniform_in(const Shape& shape, double bound) { return uniform(shape, static_cast<float>(-bound), static_cast<float>(bound)); }

void check_matrix(const char* op, const Shape& shape) {
  if (shape.size() != 2) throw_invalid(op, "a matrix is needed; the shape is " + to_string(shape));
}

}  // namespace

array normal(const Shape& shape, float mean, float std) { return random::normal(shape, float32, mean, std); }
array uniform(const Shape& shape, float low, float high) { return random::uniform(array(low), array(high), shape); }
array constant(const Shape& shape, float value) { return full(shape, array(value), float32); }

array identity(const Shape& shape) {
  check_matrix("init.identity", shape);
  if (shape[0] != shape[1]) throw_invalid("init.identity", "a square matrix is needed; the shape is " + to_string(shape));
  return eye(static_cast<int>(shape[0].bound()));
}

array glorot_normal(const Shape& shape, float gain) {
  const Fans f = fans("init.glorot_normal", shape);
  return normal_of(shape, gain * std::sqrt(2 / (f.in + f.out)));
}

array glorot_uniform(const Shape& shape, float gain) {
  const Fans f = fans("init.glorot_uniform", shape);
  return uniform_in(shape, gain * std::sqrt(6 / (f.in + f.out)));
}

array he_normal(const Shape& shape, Fan mode, float gain) { return normal_of(shape, gain / std::sqrt(he_fan("init.he_normal", shape, mode))); }
array he_uniform(const Shape& shape, Fan mode, float gain) { return uniform_in(shape, gain * std::sqrt(3 / he_fan("init.he_uniform", shape, mode))); }

array sparse(const Shape& shape, float sparsity, float mean, float std) {
  check_matrix("init.sparse", shape);
  if (!(sparsity >= 0 && sparsity <= 1)) throw_invalid("init.sparse", "sparsity must lie in [0, 1]; it is " + std::to_string(sparsity));
  const auto rows = static_cast<size_t>(shape[0].bound()), columns = static_cast<size_t>(shape[1].bound());
  const auto dropped = static_cast<size_t>(std::ceil(static_cast<double>(sparsity) * static_cast<double>(columns)));
  std::vector<float> values = normal(shape, mean, std).to_vector<float>();
  const std::vector<float> keys = uniform(shape).to_vector<float>();
  std::vector<size_t> order(columns);
  for (size_t r = 0; r < rows; ++r) {
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return keys[r * columns + a] < keys[r * columns + b]; });
    for (size_t k = 0; k < dropped; ++k) values[r * columns + order[k]] = 0;
  }
  return array::from_data(values.data(), shape, float32);
}

// Gram–Schmidt, twice for each vector, on normal draws: the vectors are distributed evenly over the orthonormal sets (Saxe et al. 2014).
array orthogonal(const Shape& shape, float gain) {
  if (shape.size() < 2) throw_invalid("init.orthogonal", "a weight has at least two axes; the shape is " + to_string(shape));
  const auto rows = static_cast<size_t>(shape[0].bound()), all = static_cast<size_t>(num_elements(shape)), columns = rows == 0 ? 0 : all / rows;
  const size_t count = std::min(rows, columns), length = std::max(rows, columns);
  const std::vector<float> drawn = normal({static_cast<int64_t>(count), static_cast<int64_t>(length)}).to_vector<float>();
  std::vector<std::vector<double>> vectors;
  for (size_t i = 0; i < count; ++i) {
    const auto begin = drawn.begin() + static_cast<std::ptrdiff_t>(i * length);
    std::vector<double> v(begin, begin + static_cast<std::ptrdiff_t>(length));
    for (int pass = 0; pass < 2; ++pass)
      for (const auto& u : vectors) {
        const double along = std::inner_product(u.begin(), u.end(), v.begin(), 0.0);
        for (size_t k = 0; k < length; ++k) v[k] -= along * u[k];
      }
    const double norm = std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
    for (double& x : v) x /= norm;
    vectors.push_back(std::move(v));
  }
  std::vector<float> values(all);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) values[r * columns + c] = static_cast<float>(gain * (rows <= columns ? vectors[r][c] : vectors[c][r]));
  return array::from_data(values.data(), shape, float32);
}

}  // namespace weft::nn::init
