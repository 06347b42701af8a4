// Eigenvalues of general real matrices as a call. A complex number is a pair along one more axis.
//
// eig a     a [b…, n, n]: column-major matrices, finite. Results: eigenvalues [b…, n, 2], ascending by real, then by
//           imaginary parts; eigenvectors [b…, n, n, 2], one after the other, of length 1. NaN if the iteration does
//           not converge.
#include <array>
#include <cmath>

#include "base/error.h"
#include "graph/calls/linalg_rules.h"

namespace weft::graph {
namespace {

using namespace linalg;

std::vector<Type> eig_types(const Attrs&, TypeSpan in) {
  check_matrices("eig", in[0], true);
  const Dim n = in[0].shape.back();
  return {batch_of(in[0], {n, 2}, in[0].dtype), batch_of(in[0], {n, n, 2}, in[0].dtype)};
}

/// Complex matrices as real and imaginary parts.
struct Parts {
  Value re, im;
};

Parts parts(const Value& pairs) {
  const int last = pairs.type().rank() - 1;
  const auto part = [&](int64_t k) { return squeeze(slice_axis(pairs, last, k, 1), {last}); };
  return {part(0), part(1)};
}
Value pairs(const Parts& z) { return concat({expand_dims(z.re, {-1}), expand_dims(z.im, {-1})}, z.re.type().rank()); }
Parts transposed_parts(const Parts& z) { return {swap_last(z.re), swap_last(z.im)}; }
Parts adjoint(const Parts& z) { return {swap_last(z.re), -swap_last(z.im)}; }
Parts times(const Parts& a, const Parts& b) {
  return {batched_matmul(a.re, b.re) - batched_matmul(a.im, b.im),
          batched_matmul(a.re, b.im) + batched_matmul(a.im, b.re)};
}
Parts minus(const Parts& a, const Parts& b) { return {a.re - b.re, a.im - b.im}; }
Parts columns_times(const Parts& a, const Value& by) { return {scale_columns(a.re, by), scale_columns(a.im, by)}; }

/// Returns X of Z X = B, solved as a real system of twice the size.
Parts solve_parts(const Parts& z, const Parts& b) {
  const int rank = z.re.type().rank();
  const int64_t n = z.re.shape().back().bound();
  const Value left = concat({concat({z.re, -z.im}, rank - 1), concat({z.im, z.re}, rank - 1)}, rank - 2);
  const Value x = solve(left, concat({b.re, b.im}, rank - 2));
  return {slice_axis(x, rank - 2, 0, n), slice_axis(x, rank - 2, n, n)};
}

/// Returns a_ij / (w_j - w_i) off the diagonal and 0 on it; `conjugated`: divided by the conjugate.
Parts over_gaps(const Parts& a, const Parts& w, bool conjugated) {
  const Value zero = zeros_like(a.re), one = identity_like(a.re);
  const auto gaps = [&](const Value& v) {
    return scale_columns(full_like(zero, 1), v) - scale_rows(full_like(zero, 1), v);
  };
  const Value re = gaps(w.re), im = conjugated ? -gaps(w.im) : gaps(w.im), norm = square(re) + square(im) + one;
  const Value off = full_like(one, 1) - one;
  return {(a.re * re + a.im * im) / norm * off, (a.im * re - a.re * im) / norm * off};
}

/// Boeddeker et al., On the computation of complex-valued gradients with application to statistically optimum
/// beamforming, 2017, with an additional term because eigenvectors have length 1.
Values eig_vjp(const Node&, ValueSpan, ValueSpan y, ValueSpan g) {
  if (!g[0] && !g[1]) return {Value{}};
  const Parts w = parts(y[0]), v = transposed_parts(parts(y[1])), vh = adjoint(v);
  Parts inner{zeros_like(v.re), zeros_like(v.re)};
  if (g[1]) {
    const Parts rotation = times(vh, transposed_parts(parts(g[1])));
    inner = over_gaps(minus(rotation, columns_times(times(vh, v), diagonal(rotation.re))), w, true);
  }
  if (g[0]) {
    const Parts gw = parts(g[0]);
    inner = {inner.re + diagonal_matrix(gw.re), inner.im + diagonal_matrix(gw.im)};
  }
  return {swap_last(solve_parts(vh, times(inner, vh)).re)};
}

/// With P = V⁻¹ dA V: dw is its diagonal, dV = V (P_ij / (w_j - w_i)) minus the part that changes the vectors' lengths.
Values eig_jvp(const Node&, ValueSpan, ValueSpan y, ValueSpan t) {
  if (!t[0]) return {Value{}, Value{}};
  const Parts w = parts(y[0]), v = transposed_parts(parts(y[1]));
  const Value moved = swap_last(t[0]);
  const Parts p = solve_parts(v, {batched_matmul(moved, v.re), batched_matmul(moved, v.im)});
  const Parts dv = times(v, over_gaps(p, w, false)), longer = times(adjoint(v), dv);
  return {pairs({diagonal(p.re), diagonal(p.im)}),
          pairs(transposed_parts(minus(dv, columns_times(v, diagonal(longer.re)))))};
}

std::vector<HostTensor> eig_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan out) {
  std::vector<HostTensor> results{{out[0], {}}, {out[1], {}}};
  for (int64_t k = 0; k < count_of(in[0]); ++k) {
    std::vector<std::complex<double>> w;
    const ComplexMatrix v = schur_vectors(transposed(matrix_of(in[0], k)), w);
    const auto put = [](HostTensor& to, std::complex<double> z) { append(to, std::array{z.real(), z.imag()}); };
    for (const auto& z : w) put(results[0], z);
    for (int64_t j = 0; j < v.columns; ++j)
      for (int64_t i = 0; i < v.rows; ++i) put(results[1], v(i, j));
  }
  return results;
}

constexpr auto eig_rules = std::to_array<CallRule>({
    {"eig", 1, 1, 0, eig_types, None::unbounded, eig_vjp, eig_jvp, batched_call, batch_factors, eig_reference, 16},
});
static_assert(complete_calls(eig_rules));

}  // namespace

std::span<const CallRule> eig_calls() { return eig_rules; }

}  // namespace weft::graph
