// Unitary factors as calls, of finite matrices. Matrices of m rows and n columns lie column by column: [b…, n, m].
// Signs of vectors, and phases of complex ones, are the library's; derivatives of vectors are those of functions for
// which they do not matter.
//
// qr a      integers: 1 for all m columns of Q, 0 for n. m ≥ n: orthonormal Q [b…, n or m, m] with R = QᴴA upper
//           triangular and its diagonal real, by Householder's reflections.
// svd a     m ≥ n. Results: singular values [b…, n], descending; U [b…, n, m]; Vᴴ [b…, n, n], row by
//           row.
// eigh a    a [b…, n, n], Hermitian, of which only the lower part is read. Results: eigenvalues [b…, n], ascending;
//           eigenvectors [b…, n, n].
#include <array>
#include <cmath>

#include "base/error.h"
#include "graph/calls/linalg_rules.h"

namespace weft::graph {
namespace {

using namespace linalg;

/// Returns the lower part of v - vᴴ: of C = QᴴdQ + …, what the skew part takes. Complex matrices have half of the
/// diagonal in it, i Im v_jj.
Value skew_lower(const Value& v) { return half_lower(skew(v)); }

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

/// With M = dA R⁻¹ and C = QᴴM: dQ = Q (Φ(C) - Φ(C)ᴴ) + M - Q C, Φ being the lower part with half of the diagonal
/// (Walter & Lehmann, Algorithmic differentiation of linear algebra functions, 2012; R's diagonal stays real). The
/// other columns get the smallest rotation: dQ₂ = -Q dQᴴ Q₂.
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
  return {swap_last(times_inverse(gm, f.r, true))};  // gM R⁻ᴴ
}

Values qr_jvp(const Node&, ValueSpan x, ValueSpan y, ValueSpan t) {
  if (!t[0]) return {Value{}};
  const Orthogonal f = orthogonal(swap_last(x[0]), swap_last(y[0]));
  const Value m = times_inverse(swap_last(t[0]), f.r, false);  // dA R⁻¹
  const Value c = batched_matmul(f.q, m, true);
  Value dq = m + batched_matmul(f.q, skew(half_lower(c)) - c);
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
  return {batch_of(in[0], {n}, real_of(in[0].dtype)), in[0], batch_of(in[0], {n, n}, in[0].dtype)};
}

/// Returns 1 / (s_j² - s_i²), 0 on the diagonal: the rates at which U and V rotate where singular values differ.
Value rotation_rates(const Value& s) { return reciprocal_gaps(square(s)); }

/// Returns i Im v_jj / s_j on the diagonal, which complex vectors turn by; nothing for real ones.
Value turned(const Value& v, const Value& s) {
  return scale_columns(select(unit_diagonal(v), skew(v) * 0.5, zeros_like(v)), 1.0 / s);
}

/// Returns v - U Uᴴ v, which is 0 if U is square.
Value outside(const Value& u, const Value& v) { return v - batched_matmul(u, batched_matmul(u, v, true)); }
bool has_outside(const Value& u) { return u.shape()[u.shape().size() - 2].bound() > u.shape().back().bound(); }

/// Townsend, Differentiating the singular value decomposition, 2016; Wan & Zhang, Automatic differentiation for complex
/// valued SVD, 2019. Of the phases, which are free, V's stay as they are. The gradient of singular values alone has no
/// gaps between them as divisors.
Values svd_vjp(const Node&, ValueSpan, ValueSpan y, ValueSpan g) {
  const Value s = y[0], u = swap_last(y[1]), vh = y[2];
  Value inner = g[0] ? cast(diagonal_matrix(g[0]), u.dtype()) : Value{}, beyond;
  const auto add = [&inner](const Value& v) { inner = inner ? inner + v : v; };
  if (g[1]) {
    const Value gu = swap_last(g[1]), rotation = batched_matmul(u, gu, true);
    add(scale_columns(scaled(skew(rotation), rotation_rates(s)), s));
    if (is_complex(u.dtype())) add(turned(rotation, s));
    if (has_outside(u)) beyond = outside(u, scale_columns(gu, 1.0 / s));
  }
  if (g[2]) {
    const Value rotation = batched_matmul(vh, g[2], false, true);  // Vᴴ gV
    add(scale_rows(scaled(skew(rotation), rotation_rates(s)), s));
  }
  if (!inner) return {Value{}};
  Value left = batched_matmul(u, inner);
  if (beyond) left = left + beyond;
  return {swap_last(batched_matmul(left, vh))};
}

Values svd_jvp(const Node&, ValueSpan, ValueSpan y, ValueSpan t) {
  if (!t[0]) return {Value{}, Value{}, Value{}};
  const Value s = y[0], u = swap_last(y[1]), vh = y[2];
  const Value along = batched_matmul(swap_last(t[0]), vh, false, true),
              inner = batched_matmul(u, along, true);  // dA V, Uᴴ dA V
  const Value right = scale_columns(inner, s), left = scale_rows(inner, s);
  Value rotation = scaled(right + adjoint(right), rotation_rates(s));
  if (is_complex(u.dtype())) rotation = rotation + turned(inner, s);
  Value du = batched_matmul(u, rotation);
  if (has_outside(u)) du = du + outside(u, scale_columns(along, 1.0 / s));
  const Value dvh = batched_matmul(scaled(left + adjoint(left), rotation_rates(s)), vh, true);
  return {real_part(diagonal(inner)), swap_last(du), dvh};
}

std::vector<HostTensor> svd_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan out) {
  std::vector<HostTensor> results{{out[0], {}}, {out[1], {}}, {out[2], {}}};
  for (int64_t k = 0; k < count_of(in[0]); ++k) {
    Matrix a = transposed(matrix_of(in[0], k));
    std::vector<Complex> s;
    const Matrix v = rotate_columns(a, s);
    append(results[0], s);
    append(results[1], transposed(a).data);
    append(results[2], adjoint_of(v).data);
  }
  return results;
}

// ---- eigenvalues of Hermitian matrices ----

std::vector<Type> eigh_types(const Attrs&, TypeSpan in) {
  check_matrices("eigh", in[0], true);
  return {batch_of(in[0], {in[0].shape.back()}, real_of(in[0].dtype)), in[0]};
}

/// gA = V (gw on the diagonal, (Vᴴ gV)_ij / (w_j - w_i) off it) Vᴴ, folded to the lower part (Giles, An extended
/// collection of matrix derivative results, 2008).
Values eigh_vjp(const Node&, ValueSpan, ValueSpan y, ValueSpan g) {
  const Value v = swap_last(y[1]);
  Value inner = g[0] ? cast(diagonal_matrix(g[0]), v.dtype()) : Value{};
  if (g[1]) {
    const Value rotation = scaled(batched_matmul(v, swap_last(g[1]), true), reciprocal_gaps(y[0]));
    inner = inner ? inner + rotation : rotation;
  }
  if (!inner) return {Value{}};
  return {folded(batched_matmul(batched_matmul(v, inner), v, false, true))};
}

Values eigh_jvp(const Node&, ValueSpan, ValueSpan y, ValueSpan t) {
  if (!t[0]) return {Value{}, Value{}};
  const Value v = swap_last(y[1]), inner = batched_matmul(v, batched_matmul(mirrored(t[0]), v), true);
  return {real_part(diagonal(inner)), swap_last(batched_matmul(v, scaled(inner, reciprocal_gaps(y[0]))))};
}

std::vector<HostTensor> eigh_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan out) {
  std::vector<HostTensor> results{{out[0], {}}, {out[1], {}}};
  for (int64_t k = 0; k < count_of(in[0]); ++k) {
    Matrix a = matrix_of(in[0], k);
    for (int64_t i = 0; i < a.rows; ++i)
      for (int64_t j = i; j < a.rows; ++j) a(i, j) = i == j ? a(i, i).real() : std::conj(a(j, i));
    std::vector<Complex> w;
    const Matrix v = rotate_hermitian(a, w);
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
