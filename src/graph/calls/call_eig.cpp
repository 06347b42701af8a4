// Eigenvalues of general matrices as a call.
//
// eig a     a [b…, n, n]: column-major matrices, finite, real or complex. Results, complex: eigenvalues [b…, n],
// ascending
//           by real, then by imaginary parts; eigenvectors [b…, n, n], one after the other, of length 1. NaN if the
//           iteration does not converge.
#include <array>

#include "graph/calls/linalg_rules.h"

namespace weft::graph {
namespace {

using namespace linalg;

std::vector<Type> eig_types(const Attrs&, TypeSpan in) {
  check_matrices("eig", in[0], true);
  const Dim n = in[0].shape.back();
  const Dtype dtype = complex_of(in[0].dtype);
  return {batch_of(in[0], {n}, dtype), batch_of(in[0], {n, n}, dtype)};
}

/// Boeddeker et al., On the computation of complex-valued gradients with application to statistically optimum
/// beamforming, 2017, with an additional term because eigenvectors have length 1.
Values eig_vjp(const Node&, ValueSpan x, ValueSpan y, ValueSpan g) {
  if (!g[0] && !g[1]) return {Value{}};
  const Value v = swap_last(y[1]), vh = adjoint(v);
  Value inner = g[0] ? diagonal_matrix(g[0]) : Value{};
  if (g[1]) {
    const Value rotation = batched_matmul(vh, swap_last(g[1]));
    const Value moved = rotation - scale_columns(batched_matmul(vh, v), real_part(diagonal(rotation)));
    const Value within = conjugate(reciprocal_gaps(y[0])) * moved;
    inner = inner ? inner + within : within;
  }
  return {swap_last(cast(solve(vh, batched_matmul(inner, vh)), x[0].dtype()))};
}

/// With P = V⁻¹ dA V: dw is its diagonal, dV = V (P_ij / (w_j - w_i)) minus the part that changes the vectors' lengths.
Values eig_jvp(const Node&, ValueSpan, ValueSpan y, ValueSpan t) {
  if (!t[0]) return {Value{}, Value{}};
  const Value v = swap_last(y[1]), moved = cast(swap_last(t[0]), v.dtype());
  const Value p = solve(v, batched_matmul(moved, v));
  const Value dv = batched_matmul(v, reciprocal_gaps(y[0]) * p), longer = batched_matmul(v, dv, true);
  return {diagonal(p), swap_last(dv - scale_columns(v, real_part(diagonal(longer))))};
}

std::vector<HostTensor> eig_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan out) {
  std::vector<HostTensor> results{{out[0], {}}, {out[1], {}}};
  for (int64_t k = 0; k < count_of(in[0]); ++k) {
    std::vector<Complex> w;
    const Matrix v = schur_vectors(transposed(matrix_of(in[0], k)), w);
    append(results[0], w);
    append(results[1], transposed(v).data);
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
