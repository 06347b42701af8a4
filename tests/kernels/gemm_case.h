#pragma once
// Products with the epilogues of descriptors, and what they should give, in float64.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "kernel/describe/desc.h"
#include "target/cuda/cuda_support.h"

namespace weft::test {

inline kernel::DotDesc product(int64_t m, int64_t n, int64_t k, Dtype t = bfloat16, bool a_m_major = false,
                               bool b_n_major = false, int64_t gap = 0) {
  kernel::DotDesc d;
  d.a = d.b = d.c = t;
  d.m = m, d.n = n, d.k = k;
  d.a_m = a_m_major ? 1 : k + gap, d.a_k = a_m_major ? m + gap : 1;
  d.b_n = b_n_major ? 1 : k + gap, d.b_k = b_n_major ? n + gap : 1;
  d.c_m = n + gap, d.c_n = 1;
  return d;
}

inline kernel::DotDesc with(kernel::DotDesc d, kernel::Activation activation,
                            kernel::PreActivation argument = kernel::PreActivation::none, bool bias = false) {
  d.activation = activation, d.pre_activation = argument, d.bias = bias;
  return d;
}

inline kernel::DotDesc with_residual(kernel::DotDesc d, bool bias) {
  d.residual = true, d.bias = bias;
  return d;
}

inline kernel::DotDesc with_sums(kernel::DotDesc d) {
  d.sum = kernel::OperandSum::c;
  return d;
}

inline kernel::DotDesc into(kernel::DotDesc d, Dtype c) {
  d.c = c;
  return d;
}

/// All epilogues and layouts once.
inline std::vector<kernel::DotDesc> products() {
  using kernel::Activation;
  using kernel::PreActivation;
  const auto gelu = Activation::gelu_tanh;
  return {
      product(128, 256, 64),
      product(128, 256, 72, float16, true, true),
      with(product(304, 520, 200, bfloat16, false, false, 8), gelu, PreActivation::stored, true),
      with(product(303, 264, 320, float16), gelu, PreActivation::stored),
      with(product(304, 520, 200, bfloat16, false, true, 8), gelu, PreActivation::derivative),
      with(product(200, 1032, 136, float16, true, false), gelu, PreActivation::derivative),
      with(product(264, 248, 640, bfloat16, true, true), Activation::relu, PreActivation::none, true),
      with(product(2, 8, 8, bfloat16), gelu),
      with_residual(product(392, 520, 128, bfloat16), true),
      with_residual(product(300, 256, 200, float16, false, true, 8), false),
      with(product(5000, 2056, 192, bfloat16, false, true), gelu, PreActivation::stored, true),  // several tiles an SM
      with(product(5000, 2056, 64, bfloat16), gelu, PreActivation::derivative),
      with_sums(with(product(384, 448, 128, bfloat16, false, true, 8), gelu, PreActivation::derivative)),
      with_sums(with(product(4864, 2056, 64, float16), gelu, PreActivation::derivative)),
      with_sums(with_residual(product(128, 264, 64), false)),
      with(product(264, 250, 90, bfloat16, false, false, 6), Activation::relu, PreActivation::none, true),
      product(300, 1030, 70, float16, false, true, 2),
      with_residual(product(130, 1029, 61, bfloat16, false, true, 3), false),
      into(product(264, 248, 640, int8), int32),
      into(product(300, 264, 208, float8_e4m3), bfloat16),
      with(into(product(256, 520, 336, float8_e5m2), bfloat16), Activation::relu, PreActivation::none, true),
  };
}

/// Products in batches: each with both matrices of its own, rows of all by one matrix, and one matrix by several.
inline std::vector<kernel::DotDesc> batched_products() {
  kernel::DotDesc own = with(product(72, 80, 64), kernel::Activation::gelu_tanh);
  own.batch = {2, 3}, own.a_batch = {3 * 72 * 64, 72 * 64}, own.b_batch = {80 * 64, 2 * 80 * 64},
  own.c_batch = {3 * 72 * 80, 72 * 80};
  kernel::DotDesc rows = with(product(40, 48, 64), kernel::Activation::relu, kernel::PreActivation::none, true);
  rows.batch = {3}, rows.a_batch = {40 * 64}, rows.b_batch = {0}, rows.c_batch = {40 * 48};
  kernel::DotDesc shared = with_residual(product(40, 48, 64, float16), false);
  shared.batch = {3}, shared.a_batch = {0}, shared.b_batch = {48 * 64}, shared.c_batch = {40 * 48};
  return {own, rows, shared};
}

inline double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

inline double gelu_slope(double x) {
  const double root = std::sqrt(2 / std::acos(-1.0)), t = std::tanh(root * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
}

/// The operands of a product, in the order of its descriptor, each as it is once it is stored in its dtype.
struct GemmOperands {
  struct Array {
    std::vector<double> values;
    Dtype dtype;
  };

  explicit GemmOperands(const kernel::DotDesc& desc) : d(desc) {
    arrays = {{numbers(reach(d.a_batch, d.m, d.a_m, d.k, d.a_k), 1), d.a},
              {numbers(reach(d.b_batch, d.k, d.b_k, d.n, d.b_n), 2), d.b}};
    const size_t elements = reach(d.c_batch, d.m, d.c_m, d.n, d.c_n);
    if (d.bias) arrays.push_back({numbers(static_cast<size_t>(d.n), 3), d.c});
    if (d.residual) other = add({numbers(elements, 4), d.c});
    if (d.sum == kernel::OperandSum::c)
      sums = add({std::vector<double>(static_cast<size_t>(d.m / kernel::rows_of_a_sum * d.n), -7), float32});
    if (d.pre_activation == kernel::PreActivation::derivative) other = add({numbers(elements, 4), d.c});
    if (d.pre_activation == kernel::PreActivation::stored) other = add({std::vector<double>(elements, -7), d.c});
    c = add({std::vector<double>(elements, -7), d.c});
    for (Array& x : arrays) x.values = rounded(x.values, x.dtype);
  }

  /// Calls f(batch, i, j) for some elements of the result, all of a small one.
  template <class F>
  void each(const F& f) const {
    int64_t batches = 1;
    for (const int64_t n : d.batch) batches *= n;
    for (int64_t b = 0; b < batches; ++b)
      for (int64_t i = 0; i<d.m; i += d.m> 600 && i < d.m - 140 ? 61 : 1)
        for (int64_t j = 0; j < d.n; ++j) f(b, i, j);
  }
  static int64_t at(int64_t batch, const std::vector<int64_t>& extents, const std::vector<int64_t>& strides) {
    int64_t out = 0;
    for (size_t axis = extents.size(); axis-- > 0; batch /= extents[axis]) out += batch % extents[axis] * strides[axis];
    return out;
  }
  size_t of_c(int64_t b, int64_t i, int64_t j) const {
    return static_cast<size_t>(at(b, d.batch, d.c_batch) + i * d.c_m + j * d.c_n);
  }
  double sum_of(int64_t b, int64_t i, int64_t j) const {
    const int64_t a = at(b, d.batch, d.a_batch) + i * d.a_m, from = at(b, d.batch, d.b_batch) + j * d.b_n;
    double out = d.bias ? arrays[2].values[static_cast<size_t>(j)] : 0;
    for (int64_t l = 0; l < d.k; ++l)
      out += arrays[0].values[static_cast<size_t>(a + l * d.a_k)] *
             arrays[1].values[static_cast<size_t>(from + l * d.b_k)];
    return out;
  }

  kernel::DotDesc d;
  std::vector<Array> arrays;
  size_t other = 0, sums = 0, c = 0;  // numbers of arrays: of the argument or residual, of sums

 private:
  size_t reach(const std::vector<int64_t>& batch, int64_t rows, int64_t row, int64_t columns, int64_t column) const {
    int64_t out = 1 + (rows - 1) * row + (columns - 1) * column;
    for (size_t axis = 0; axis < batch.size(); ++axis) out += (d.batch[axis] - 1) * batch[axis];
    return static_cast<size_t>(out);
  }
  size_t add(Array x) {
    arrays.push_back(std::move(x));
    return arrays.size() - 1;
  }
};

/// One rounding, or two: that of the sum may grow by gelu's derivative, which is at most 1.13.
inline double bound_of(const kernel::DotDesc& d) {
  const bool twice = d.pre_activation == kernel::PreActivation::derivative || d.residual ||
                     d.activation == kernel::Activation::gelu_tanh;
  const double sums = is_float8(d.a) ? 0x1p-8 : 0;  // which tensor cores round to some 13 bits
  return (d.c == bfloat16 ? 0x1p-8 : 0x1p-11) * (twice ? 2.2 : 1.05) + sums;
}

/// Checks what a product left in its arrays: `got[k]` of operand k.
inline void check_product(const GemmOperands& x, const std::vector<std::vector<double>>& got) {
  const kernel::DotDesc& d = x.d;
  const bool slope = d.pre_activation == kernel::PreActivation::derivative;
  double worst = 0, worst_argument = 0;
  const auto note = [](double& most, double v, double want) {
    most = larger(most, std::abs(v - want) / (1 + std::abs(want)));
  };
  std::vector<double> between = got[x.c];  // what lies between the rows of C
  x.each([&](int64_t b, int64_t i, int64_t j) {
    const size_t at = x.of_c(b, i, j);
    double want = x.sum_of(b, i, j);
    if (d.pre_activation == kernel::PreActivation::stored) note(worst_argument, got[x.other][at], want);
    if (d.residual) want += x.arrays[x.other].values[at];
    if (slope) want *= gelu_slope(x.arrays[x.other].values[at]);
    else if (d.activation == kernel::Activation::gelu_tanh) want = gelu(want);
    else if (d.activation == kernel::Activation::relu) want = std::max(want, 0.0);
    note(worst, got[x.c][at], want);
  });
  for (int64_t i = 0; i < d.m && d.batch.empty(); ++i)
    for (int64_t j = 0; j < d.n; ++j) between[x.of_c(0, i, j)] = -7;
  CHECK(std::all_of(between.begin(), between.end(), [&](double v) { return !d.batch.empty() || v == -7; }));
  CHECK(worst < bound_of(d));
  CHECK(worst_argument < bound_of(d));
  if (d.sum != kernel::OperandSum::c) return;
  const auto parts = static_cast<size_t>(d.m / kernel::rows_of_a_sum * d.n);
  std::vector<double> want(parts, 0), sizes(parts, 1e-30);  // of what was stored
  for (int64_t i = 0; i < d.m; ++i)
    for (int64_t j = 0; j < d.n; ++j) {
      const auto at = static_cast<size_t>(i / kernel::rows_of_a_sum * d.n + j);
      want[at] += got[x.c][x.of_c(0, i, j)], sizes[at] += std::abs(got[x.c][x.of_c(0, i, j)]);
    }
  int wrong = 0;
  for (size_t k = 0; k < parts; ++k) wrong += !(std::abs(got[x.sums][k] - want[k]) < 0x1p-20 * sizes[k]);  // or NaN
  CHECK(wrong == 0);
}

}  // namespace weft::test
