// Orthogonal factors as calls, of finite matrices. Matrices of m rows and n columns lie column by column: [b…, n, m].
// Signs of vectors are the library's.
//
// qr a      integers: 1 for all m columns of Q, 0 for n. m ≥ n: orthonormal Q [b…, n or m, m] with R = QᵀA upper
//           triangular, by Householder's reflections.
// svd a     m ≥ n. Results: singular values [b…, n], descending; U [b…, n, m]; V [b…, n, n], whose rows are the rows of
//           Vᵀ.
// eigh a    a [b…, n, n], symmetric, of which only the lower part is read. Results: eigenvalues [b…, n], ascending;
//           eigenvectors [b…, n, n].
#include <array>
#include <cmath>

#include "base/error.h"
#include "graph/calls/linalg_rules.h"

namespace weft::graph {
namespace {

using namespace linalg;

Value skew_lower(const Value& v) { return lower(v - swap_last(v), -1); }  // below the diagonal

// ---- QR ----

std::vector<Type> qr_types(const Attrs& attrs, TypeSpan in) {
  check_matrices("qr", in[0], false, true);
  const Shape& shape = in[0].shape;
  return {batch_of(in[0], {attrs.integers[0] ? shape.back() : shape[shape.size() - 2], shape.back()}, in[0].dtype)};
}

/// The columns of Q that span those of A, the other columns (empty if there are none), and R.
struct Orthogonal {
  Value q, beside, r;
};
Orthogonal orthogonal(const Value& a, const Value& all) {
  const int rank = a.type().rank();
  const int64_t m = a.shape()[static_cast<size_t>(rank - 2)].bound(), n = a.shape().back().bound(),
                columns = all.shape().back().bound();
  Orthogonal out;
  out.q = slice_axis(all, rank - 1, 0, n);
  if (columns > n) out.beside = slice_axis(all, rank - 1, n, m - n);
  out.r = upper(batched_matmul(out.q, a, true));
  return out;
}

/// With M = dA R⁻¹ and C = QᵀM: dQ = Q (C's lower part - its transpose) + M - Q C (Walter & Lehmann, Algorithmic
/// differentiation of linear algebra functions, 2012). The other columns get the smallest rotation: dQ₂ = -Q dQᵀ Q₂.
Values qr_vjp(const Node&, ValueSpan x, ValueSpan y, ValueSpan g) {
  if (!g[0]) return {Value{}};
  const Value all = swap_last(g[0]);
  const Orthogonal f = orthogonal(swap_last(x[0]), swap_last(y[0]));
  const int rank = all.type().rank();
  const Dim n = f.q.shape().back();
  Value gq = slice_axis(all, rank - 1, 0, n);
  if (f.beside)
    gq = gq - batched_matmul(f.beside,
                             batched_matmul(slice_axis(all, rank - 1, n.bound(), f.beside.shape().back()), f.q, true));
  const Value h = batched_matmul(f.q, gq, true);
  const Value gm = gq + batched_matmul(f.q, skew_lower(h) - h);
  return {solve_triangular(f.r, swap_last(gm), true)};  // (gM R⁻ᵀ)ᵀ
}

Values qr_jvp(const Node&, ValueSpan x, ValueSpan y, ValueSpan t) {
  if (!t[0]) return {Value{}};
  const Orthogonal f = orthogonal(swap_last(x[0]), swap_last(y[0]));
  const Value m = swap_last(solve_triangular(f.r, t[0], true, true));  // dA R⁻¹
  const Value c = batched_matmul(f.q, m, true), low = lower(c, -1);
  Value dq = m + batched_matmul(f.q, low - swap_last(low) - c);
  if (f.beside) dq = concat({dq, -batched_matmul(f.q, batched_matmul(dq, f.beside, true))}, dq.type().rank() - 1);
  return {swap_last(dq)};
}

std::vector<HostTensor> qr_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan out) {
  HostTensor result{out[0], {}};
  const int64_t columns = out[0].shape[out[0].shape.size() - 2].bound();
  for (int64_t k = 0; k < count_of(in[0]); ++k)
    append(result, transposed(reflections(transposed(matrix_of(in[0], k)), columns)).data);
  return {result};
}

// ---- singular values ----

std::vector<Type> svd_types(const Attrs&, TypeSpan in) {
  check_matrices("svd", in[0], false, true);
  const Dim n = in[0].shape[in[0].shape.size() - 2];
  return {batch_of(in[0], {n}, in[0].dtype), in[0], batch_of(in[0], {n, n}, in[0].dtype)};
}

/// Returns 1 / (s_j² - s_i²), 0 on the diagonal: the rates at which U and V rotate where singular values differ.
Value rotation_rates(const Value& s) { return reciprocal_gaps(square(s)); }

/// Returns v - U Uᵀ v, which is 0 if U is square.
Value outside(const Value& u, const Value& v) { return v - batched_matmul(u, batched_matmul(u, v, true)); }
bool has_outside(const Value& u) { return u.shape()[u.shape().size() - 2].bound() > u.shape().back().bound(); }

/// Townsend, Differentiating the singular value decomposition, 2016. The gradient of singular values alone has no gaps
/// between them as divisors.
Values svd_vjp(const Node&, ValueSpan, ValueSpan y, ValueSpan g) {
  const Value s = y[0], u = swap_last(y[1]), vt = y[2];
  Value inner = g[0] ? diagonal_matrix(g[0]) : Value{}, beyond;
  const auto add = [&inner](const Value& v) { inner = inner ? inner + v : v; };
  if (g[1]) {
    const Value gu = swap_last(g[1]), rotation = batched_matmul(u, gu, true);
    add(scale_columns(rotation_rates(s) * (rotation - swap_last(rotation)), s));
    if (has_outside(u)) beyond = outside(u, scale_columns(gu, 1.0 / s));
  }
  if (g[2]) {
    const Value rotation = batched_matmul(vt, g[2], false, true);  // Vᵀ gV
    add(scale_rows(rotation_rates(s) * (rotation - swap_last(rotation)), s));
  }
  if (!inner) return {Value{}};
  Value left = batched_matmul(u, inner);
  if (beyond) left = left + beyond;
  return {swap_last(batched_matmul(left, vt))};
}

Values svd_jvp(const Node&, ValueSpan, ValueSpan y, ValueSpan t) {
  if (!t[0]) return {Value{}, Value{}, Value{}};
  const Value s = y[0], u = swap_last(y[1]), vt = y[2];
  const Value along = batched_matmul(swap_last(t[0]), vt, false, true),
              inner = batched_matmul(u, along, true);  // dA V, Uᵀ dA V
  const Value right = scale_columns(inner, s), left = scale_rows(inner, s);
  Value du = batched_matmul(u, rotation_rates(s) * (right + swap_last(right)));
  if (has_outside(u)) du = du + outside(u, scale_columns(along, 1.0 / s));
  const Value dvt = batched_matmul(rotation_rates(s) * (left + swap_last(left)), vt, true);
  return {diagonal(inner), swap_last(du), dvt};
}

std::vector<HostTensor> svd_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan out) {
  std::vector<HostTensor> results{{out[0], {}}, {out[1], {}}, {out[2], {}}};
  for (int64_t k = 0; k < count_of(in[0]); ++k) {
    Matrix a = transposed(matrix_of(in[0], k));
    std::vector<double> s;
    const Matrix v = rotate_columns(a, s);
    append(results[0], s);
    append(results[1], transposed(a).data);
    append(results[2], transposed(v).data);
  }
  return results;
}

// ---- symmetric eigenvalues ----

std::vector<Type> eigh_types(const Attrs&, TypeSpan in) {
  check_matrices("eigh", in[0], true);
  return {batch_of(in[0], {in[0].shape.back()}, in[0].dtype), in[0]};
}

/// gA = V (gw on the diagonal, (Vᵀ gV)_ij / (w_j - w_i) off it) Vᵀ, folded to the lower part.
Values eigh_vjp(const Node&, ValueSpan, ValueSpan y, ValueSpan g) {
  const Value v = swap_last(y[1]);
  Value inner = g[0] ? diagonal_matrix(g[0]) : Value{};
  if (g[1]) {
    const Value rotation = reciprocal_gaps(y[0]) * batched_matmul(v, swap_last(g[1]), true);
    inner = inner ? inner + rotation : rotation;
  }
  if (!inner) return {Value{}};
  const Value whole = batched_matmul(batched_matmul(v, inner), v, false, true);
  return {half_lower(whole + swap_last(whole))};
}

Values eigh_jvp(const Node&, ValueSpan, ValueSpan y, ValueSpan t) {
  if (!t[0]) return {Value{}, Value{}};
  const Value v = swap_last(y[1]), moved = lower(t[0]) + swap_last(lower(t[0], -1));
  const Value inner = batched_matmul(v, batched_matmul(moved, v), true);
  return {diagonal(inner), swap_last(batched_matmul(v, reciprocal_gaps(y[0]) * inner))};
}

std::vector<HostTensor> eigh_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan out) {
  std::vector<HostTensor> results{{out[0], {}}, {out[1], {}}};
  for (int64_t k = 0; k < count_of(in[0]); ++k) {
    Matrix a = matrix_of(in[0], k);
    for (int64_t i = 0; i < a.rows; ++i)
      for (int64_t j = i + 1; j < a.rows; ++j) a(i, j) = a(j, i);
    std::vector<double> w;
    const Matrix v = rotate_symmetric(a, w);
    append(results[0], w);
    append(results[1], transposed(v).data);
  }
  return results;
}

constexpr auto orthogonal_rules = std::to_array<CallRule>({
    {"qr", 1, 1, 1, qr_types, None::unbounded, qr_vjp, qr_jvp, batched_call, batch_factors, qr_reference, 16},
    {"svd", 1, 1, 0, svd_types, None::unbounded, svd_vjp, svd_jvp, batched_call, batch_factors, svd_reference, 16},
    {"eigh", 1, 1, 0, eigh_types, None::unbounded, eigh_vjp, eigh_jvp, batched_call, batch_factors, eigh_reference, 16},
});
static_assert(complete_calls(orthogonal_rules));

}  // namespace

std::span<const CallRule> orthogonal_calls() { return orthogonal_rules; }

}  // namespace weft::graph
