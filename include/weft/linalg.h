#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/array.h"

/// Linear algebra, with MLX's names and arguments.
///
///     array l = linalg::cholesky(a);  // a = l lᴴ
///     array x = linalg::solve(a, b);  // a x = b
///     array g = grad([](const array& m) { return linalg::slogdet(m).second; })(a);
///
/// Matrices are the last two axes [..., m, n]; all axes before them are a batch, and either may be empty. Arrays are
/// float32, float64, complex64 or complex128 (norm and cross: any); other dtypes and shapes throw
/// std::invalid_argument. Xᴴ is the conjugate transpose, of real matrices the transpose; complex matrices are
/// decomposed on the CPU, also for arrays on a GPU. Values never throw: where a matrix has no inverse or no such
/// factor, or is not finite, its results are NaN. Everything has derivatives, also second ones, and works under vmap
/// and compile. Derivatives of eigenvectors and singular vectors divide by the gaps between eigenvalues or singular
/// values: they are not finite where these coincide (derivatives of the values alone are); nor is the derivative of det
/// where a matrix is singular. Signs of vectors are free, and phases of complex ones: derivatives are those of
/// functions for which they do not matter. Decompositions take no symbolic lengths along the axes of the matrices.
namespace weft::linalg {

/// Returns the Euclidean norm of the vectors along one axis, or the Frobenius norm of the matrices along two; without
/// axes that of all elements as one vector.
WEFT_API array norm(const array& a, const std::optional<std::vector<int>>& axis = std::nullopt, bool keepdims = false,
                    StreamOrDevice s = {});
inline array norm(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {}) {
  return norm(a, std::vector<int>{axis}, keepdims, s);
}
/// Returns the norm of order `ord`. Along one axis: (Σ|x|^ord)^(1/ord), the largest or smallest magnitude for
/// ±infinity, and for 0 the number of elements that are not zero. Along two: 1 and -1 (sums of columns), ±infinity
/// (sums of rows), 2 and -2 (singular values). Without axes the array must have one or two. Norms of complex numbers
/// are of a's dtype, as in MLX, but for order 2 along one axis, which is real.
WEFT_API array norm(const array& a, double ord, const std::optional<std::vector<int>>& axis = std::nullopt,
                    bool keepdims = false, StreamOrDevice s = {});
inline array norm(const array& a, double ord, int axis, bool keepdims = false, StreamOrDevice s = {}) {
  return norm(a, ord, std::vector<int>{axis}, keepdims, s);
}
/// Returns a norm of matrices: "fro" or "f" (Frobenius), or "nuc" (the sum of the singular values).
WEFT_API array norm(const array& a, const std::string& ord, const std::optional<std::vector<int>>& axis = std::nullopt,
                    bool keepdims = false, StreamOrDevice s = {});
inline array norm(const array& a, const std::string& ord, int axis, bool keepdims = false, StreamOrDevice s = {}) {
  return norm(a, ord, std::vector<int>{axis}, keepdims, s);
}

/// Returns Q [..., m, k] with orthonormal columns and upper triangular R [..., k, n], its diagonal real, with a = Q R
/// and k = min(m, n).
WEFT_API std::pair<array, array> qr(const array& a, StreamOrDevice s = {});
/// Returns U [..., m, m], real S [..., min(m, n)] in descending order and Vᴴ [..., n, n] with a = U[:, :k] diag(S)
/// Vᴴ[:k, :]; S alone unless `compute_uv`.
WEFT_API std::vector<array> svd(const array& a, bool compute_uv, StreamOrDevice s = {});
inline std::vector<array> svd(const array& a, StreamOrDevice s = {}) { return svd(a, true, s); }
/// Returns the inverses of square matrices.
WEFT_API array inv(const array& a, StreamOrDevice s = {});
/// Returns the inverses of lower (or `upper`) triangular matrices; the other triangle is not read.
WEFT_API array tri_inv(const array& a, bool upper = false, StreamOrDevice s = {});
/// Returns lower triangular L with a = L Lᴴ, from the lower triangle of `a`; or U with a = UᴴU, from the upper one. Of
/// the diagonal real parts are read. The gradient lies in the triangle that is read.
WEFT_API array cholesky(const array& a, bool upper = false, StreamOrDevice s = {});
/// Returns the Moore-Penrose inverses [..., n, m]. Singular values below 10 max(m, n) eps of the largest count as zero.
WEFT_API array pinv(const array& a, StreamOrDevice s = {});
/// Returns the inverses (L Lᴴ)⁻¹ of the matrices whose Cholesky factors are `a`, or (UᴴU)⁻¹.
WEFT_API array cholesky_inv(const array& a, bool upper = false, StreamOrDevice s = {});
/// Returns {P, L, U} with a = L[P, :] U: row indices P (uint32) [..., m], L [..., m, k] with ones on its diagonal and U
/// [..., k, n], k = min(m, n).
WEFT_API std::vector<array> lu(const array& a, StreamOrDevice s = {});
/// Returns L and U packed into one array of a's shape, and the pivots (uint32): for each row the one, from 0, that it
/// was exchanged with.
WEFT_API std::pair<array, array> lu_factor(const array& a, StreamOrDevice s = {});
/// Returns x with a x = b. b is [n], or [..., n, k] with leading axes that broadcast with those of `a`; x has b's
/// shape.
WEFT_API array solve(const array& a, const array& b, StreamOrDevice s = {});
/// Returns x with a x = b for lower (or `upper`) triangular `a`; shapes are those of `solve`.
WEFT_API array solve_triangular(const array& a, const array& b, bool upper = false, StreamOrDevice s = {});
/// Returns the cross products of the vectors along the axis, which have 3 elements, or 2 with a third that is 0.
/// Results have 3 elements, as in MLX.
WEFT_API array cross(const array& a, const array& b, int axis = -1, StreamOrDevice s = {});
/// Returns the eigenvalues [..., n], ascending by real parts and then by imaginary ones, and the eigenvectors of length
/// 1 in columns [..., n, n]: complex64, or complex128 for float64 and complex128. Computed on the CPU, also for arrays
/// on a GPU.
WEFT_API std::pair<array, array> eig(const array& a, StreamOrDevice s = {});
/// Returns the eigenvalues of `eig` alone.
WEFT_API array eigvals(const array& a, StreamOrDevice s = {});
/// Returns the eigenvalues of symmetric or Hermitian matrices, real and ascending, and orthonormal eigenvectors in
/// columns. Only the lower ("L") or upper ("U") triangle of `a` is read, and the gradient lies there; other texts throw
/// std::invalid_argument.
WEFT_API std::pair<array, array> eigh(const array& a, std::string UPLO = "L", StreamOrDevice s = {});
/// Returns the eigenvalues of `eigh` alone.
WEFT_API array eigvalsh(const array& a, std::string UPLO = "L", StreamOrDevice s = {});
/// Returns the determinants of square matrices. Integers and bools give float32; half types are computed in float32, in
/// which their result is rounded once.
WEFT_API array det(const array& a, StreamOrDevice s = {});
/// Returns the signs of the determinants, in the dtype of `det` (of complex matrices det / |det|), and the logarithms
/// of their magnitudes, which are real: 0 and -infinity for singular matrices.
WEFT_API std::pair<array, array> slogdet(const array& a, StreamOrDevice s = {});

}  // namespace weft::linalg
