// Builders of decompositions and of the matrix operations in their derivatives.
#include "graph/calls/linalg.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/calls/call.h"
#include "graph/rows.h"

namespace weft::graph::linalg {
namespace {

/// Returns whether column j of [m, n] is at least row i plus the offset (`at_least`), or at most.
Value triangle_mask(const Value& v, int64_t offset, bool at_least) {
  const Shape& shape = v.shape();
  const Shape matrix(shape.end() - 2, shape.end());
  const Value i = iota(matrix, 0, int32), j = iota(matrix, 1, int32),
              edge = binary(Op::add, i, constant(int32, Number::of_int(offset)));
  return broadcast(at_least ? binary(Op::le, edge, j) : binary(Op::le, j, edge), shape);
}

/// Broadcasts v [b…, n] to matrices, as their rows.
Value as_rows(const Value& v, const Shape& shape) { return broadcast(expand_dims(v, {-2}), shape); }
Value as_columns(const Value& v, const Shape& shape) { return broadcast(expand_dims(v, {-1}), shape); }

Shape square_of(const Value& v) {
  Shape shape = v.shape();
  shape.push_back(shape.back());
  return shape;
}

Value conjugate_if(const Value& v, bool condition) { return condition && is_complex(v.dtype()) ? conjugate(v) : v; }

/// Makes a call on column-major matrices.
Values by_columns(const char* name, const Value& a, std::vector<int64_t> integers = {}) {
  return call(name, {swap_last(a)}, std::move(integers));
}

/// Returns [b…]: the number of infinite or NaN elements of each matrix. Libraries may not terminate on such matrices.
Value not_finite(const Value& a) {
  const Value rest = a - a;
  const int rank = a.type().rank();
  return sum(cast(binary(Op::ne, rest, zeros_like(rest)), int32), {rank - 2, rank - 1});
}
Value as_wide(const Value& number, const Value& like) {
  std::vector<int64_t> tail;
  for (int64_t k = number.type().rank(); k < like.type().rank(); ++k) tail.push_back(k);
  return broadcast(expand_dims(number, tail), like.shape());
}
Value zero_where(const Value& a, const Value& bad) {
  const Value wide = as_wide(bad, a);
  return select(binary(Op::eq, wide, zeros_like(wide)), a, zeros_like(a));
}
Values valid(Values results, const Value& bad) {
  for (Value& v : results) v = valid_where_zero(v, bad);
  return results;
}

Values solve_body(std::span<const Value> in) {
  const Lu f = lu(in[0]);
  const Value ones = full_like(diagonal(f.packed), 1);
  const Value unit = lower(f.packed, -1) + diagonal_matrix(ones);
  const Value x = solve_triangular(f.packed, solve_triangular(unit, take_rows(in[1], f.rows), false), true);
  const Value singular = cast(binary(Op::eq, diagonal(f.packed), zeros_like(ones)), int32);
  return {valid_where_zero(x, sum(singular, {singular.type().rank() - 1}))};
}

/// With X = A⁻¹B: gB = A⁻ᴴ gX, gA = -gB Xᴴ.
Values solve_vjp(std::span<const Value> in, std::span<const Value> out, std::span<const Value> g) {
  if (!g[0]) return {Value{}, Value{}};
  const Value b = solve(adjoint(in[0]), g[0]);
  return {-batched_matmul(b, out[0], false, true), b};
}

/// dX = A⁻¹ (dB - dA X)
Values solve_jvp(std::span<const Value> in, std::span<const Value> out, std::span<const Value> t) {
  if (!t[0] && !t[1]) return {Value{}};
  Value right = t[1];
  if (t[0]) right = right ? right - batched_matmul(t[0], out[0]) : -batched_matmul(t[0], out[0]);
  return {solve(in[0], right)};
}

/// Returns V (1 / S) Uᴴ without the singular values that count as zero.
Values pinv_body(std::span<const Value> in) {
  const Svd f = svd(in[0]);
  const Shape& shape = in[0].shape();
  const int last = f.s.type().rank() - 1;
  if (f.s.shape().back().bound() == 0) return {zeros_like(swap_last(in[0]))};
  const double eps = f.s.dtype() == float64 ? 0x1p-52 : 0x1p-23,
               size = static_cast<double>(std::max(shape.back().bound(), shape[shape.size() - 2].bound()));
  const Value least = broadcast(max(f.s, {last}, true) * (10 * size * eps), f.s.shape());
  const Value inverse = select(binary(Op::le, f.s, least), zeros_like(f.s), 1.0 / f.s);
  return {batched_matmul(scale_columns(adjoint(f.vh), inverse), f.u, false, true)};
}

/// Returns v - A P v.
Value beyond(const Value& a, const Value& p, const Value& v) { return v - batched_matmul(a, batched_matmul(p, v)); }

/// dP = -P dA P + P Pᴴ dAᴴ (I - A P) + (I - P A) dAᴴ Pᴴ P (Golub & Pereyra, 1973), which knows no gaps between singular
/// values; here its transpose.
Values pinv_vjp(std::span<const Value> in, std::span<const Value> out, std::span<const Value> g) {
  if (!g[0]) return {Value{}};
  const Value &a = in[0], &p = out[0], gh = adjoint(g[0]);
  const Value right = batched_matmul(batched_matmul(gh, p), p, false, true),
              left = batched_matmul(p, batched_matmul(p, gh), true);
  return {beyond(a, p, right) + left - batched_matmul(batched_matmul(left, p), a) -
          batched_matmul(batched_matmul(p, g[0], true), p, false, true)};
}

Values pinv_jvp(std::span<const Value> in, std::span<const Value> out, std::span<const Value> t) {
  if (!t[0]) return {Value{}};
  const Value &a = in[0], &p = out[0], th = adjoint(t[0]);
  const Value left = batched_matmul(p, batched_matmul(p, th, true)),
              right = batched_matmul(batched_matmul(th, p, false, true), p);
  return {left - batched_matmul(batched_matmul(left, a), p) + beyond(p, a, right) -
          batched_matmul(batched_matmul(p, t[0]), p)};
}

}  // namespace

Value unit_diagonal(const Value& v) {
  const Shape matrix(v.shape().end() - 2, v.shape().end());
  return broadcast(binary(Op::eq, iota(matrix, 0, int32), iota(matrix, 1, int32)), v.shape());
}

Value lower(const Value& v, int64_t offset) { return select(triangle_mask(v, offset, false), v, zeros_like(v)); }
Value upper(const Value& v, int64_t offset) { return select(triangle_mask(v, offset, true), v, zeros_like(v)); }
Value half_lower(const Value& v) { return select(unit_diagonal(v), v * 0.5, lower(v)); }
Value folded(const Value& v) { return half_lower(v + adjoint(v)); }
Value mirrored(const Value& v) { return half_lower(v) + adjoint(half_lower(v)); }
Value diagonal(const Value& v) { return sum(select(unit_diagonal(v), v, zeros_like(v)), {v.type().rank() - 1}); }

Value diagonal_matrix(const Value& v) {
  const Value wide = as_rows(v, square_of(v));
  return select(unit_diagonal(wide), wide, zeros_like(wide));
}

Value identity_like(const Value& v) { return select(unit_diagonal(v), full_like(v, 1), zeros_like(v)); }
Value adjoint(const Value& v) { return swap_last(conjugate_if(v, true)); }
Value skew(const Value& v) { return v - adjoint(v); }
Value real_part(const Value& v) { return is_complex(v.dtype()) ? unary(Op::real, v) : v; }
Value scaled(const Value& v, const Value& by) {
  return is_complex(v.dtype()) ? complex(unary(Op::real, v) * by, unary(Op::imag, v) * by) : v * by;
}
Value scale_columns(const Value& v, const Value& by) { return scaled(v, as_rows(by, v.shape())); }
Value scale_rows(const Value& v, const Value& by) { return scaled(v, as_columns(by, v.shape())); }

Value batched_matmul(const Value& left, const Value& right, bool a_adjoint, bool b_adjoint) {
  const Value a = conjugate_if(left, a_adjoint), b = conjugate_if(right, b_adjoint);
  const int64_t rank = a.type().rank();
  std::vector<int64_t> batch(static_cast<size_t>(rank - 2));
  std::iota(batch.begin(), batch.end(), 0);
  return dot(a, b, {a_adjoint ? rank - 2 : rank - 1}, {b_adjoint ? rank - 1 : rank - 2}, batch, batch);
}

Value reciprocal_gaps(const Value& v) {
  const Shape shape = square_of(v);
  const Value gaps = as_rows(v, shape) - as_columns(v, shape), own = unit_diagonal(gaps);
  return select(own, zeros_like(gaps),
                1.0 / select(own, full_like(gaps, 1), gaps));  // never 1 / 0, whose derivative is not finite
}

Value valid_where_zero(const Value& v, const Value& number) {
  const Value wide = as_wide(number, v);
  return select(binary(Op::eq, wide, zeros_like(wide)), v, full_like(v, NAN));
}

Value cholesky(const Value& a) {
  const Values y = call("cholesky", {a});
  const Value d = diagonal(y[0]), unknown = cast(binary(Op::ne, d, d), int32);
  return valid_where_zero(lower(y[0]), y[1] + sum(unknown, {d.type().rank() - 1}));
}

Value solve_triangular(const Value& t, const Value& b, bool upper, bool adjoint) {
  return call("solve_triangular", {t, b}, {upper, adjoint})[0];
}

Value times_inverse(const Value& v, const Value& u, bool adjoint_of_u) {
  return adjoint(solve_triangular(u, adjoint(v), true, !adjoint_of_u));
}

Lu lu(const Value& a) {
  const Values y = by_columns("lu", a);
  return {swap_last(y[0]), y[1], y[2] - full_like(y[2], 1)};
}

Value take_rows(const Value& v, const Value& rows) {
  if (num_elements(v.shape()) == 0) return v;
  Values indices;
  std::vector<int64_t> axes;
  const Shape& shape = v.shape();
  Shape index_shape = rows.shape(), ones(shape.size(), Dim(1));
  for (size_t k = 0; k + 2 < shape.size(); ++k)
    indices.push_back(iota(index_shape, static_cast<int>(k), uint32)), axes.push_back(static_cast<int64_t>(k));
  indices.push_back(rows), axes.push_back(static_cast<int64_t>(shape.size()) - 2);
  ones.back() = shape.back();
  return reshape(gather(v, indices, axes, ones), shape);
}

Value solve(const Value& a, const Value& b) {
  static const auto region = std::make_shared<Composite>(Composite{"solve", "", solve_body, solve_vjp, solve_jvp, {}});
  return composite(region, {a, b})[0];
}

Value pinv(const Value& a) {
  static const auto region = std::make_shared<Composite>(Composite{"pinv", "", pinv_body, pinv_vjp, pinv_jvp, {}});
  return composite(region, {a})[0];
}

Value orthonormal(const Value& a, bool complete) { return swap_last(by_columns("qr", a, {complete})[0]); }

Svd svd(const Value& a) {
  const Value bad = not_finite(a);
  const Shape& shape = a.shape();
  const bool tall = shape[shape.size() - 2].bound() >= shape.back().bound();
  const Value clean = zero_where(a, bad);
  const Values y =
      valid(call("svd", {tall ? swap_last(clean) : clean}), bad);  // of a wide matrix that of Aᵀ = (Vᴴ)ᵀ S Uᵀ
  return tall ? Svd{swap_last(y[1]), y[0], y[2]} : Svd{swap_last(y[2]), y[0], y[1]};
}

Eigen eigh(const Value& a) {
  const Value bad = not_finite(lower(a));
  const Values y = valid(call("eigh", {zero_where(a, bad)}), bad);
  return {y[0], swap_last(y[1])};
}

Eigen eig(const Value& a) {
  const Value bad = not_finite(a);
  const Values y = valid(by_columns("eig", zero_where(a, bad)), bad);
  return {y[0], swap_last(y[1])};
}

}  // namespace weft::graph::linalg
