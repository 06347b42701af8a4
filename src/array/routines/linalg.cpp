// weft/linalg.h: the decompositions of graph/calls/linalg.h with checks and promotion, and functions that use them.
#include "weft/linalg.h"

#include <algorithm>
#include <cmath>

#include "array/op_support.h"
#include "base/error.h"
#include "graph/calls/call.h"
#include "graph/calls/linalg.h"
#include "weft/ops.h"

namespace weft::linalg {
namespace {

namespace lg = graph::linalg;
using detail::describe;
using graph::Value;

bool of_matrices(Dtype dtype) { return real_of(dtype) == float32 || real_of(dtype) == float64; }

void check_matrices(const char* op, const array& a, bool square) {
  if (!of_matrices(a.dtype()))
    throw_invalid(op, "matrices must be float32, float64, complex64 or complex128, got " + describe(a) +
                          ": convert them with astype");
  if (a.ndim() < 2) throw_invalid(op, "needs matrices along the last two axes, got " + describe(a));
  if (square && a.shape()[a.ndim() - 2] != a.shape().back())
    throw_invalid(op, "needs square matrices, got " + describe(a));
}

/// Checked matrices, on the named stream.
struct Matrices {
  detail::OnStream on_stream;
  Value v;
  int64_t rows, columns;
};
Matrices matrices(const char* op, const array& a, bool square, const StreamOrDevice& s) {
  check_matrices(op, a, square);
  return {detail::OnStream(op, s), a.value(), a.shape()[a.ndim() - 2].bound(), a.shape().back().bound()};
}

bool reads_upper(const char* op, const std::string& uplo) {
  if (uplo != "L" && uplo != "U") throw_invalid(op, "UPLO must be \"L\" or \"U\", got \"" + uplo + "\"");
  return uplo == "U";
}

Value columns_from(const Value& v, int64_t first, const Dim& count) {
  return graph::slice_axis(v, v.type().rank() - 1, first, count);
}
Value rows_from(const Value& v, int64_t first, const Dim& count) {
  return graph::slice_axis(v, v.type().rank() - 2, first, count);
}

/// Completes [m, k] with orthonormal columns to [m, m].
Value completed(const Value& u) {
  const int64_t m = u.shape()[u.shape().size() - 2].bound(), k = u.shape().back().bound();
  return m == k ? u : graph::concat({u, columns_from(lg::orthonormal(u, true), k, m - k)}, u.type().rank() - 1);
}

/// Returns a and b with common leading axes and dtype; b [n] becomes a column.
std::pair<Value, Value> system_of(const char* op, const array& a, const array& b) {
  check_matrices(op, a, true);
  const Dtype dtype = promote_types(a.dtype(), b.dtype());
  if (!of_matrices(dtype))
    throw_invalid(op, "both arrays must be float32, float64, complex64 or complex128, got " + describe(a) + " and " +
                          describe(b) + ": convert them with astype");
  if (b.ndim() == 0) throw_invalid(op, "the right side must have an axis at least, got " + describe(b));
  const array right = b.ndim() == 1 ? expand_dims(b, -1) : b;
  if (right.shape()[right.ndim() - 2] != a.shape().back())
    throw_invalid(op,
                  "the right side must have as many rows as the matrices, got " + describe(a) + " and " + describe(b));
  const Shape lead_a(a.shape().begin(), a.shape().end() - 2), lead_b(right.shape().begin(), right.shape().end() - 2);
  Shape lead;
  try {
    lead = broadcast_shapes(lead_a, lead_b);
  } catch (const std::invalid_argument&) {
    throw_invalid(op, "the leading axes cannot be broadcast together: " + describe(a) + " and " + describe(b));
  }
  const auto repeated = [&](const array& v) {
    Shape shape = lead;
    shape.insert(shape.end(), v.shape().end() - 2, v.shape().end());
    return graph::broadcast(detail::to_dtype(v.value(), dtype), shape);
  };
  return {repeated(a), repeated(right)};
}

array solution(const Value& x, const array& b) { return b.ndim() == 1 ? squeeze(array(x), -1) : array(x); }

/// Returns the singular values of the matrices along two axes, as the last axis.
array singular_values(const array& a, int row_axis, int column_axis, StreamOrDevice s) {
  const array m = moveaxis(moveaxis(a, row_axis, -1, s), column_axis < row_axis ? column_axis : column_axis - 1, -1, s);
  return svd(m, false, s)[0];
}

array vector_norm(const array& a, double ord, const std::vector<int>& axis, bool keepdims, StreamOrDevice s) {
  const array size = abs(a, s);
  const Dtype dtype = size.dtype();
  if (ord == 0) return sum(astype(not_equal(a, array(0, a.dtype()), s), dtype, s), axis, keepdims, s);
  if (ord == 1) return sum(size, axis, keepdims, s);
  if (ord == 2) return sqrt(sum(square(size, s), axis, keepdims, s), s);
  if (ord == INFINITY) return max(size, axis, keepdims, s);
  if (ord == -INFINITY) return min(size, axis, keepdims, s);
  return power(sum(power(size, array(ord, dtype), s), axis, keepdims, s), array(1 / ord, dtype), s);
}

array kept(const array& result, const array& a, const std::vector<int>& axis, bool keepdims) {
  if (!keepdims) return result;
  Shape shape = a.shape();
  for (const int k : axis) shape[static_cast<size_t>(k)] = 1;
  return reshape(result, shape);
}

array matrix_norm(const array& a, double ord, const std::vector<int>& axis, bool keepdims, StreamOrDevice s) {
  const int row = axis[0], column = axis[1];
  const bool largest = ord > 0;
  if (ord == 2 || ord == -2) {
    const array values = singular_values(a, row, column, s);
    return kept(largest ? max(values, -1, false, s) : min(values, -1, false, s), a, axis, keepdims);
  }
  if (ord != 1 && ord != -1 && !std::isinf(ord))
    throw_invalid("norm",
                  "matrices have norms of order 1, 2 and infinity, positive or negative, got " + std::to_string(ord));
  const int over = std::isinf(ord) ? column : row, across = std::isinf(ord) ? row : column;
  const array sums = sum(abs(a, s), over, true, s);
  return kept(squeeze(largest ? max(sums, across, true, s) : min(sums, across, true, s), axis, s), a, axis, keepdims);
}

std::vector<int> counted(const array& a, const std::optional<std::vector<int>>& axis) {
  std::vector<int> out;
  for (const int k : axis ? *axis : detail::all_axes(a)) {
    const int at = static_cast<int>(detail::one_axis("norm", k, a.ndim()));
    if (std::count(out.begin(), out.end(), at) > 0)
      throw_invalid("norm", "axis " + std::to_string(k) + " is given twice");
    out.push_back(at);
  }
  return out;
}

array floating(const array& a, StreamOrDevice s) { return astype(a, detail::floating_of(a.dtype()), s); }

/// Returns the norm of a given order: complex for complex numbers, as in MLX, but for the Euclidean one of vectors.
array norm_of_order(const array& a, double ord, const std::vector<int>& axes, bool keepdims, StreamOrDevice s) {
  const bool vectors = axes.size() == 1;
  const array out = vectors ? vector_norm(a, ord, axes, keepdims, s) : matrix_norm(a, ord, axes, keepdims, s);
  return is_complex(a.dtype()) && !(vectors && ord == 2) ? astype(out, a.dtype(), s) : out;
}

/// Returns -1 where an odd number of rows was exchanged, else 1.
array parity(const Value& pivots, Dtype dtype) {
  const int axis = pivots.type().rank() - 1;
  const Value moved =
      graph::cast(graph::binary(graph::Op::ne, pivots, graph::iota(pivots.shape(), axis, uint32)), int32);
  const Value odd =
      graph::binary(graph::Op::bit_and, graph::sum(moved, {axis}), graph::constant(int32, Number::of_int(1)));
  return array(1.0 - graph::cast(odd, dtype) * 2.0);
}

/// The determinant as a product: of the diagonal, and of a sign. Numbers that are neither float32 nor float64, but
/// real, are taken as float32.
struct Factors {
  array diagonal, sign;
};
Factors factors(const char* op, const array& a, const StreamOrDevice& s) {
  const bool converted = !is_complex(a.dtype()) && a.dtype() != float64;
  const array m = converted ? astype(a, float32, s) : a;
  const lg::Lu f = lg::lu(matrices(op, m, true, s).v);
  return {array(lg::diagonal(f.packed)), parity(f.pivots, m.dtype())};
}

}  // namespace

array norm(const array& a, const std::optional<std::vector<int>>& axis, bool keepdims, StreamOrDevice s) {
  const detail::OnStream on_stream("norm", s);
  const std::vector<int> axes = counted(a, axis);
  if (axis && (axes.empty() || axes.size() > 2))
    throw_invalid("norm", "one axis or two are needed, got " + std::to_string(axes.size()));
  return axes.empty() ? abs(floating(a, s), s) : vector_norm(floating(a, s), 2, axes, keepdims, s);
}

array norm(const array& a, double ord, const std::optional<std::vector<int>>& axis, bool keepdims, StreamOrDevice s) {
  const detail::OnStream on_stream("norm", s);
  const std::vector<int> axes = counted(a, axis);
  if (axes.size() == 1 || axes.size() == 2) return norm_of_order(floating(a, s), ord, axes, keepdims, s);
  throw_invalid("norm", "a norm of some order needs one axis or two, got " + describe(a) + ": name them");
}

array norm(const array& a, const std::string& ord, const std::optional<std::vector<int>>& axis, bool keepdims,
           StreamOrDevice s) {
  const detail::OnStream on_stream("norm", s);
  const std::vector<int> axes = counted(a, axis);
  if (axes.size() != 2)
    throw_invalid("norm",
                  "the norm \"" + ord + "\" is one of matrices: it needs two axes, got " + std::to_string(axes.size()));
  if (ord == "f" || ord == "fro") return vector_norm(floating(a, s), 2, axes, keepdims, s);
  if (ord == "nuc")
    return kept(sum(singular_values(floating(a, s), axes[0], axes[1], s), -1, false, s), a, axes, keepdims);
  throw_invalid("norm", "there is no norm named \"" + ord + "\": \"fro\", \"f\" and \"nuc\" are");
}

std::pair<array, array> qr(const array& a, StreamOrDevice s) {
  const Matrices m = matrices("qr", a, false, s);
  const Value q = lg::orthonormal(m.rows < m.columns ? columns_from(m.v, 0, m.rows) : m.v);
  return {array(q), array(lg::upper(lg::batched_matmul(q, m.v, true)))};
}

std::vector<array> svd(const array& a, bool compute_uv, StreamOrDevice s) {
  const Matrices m = matrices("svd", a, false, s);
  const lg::Svd f = lg::svd(m.v);
  if (!compute_uv) return {array(f.s)};
  return {array(completed(f.u)), array(f.s),
          array(m.columns > m.rows ? graph::swap_last(completed(graph::swap_last(f.vh))) : f.vh)};
}

array inv(const array& a, StreamOrDevice s) {
  const Matrices m = matrices("inv", a, true, s);
  return array(lg::solve(m.v, lg::identity_like(m.v)));
}

array tri_inv(const array& a, bool upper, StreamOrDevice s) {
  const Matrices m = matrices("tri_inv", a, true, s);
  return array(lg::solve_triangular(m.v, lg::identity_like(m.v), upper));
}

array cholesky(const array& a, bool upper, StreamOrDevice s) {
  const Matrices m = matrices("cholesky", a, true, s);
  return array(upper ? lg::adjoint(lg::cholesky(lg::adjoint(m.v))) : lg::cholesky(m.v));
}

array pinv(const array& a, StreamOrDevice s) { return array(lg::pinv(matrices("pinv", a, false, s).v)); }

array cholesky_inv(const array& a, bool upper, StreamOrDevice s) {
  const Matrices m = matrices("cholesky_inv", a, true, s);
  const Value inverse = lg::solve_triangular(m.v, lg::identity_like(m.v), upper);
  return array(upper ? lg::batched_matmul(inverse, inverse, false, true) : lg::batched_matmul(inverse, inverse, true));
}

std::vector<array> lu(const array& a, StreamOrDevice s) {
  const Matrices m = matrices("lu", a, false, s);
  const lg::Lu f = lg::lu(m.v);
  const int64_t k = std::min(m.rows, m.columns);
  const Value left = columns_from(f.packed, 0, k);
  const Value l = graph::select(lg::unit_diagonal(left), graph::full_like(left, 1), lg::lower(left, -1));
  return {array(graph::sort(f.rows, f.rows.type().rank() - 1).order), array(l),
          array(lg::upper(rows_from(f.packed, 0, k)))};
}

std::pair<array, array> lu_factor(const array& a, StreamOrDevice s) {
  const lg::Lu f = lg::lu(matrices("lu_factor", a, false, s).v);
  return {array(f.packed), array(f.pivots)};
}

array solve(const array& a, const array& b, StreamOrDevice s) {
  const detail::OnStream on_stream("solve", s);
  const auto [left, right] = system_of("solve", a, b);
  return solution(lg::solve(left, right), b);
}

array solve_triangular(const array& a, const array& b, bool upper, StreamOrDevice s) {
  const detail::OnStream on_stream("solve_triangular", s);
  const auto [left, right] = system_of("solve_triangular", a, b);
  return solution(lg::solve_triangular(left, right, upper), b);
}

array cross(const array& a, const array& b, int axis, StreamOrDevice s) {
  const detail::OnStream on_stream("cross", s);
  const Dtype dtype = promote_types(a.dtype(), b.dtype());
  const auto parts = [&](const array& v) {
    const auto at = static_cast<size_t>(detail::one_axis("cross", axis, v.ndim()));
    if (v.shape()[at] != Dim(2) && v.shape()[at] != Dim(3))
      throw_invalid("cross", "vectors must have 2 or 3 elements along the axis, got " + describe(v));
    return unstack(astype(v, dtype, s), static_cast<int>(at), s);
  };
  const std::vector<array> u = parts(a), v = parts(b);
  const auto part = [&](const std::vector<array>& of, size_t k) {
    return k < of.size() ? of[k] : zeros_like(of[0], s);
  };
  const auto minor = [&](size_t i, size_t j) {
    return subtract(multiply(part(u, i), part(v, j), s), multiply(part(u, j), part(v, i), s), s);
  };
  if (u.size() == 2 && v.size() == 2) {
    const array last = minor(0, 1);
    return stack({zeros_like(last, s), zeros_like(last, s), last}, axis, s);
  }
  return stack({minor(1, 2), minor(2, 0), minor(0, 1)}, axis, s);
}

std::pair<array, array> eig(const array& a, StreamOrDevice s) {
  const lg::Eigen f = lg::eig(matrices("eig", a, true, s).v);
  return {array(f.values), array(f.vectors)};
}

array eigvals(const array& a, StreamOrDevice s) { return array(lg::eig(matrices("eigvals", a, true, s).v).values); }

std::pair<array, array> eigh(const array& a, std::string UPLO, StreamOrDevice s) {
  const Matrices m = matrices("eigh", a, true, s);
  const lg::Eigen f = lg::eigh(reads_upper("eigh", UPLO) ? lg::adjoint(m.v) : m.v);
  return {array(f.values), array(f.vectors)};
}

array eigvalsh(const array& a, std::string UPLO, StreamOrDevice s) {
  const Matrices m = matrices("eigvalsh", a, true, s);
  return array(lg::eigh(reads_upper("eigvalsh", UPLO) ? lg::adjoint(m.v) : m.v).values);
}

array det(const array& a, StreamOrDevice s) {
  const Factors f = factors("det", a, s);
  return astype(multiply(prod(f.diagonal, -1, false, s), f.sign, s), detail::floating_of(a.dtype()), s);
}

std::pair<array, array> slogdet(const array& a, StreamOrDevice s) {
  const Factors f = factors("slogdet", a, s);
  const Dtype dtype = detail::floating_of(a.dtype());
  return {astype(multiply(prod(sign(f.diagonal, s), -1, false, s), f.sign, s), dtype, s),
          astype(sum(log(abs(f.diagonal, s), s), -1, false, s), real_of(dtype), s)};
}

}  // namespace weft::linalg
