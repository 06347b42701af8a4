#pragma once
// Builders of matrix decompositions (calls, see call_linalg.cpp, call_orthogonal.cpp and call_eig.cpp) and of matrix
// operations for their derivatives. Matrices are the last two axes of arrays of float32, float64, complex64 or
// complex128, other axes are a batch. Xᴴ is the conjugate transpose, of real matrices the transpose. Strict: the
// leading axes of two operands must be equal.
#include "graph/build.h"

namespace weft::graph::linalg {

/// Returns v on and below diagonal `offset`, or on and above it, and zeros elsewhere.
Value lower(const Value& v, int64_t offset = 0);
Value upper(const Value& v, int64_t offset = 0);
/// Returns the lower part with half of the diagonal.
Value half_lower(const Value& v);
/// Returns the gradient of a Hermitian matrix as that of its lower part, whose diagonal is real; and the Hermitian
/// matrix that has such a lower part.
Value folded(const Value& v);
Value mirrored(const Value& v);
Value diagonal(const Value& v);         // [b…, n, n] → [b…, n]
Value diagonal_matrix(const Value& v);  // [b…, n] → [b…, n, n]
Value unit_diagonal(const Value& v);    // bool, in v's shape: row == column
Value identity_like(const Value& v);
Value adjoint(const Value& v);                         // vᴴ
Value skew(const Value& v);                            // v - vᴴ
Value real_part(const Value& v);                       // v itself where it is real
Value scaled(const Value& v, const Value& by);         // v_ij by_ij for real `by`
Value scale_columns(const Value& v, const Value& by);  // v_ij by_j
Value scale_rows(const Value& v, const Value& by);     // by_i v_ij
/// Returns the products of a and b, or of their adjoints.
Value batched_matmul(const Value& a, const Value& b, bool a_adjoint = false, bool b_adjoint = false);
/// Returns 1 / (v_j - v_i) off the diagonal, 0 on it.
Value reciprocal_gaps(const Value& v);
/// Returns v where all elements of `number` [b…] are zero, NaN elsewhere.
Value valid_where_zero(const Value& v, const Value& number);

/// Returns L of A = L Lᴴ from the lower part of A; NaN if A is not positive definite.
Value cholesky(const Value& a);
/// Returns X of T X = B, or of Tᴴ X = B; reads the lower part of T, or the upper one.
Value solve_triangular(const Value& t, const Value& b, bool upper, bool adjoint = false);
/// Returns v U⁻¹, or v U⁻ᴴ, of upper triangular U.
Value times_inverse(const Value& v, const Value& u, bool adjoint);

/// L and U in one array [b…, m, n]; for each of its rows the index of A's row (uint32 [b…, m]); and for each row up to
/// min(m, n) the row that it was exchanged with, from 0 (uint32).
struct Lu {
  Value packed, rows, pivots;
};
Lu lu(const Value& a);
/// Returns v with row i = rows[i] of v.
Value take_rows(const Value& v, const Value& rows);
/// Returns X of A X = B; NaN if A is singular.
Value solve(const Value& a, const Value& b);

/// Returns the Moore-Penrose inverse; singular values up to 10 max(m, n) eps of the largest count as zero.
Value pinv(const Value& a);

/// Returns orthonormal columns with the span of those of A [b…, m, n], m ≥ n: n of them, or m if `complete`.
Value orthonormal(const Value& a, bool complete = false);
/// U S Vᴴ = A [b…, m, n]: U [b…, m, k], real S [b…, k] descending, Vᴴ [b…, k, n], k the smaller of m and n.
struct Svd {
  Value u, s, vh;
};
Svd svd(const Value& a);
/// A V = V diag(w) of a Hermitian A, real w ascending, V unitary; reads the lower part of A.
struct Eigen {
  Value values, vectors;
};
Eigen eigh(const Value& a);
/// A V = V diag(w), complex: w [b…, n] ascending by real, then by imaginary parts; columns of V of length 1.
Eigen eig(const Value& a);

}  // namespace weft::graph::linalg
