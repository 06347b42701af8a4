#pragma once
// Attention on random numbers, and what it should give, in float64.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "base/number.h"
#include "kernel/checked_memory.h"
#include "kernel/describe/dropout.h"
#include "kernel/language/trace.h"
#include "kernels/attention/attention.h"

namespace weft::test {

/// An array in memory of its own.
struct AttentionBuffer {
  Dtype dtype;
  std::vector<char> data;
  int64_t elements() const { return static_cast<int64_t>(data.size()) / dtype.size(); }
};

/// Attention over [batch, heads] with all of its arrays: q, k and v are parts of rows [batch, rows, heads, width] of
/// one array where queries and keys are as many, as projections leave them; `shared` heads have the same keys.
struct AttentionCase {
  struct Form {
    Dtype dtype = float32;
    int64_t batch = 1, heads = 2, shared = 1, queries = 0, keys = 0, width = 16, value_width = 16;
    bool causal = false, tf32 = false;
    int64_t before = kernels::Attention::all;
    Dtype mask = complex64;  // complex64: none
    bool mask_by_head = false;
    bool sum_shared = false;  // dk and dv are those of heads that share keys
    double dropout = 0;
    bool keys_by_batch = false;  // a key of dropout for each index of the first axis
  };

  explicit AttentionCase(const Form& form, kernels::ScoreFunction score = {}) : f(form) {
    a.dtype = f.dtype, a.tf32 = f.tf32, a.batch = {f.batch, f.heads / f.shared, f.shared};
    a.queries = f.queries, a.keys = f.keys, a.width = f.width, a.value_width = f.value_width;
    a.scale = 1 / std::sqrt(static_cast<double>(f.width));
    if (f.causal) a.after = f.keys - f.queries;
    a.before = f.before, a.score = std::move(score);
    a.q = rows(f.queries, f.width, f.heads), a.k = rows(f.keys, f.width, f.heads / f.shared);
    a.v = rows(f.keys, f.value_width, f.heads / f.shared);
    if (f.shared > 1) share(a.k), share(a.v);
    a.g = rows(f.queries, f.value_width, f.heads), a.o = rows(f.queries, f.value_width, f.heads);
    a.dq = rows(f.queries, f.width, f.heads);
    a.dk = rows(f.keys, f.width, f.sum_shared ? f.heads / f.shared : f.heads);
    a.dv = rows(f.keys, f.value_width, f.sum_shared ? f.heads / f.shared : f.heads);
    if (f.sum_shared) share(a.dk), share(a.dv);
    a.lse = entries(), a.delta = entries();
    if (f.mask != complex64) add_mask();
    if (f.dropout > 0) add_key();
    std::mt19937 engine(7);
    std::normal_distribution<double> normal;
    for (const kernels::AttentionArray* x : {&a.q, &a.k, &a.v, &a.g, &a.mask})
      if (*x && !(is_integer(x->dtype)))
        for (int64_t i = 0; i < buffer(*x).elements(); ++i)
          put(buffer(*x), i, x->dtype == bool_ ? static_cast<double>(normal(engine) < 1) : normal(engine));
  }

  AttentionBuffer& buffer(const kernels::AttentionArray& x) { return buffers[static_cast<size_t>(x.buffer)]; }
  double get(const kernels::AttentionArray& x, const std::vector<int64_t>& at, int64_t row, int64_t column = 0) {
    int64_t i = x.offset + row * x.row + column * x.column;
    for (size_t axis = 0; axis < at.size(); ++axis) i += at[axis] * x.batch[axis];
    const Number n = kernel::read_element(buffer(x).data.data(), x.dtype, i);
    return is_float(x.dtype) ? n.real() : static_cast<double>(n.i);
  }
  static void put(AttentionBuffer& b, int64_t i, double v) {
    const Number n =
        is_float(b.dtype) ? kernel::round_to(Number::of_real(v), b.dtype) : Number::of_int(static_cast<int64_t>(v));
    kernel::write_element(b.data.data(), b.dtype, i, n);
  }

  /// The batch indices.
  void each(const std::function<void(const std::vector<int64_t>&)>& body) const {
    for (int64_t b = 0; b < a.batch[0]; ++b)
      for (int64_t h = 0; h < a.batch[1]; ++h)
        for (int64_t s = 0; s < a.batch[2]; ++s) body({b, h, s});
  }

  Form f;
  kernels::Attention a;
  std::vector<AttentionBuffer> buffers;

 private:
  using Array = kernels::AttentionArray;
  Array add(Dtype t, int64_t elements, Array x) {
    x.buffer = static_cast<int>(buffers.size()), x.dtype = t;
    buffers.push_back({t, std::vector<char>(static_cast<size_t>(elements) * t.size(), 0x55)});
    return x;
  }
  /// [batch, rows, heads, width] with 8 elements more in a row.
  Array rows(int64_t count, int64_t width, int64_t heads) {
    const int64_t pitch = heads * width + 8, own = heads / a.batch[1];
    Array x;
    x.batch = {count * pitch, own * width, own == 1 && f.shared > 1 ? 0 : width}, x.row = pitch, x.column = 1;
    return add(f.dtype, f.batch * count * pitch, x);
  }
  static void share(Array& x) { x.batch[2] = 0; }
  void add_key() {
    Array x;
    x.batch = {f.keys_by_batch ? 2 : 0, 0, 0}, x.row = 1;
    a.dropout = f.dropout, a.keyed = f.keys_by_batch ? 1 : 0;
    a.key = add(uint32, f.keys_by_batch ? 2 * f.batch : 2, x);
    for (int64_t i = 0; i < buffer(a.key).elements(); ++i) put(buffer(a.key), i, 1e9 + 7e7 * static_cast<double>(i));
  }
  Array entries() {
    Array x;
    x.batch = {f.heads * f.queries, f.shared * f.queries, f.queries}, x.row = 1;
    return add(float32, f.batch * f.heads * f.queries, x);
  }
  void add_mask() {
    Array x;
    if (is_integer(f.mask)) {
      x.batch = {0, 0, 0};
      a.mask = add(f.mask, 1, x);
      return put(buffer(a.mask), 0, static_cast<double>(f.keys * 2 / 3));
    }
    x.batch = {0, f.mask_by_head ? f.shared * f.queries * f.keys : 0, f.mask_by_head ? f.queries * f.keys : 0};
    x.row = f.keys, x.column = 1;
    a.mask = add(f.mask, (f.mask_by_head ? f.heads : 1) * f.queries * f.keys, x);
  }
};

/// Returns what a weight is multiplied by: 0, or 1 / (1 - rate), as kernel/describe/dropout.h defines it.
inline double dropout_factor(AttentionCase& c, const std::vector<int64_t>& at, int64_t query, int64_t key) {
  const kernels::Attention& a = c.a;
  if (a.dropout == 0) return 1;
  int64_t call = 0;
  for (size_t axis = a.keyed; axis < a.batch.size(); ++axis) call = call * a.batch[axis] + at[axis];
  const int64_t block = kernel::dropout_block, half = block / 2;
  for (const auto& [rows, row] : {std::pair{a.queries.bound(), query}, {a.keys.bound(), key}})
    call = call * ((rows + block - 1) / block * block) + (row | half);
  const auto whole = [](double v) { return Number::of_int(static_cast<int64_t>(v)); };
  const Number args[] = {whole(c.get(a.key, at, 0)), whole(c.get(a.key, at, 1)), Number::of_int(call & 0xffffffff),
                         Number::of_int(call >> 32), Number::of_int(0),          Number::of_int(0)};
  const int64_t word = query % block / half * 2 + key % block / half;
  const auto op = static_cast<kernel::ScalarOp>(static_cast<int64_t>(kernel::ScalarOp::philox0) + word);
  const Number drawn = kernel::reference(op, uint32, args);
  return static_cast<double>(static_cast<uint32_t>(drawn.i)) < (1 - a.dropout) * 0x1p32 ? 1 / (1 - a.dropout) : 0;
}

/// What attention and its derivative give for one batch index.
struct AttentionResults {
  std::vector<double> o, lse, dq, dk, dv;
};
/// A score from the scaled product: t, and dt / ds.
using ReferenceScore =
    std::function<std::pair<double, double>(double s, const std::vector<int64_t>& at, int64_t query, int64_t key)>;

inline AttentionResults reference(AttentionCase& c, const std::vector<int64_t>& at, const ReferenceScore& score = {}) {
  const kernels::Attention& a = c.a;
  const auto size = [](int64_t m, int64_t n) { return static_cast<size_t>(m * n); };
  AttentionResults r{std::vector<double>(size(a.queries, a.value_width)), std::vector<double>(size(a.queries, 1)),
                     std::vector<double>(size(a.queries, a.width)), std::vector<double>(size(a.keys, a.width)),
                     std::vector<double>(size(a.keys, a.value_width))};
  const auto matrix = [&](const kernels::AttentionArray& x, int64_t rows, int64_t columns) {
    std::vector<double> out;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) out.push_back(c.get(x, at, i, j));
    return out;
  };
  const std::vector<double> q = matrix(a.q, a.queries, a.width), k = matrix(a.k, a.keys, a.width),
                            v = matrix(a.v, a.keys, a.value_width), g = matrix(a.g, a.queries, a.value_width);
  const auto dot = [](const std::vector<double>& x, int64_t i, const std::vector<double>& y, int64_t j, int64_t n) {
    double sum = 0;
    for (int64_t d = 0; d < n; ++d) sum += x[static_cast<size_t>(i * n + d)] * y[static_cast<size_t>(j * n + d)];
    return sum;
  };
  for (int64_t i = 0; i < a.queries; ++i) {
    std::vector<double> t, slope;
    double most = -INFINITY;
    for (int64_t j = 0; j < a.keys; ++j) {
      double s = dot(q, i, k, j, a.width) * a.scale, ds = 1;
      if (score) std::tie(s, ds) = score(s, at, i, j);
      if (a.mask && is_float(a.mask.dtype)) s += c.get(a.mask, at, i, j);
      else if (a.mask && a.mask.dtype == bool_ && c.get(a.mask, at, i, j) == 0) s = -INFINITY;
      else if (a.mask && is_integer(a.mask.dtype) && j >= c.get(a.mask, at, 0)) s = -INFINITY;
      if ((a.after != a.all && j > i + a.after) || (a.before != a.all && j < i - a.before)) s = -INFINITY;
      t.push_back(s), slope.push_back(ds), most = std::max(most, s);
    }
    double total = 0;
    for (const double s : t) total += most == -INFINITY ? 0 : std::exp(s - most);
    const double lse = total == 0 ? INFINITY : most + std::log(total);
    r.lse[static_cast<size_t>(i)] = lse;
    double delta = 0;
    std::vector<double> dp;
    for (int64_t j = 0; j < a.keys; ++j) {
      const double factor = dropout_factor(c, at, i, j), p = std::exp(t[static_cast<size_t>(j)] - lse) * factor;
      dp.push_back(dot(g, i, v, j, a.value_width));
      delta += p * dp.back();
      dp.back() *= factor;
      for (int64_t d = 0; d < a.value_width; ++d) {
        r.o[static_cast<size_t>(i * a.value_width + d)] += p * v[static_cast<size_t>(j * a.value_width + d)];
        r.dv[static_cast<size_t>(j * a.value_width + d)] += p * g[static_cast<size_t>(i * a.value_width + d)];
      }
    }
    for (int64_t j = 0; j < a.keys; ++j) {
      const auto at_j = static_cast<size_t>(j);
      const double ds = std::exp(t[at_j] - lse) * (dp[at_j] - delta) * slope[at_j] * a.scale;
      for (int64_t d = 0; d < a.width; ++d) {
        r.dq[static_cast<size_t>(i * a.width + d)] += ds * k[static_cast<size_t>(j * a.width + d)];
        r.dk[static_cast<size_t>(j * a.width + d)] += ds * q[static_cast<size_t>(i * a.width + d)];
      }
    }
  }
  return r;
}

}  // namespace weft::test
