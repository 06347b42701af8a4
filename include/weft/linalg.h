#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/array.h"

/// Linear algebra, with MLX's names and arguments.
///
///     auto l = linalg::cholesky(a);                      // a = l lᵀ
///     auto x = linalg::solve(a, b);                      // a x = b
///     auto g = grad([&](const array& m) { return linalg::slogdet(m).second; })(a);
///
/// Matrices lie along the last two axes, all axes before them are a batch; either may be empty. Arrays are float32 or
/// float64 (norm and cross: any); others are refused, to be converted with astype. Nothing is refused for its values:
/// where a matrix has no inverse or no such factor, that matrix's results are NaN, and so they are where it is not
/// finite. Everything has derivatives, also second ones, and works under vmap and compile. Derivatives of eigenvectors
/// and singular vectors divide by the gaps between eigenvalues or singular values: they are not finite where these
/// coincide (derivatives of the values alone are); nor is the derivative of det where a matrix is singular. Signs of
/// vectors are free. Functions that decompose cannot have symbolic lengths along the matrices' axes.
namespace weft::linalg {

/// Of all elements as one vector where no axes are given; of vectors along one axis, or of matrices along two
/// (Frobenius).
WEFT_API array norm(const array& a, const std::optional<std::vector<int>>& axis = std::nullopt, bool keepdims = false,
                    StreamOrDevice s = {});
inline array norm(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {}) {
  return norm(a, std::vector<int>{axis}, keepdims, s);
}
/// Along one axis (Σ|x|^ord)^(1/ord), the largest or smallest magnitude for ±infinity, for 0 the number of elements
/// that are not zero; along two 1 and -1 (columns' sums), ±infinity (rows' sums), 2 and -2 (singular values). Without
/// axes the array must have one or two. Norms of complex numbers are float32; those of an order given as a number are
/// complex64, as in MLX, but for 2 along one axis.
WEFT_API array norm(const array& a, double ord, const std::optional<std::vector<int>>& axis = std::nullopt,
                    bool keepdims = false, StreamOrDevice s = {});
inline array norm(const array& a, double ord, int axis, bool keepdims = false, StreamOrDevice s = {}) {
  return norm(a, ord, std::vector<int>{axis}, keepdims, s);
}
/// Of matrices: "fro" or "f", and "nuc" (the sum of singular values).
WEFT_API array norm(const array& a, const std::string& ord, const std::optional<std::vector<int>>& axis = std::nullopt,
                    bool keepdims = false, StreamOrDevice s = {});
inline array norm(const array& a, const std::string& ord, int axis, bool keepdims = false, StreamOrDevice s = {}) {
  return norm(a, ord, std::vector<int>{axis}, keepdims, s);
}

/// Q [m, k] with orthonormal columns and upper triangular R [k, n], k the smaller of m and n.
WEFT_API std::pair<array, array> qr(const array& a, StreamOrDevice s = {});
/// U [m, m], S [min(m, n)] descending and Vᵀ [n, n] with a = U[:, :k] diag(S) Vᵀ[:k, :]; S alone where vectors are not
/// wanted.
WEFT_API std::vector<array> svd(const array& a, bool compute_uv, StreamOrDevice s = {});
inline std::vector<array> svd(const array& a, StreamOrDevice s = {}) { return svd(a, true, s); }
WEFT_API array inv(const array& a, StreamOrDevice s = {});
WEFT_API array tri_inv(const array& a, bool upper = false, StreamOrDevice s = {});
/// L of a = L Lᵀ, of which only the lower part is read; or U of a = UᵀU, from its upper part. The gradient lies in the
/// part that is read.
WEFT_API array cholesky(const array& a, bool upper = false, StreamOrDevice s = {});
/// Moore and Penrose's inverse; singular values below 10 max(m, n) eps of the largest count as zero.
WEFT_API array pinv(const array& a, StreamOrDevice s = {});
/// (L Lᵀ)⁻¹, or (UᵀU)⁻¹.
WEFT_API array cholesky_inv(const array& a, bool upper = false, StreamOrDevice s = {});
/// P, L, U with a = L[P, :] U: numbers of rows (uint32), L [m, k] with ones on its diagonal, U [k, n].
WEFT_API std::vector<array> lu(const array& a, StreamOrDevice s = {});
/// L and U in one array, and for each row the one that it was exchanged with, from 0 (uint32).
WEFT_API std::pair<array, array> lu_factor(const array& a, StreamOrDevice s = {});
/// x of a x = b; b is [n], or [..., n, k] with leading axes that broadcast with a's.
WEFT_API array solve(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array solve_triangular(const array& a, const array& b, bool upper = false, StreamOrDevice s = {});
/// Of vectors with 2 or 3 elements along the axis, the third of which is 0 where it is not given: three elements, as in
/// MLX.
WEFT_API array cross(const array& a, const array& b, int axis = -1, StreamOrDevice s = {});
/// Eigenvalues, ascending by real, then by imaginary parts, and eigenvectors of length 1 in columns: complex64.
/// Computed by the processor, also for arrays on a GPU.
WEFT_API std::pair<array, array> eig(const array& a, StreamOrDevice s = {});
WEFT_API array eigvals(const array& a, StreamOrDevice s = {});
/// Eigenvalues of symmetric matrices, ascending, and orthonormal eigenvectors in columns; of a only the lower ("L") or
/// upper ("U") part is read, and the gradient lies there.
WEFT_API std::pair<array, array> eigh(const array& a, std::string UPLO = "L", StreamOrDevice s = {});
WEFT_API array eigvalsh(const array& a, std::string UPLO = "L", StreamOrDevice s = {});
WEFT_API array det(const array& a, StreamOrDevice s = {});
/// The determinant's sign, and the logarithm of its magnitude: 0 and -infinity for singular matrices.
WEFT_API std::pair<array, array> slogdet(const array& a, StreamOrDevice s = {});

}  // namespace weft::linalg
