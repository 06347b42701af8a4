// Triangular factors as calls.
//
// cholesky a              a [b…, n, n], of which only the lower part is A's, and the diagonal's real part. Results: L
// of
//                         A = L Lᴴ over the lower part of a, whose upper part is unchanged; int32 [b…]: 0, or not 0 if
//                         A is not positive definite (L is then undefined).
// solve_triangular t, b   integers: 1 if T is upper, 1 for Tᴴ. t [b…, n, n], whose other part is not read, b [b…, n,
// k].
//                         Result: X [b…, n, k] of T X = B or Tᴴ X = B.
// lu a                    a [b…, n, m]: column-major matrices of m rows and n columns. Results: L (without its diagonal
//                         of ones) and U in the layout of a; uint32 [b…, m]: the row of A that each row became; uint32
//                         [b…, min(m, n)]: the row, counted from 1, with which row i was exchanged.
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/calls/linalg_rules.h"

namespace weft::graph {
namespace {

using namespace linalg;

// ---- Cholesky ----

std::vector<Type> cholesky_types(const Attrs&, TypeSpan in) {
  check_matrices("cholesky", in[0], true);
  return {in[0], batch_of(in[0], {}, int32)};
}

/// With Φ the lower part and half of the diagonal: A's gradient is L⁻ᴴ Φ(Lᴴ gL) L⁻¹ (Murray, Differentiation of the
/// Cholesky decomposition, 2016; of complex matrices as of real ones, with adjoints for transposes).
Values cholesky_vjp(const Node&, ValueSpan, ValueSpan y, ValueSpan g) {
  if (!g[0]) return {Value{}};
  const Value l = lower(y[0]), inner = half_lower(batched_matmul(l, lower(g[0]), true));
  const Value left = solve_triangular(l, inner, false, true);
  return {folded(solve_triangular(l, adjoint(left), false, true)) + upper(g[0], 1)};
}

/// dL = L Φ(L⁻¹ dA L⁻ᴴ)
Values cholesky_jvp(const Node&, ValueSpan, ValueSpan y, ValueSpan t) {
  if (!t[0]) return {Value{}, Value{}};
  const Value l = lower(y[0]), left = solve_triangular(l, mirrored(t[0]), false);
  return {batched_matmul(l, half_lower(solve_triangular(l, adjoint(left), false))) + upper(t[0], 1), Value{}};
}

std::vector<HostTensor> cholesky_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan out) {
  std::vector<HostTensor> results{{out[0], {}}, {out[1], {}}};
  for (int64_t k = 0; k < count_of(in[0]); ++k) {
    Matrix a = matrix_of(in[0], k);
    const std::vector<Complex> failed{factor_cholesky(a) ? 0.0 : 1.0};
    append(results[0], a.data);
    append(results[1], failed);
  }
  return results;
}

// ---- triangular systems ----

std::vector<Type> solve_triangular_types(const Attrs&, TypeSpan in) {
  check_matrices("solve_triangular", in[0], true);
  const Type &t = in[0], &b = in[1];
  if (b.dtype != t.dtype || b.rank() != t.rank() || !std::equal(t.shape.begin(), t.shape.end() - 1, b.shape.begin()))
    throw_invalid("solve_triangular",
                  fmt::format("the right side must have the matrices' rows, leading axes and dtype, got {} and {}",
                              to_string(t), to_string(b)));
  check_matrices("solve_triangular", b, false);
  return {b};
}

Value own_part(const Attrs& attrs, const Value& v) { return attrs.integers[0] ? upper(v) : lower(v); }

/// With X = T⁻¹B: gB = T⁻ᴴ gX, gT = -gB Xᴴ within its part; the adjoint of that for Tᴴ.
Values solve_triangular_vjp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan g) {
  const Attrs& a = node.attrs();
  const Value b = solve_triangular(x[0], g[0], a.integers[0] != 0, a.integers[1] == 0);
  return {own_part(a, -(a.integers[1] ? batched_matmul(y[0], b, false, true) : batched_matmul(b, y[0], false, true))),
          b};
}

/// dX = T⁻¹ (dB - dT X)
Values solve_triangular_jvp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan t) {
  const Attrs& a = node.attrs();
  if (!t[0] && !t[1]) return {Value{}};
  Value right = t[1];
  if (t[0]) {
    const Value moved = batched_matmul(own_part(a, t[0]), y[0], a.integers[1] != 0);
    right = right ? right - moved : -moved;
  }
  return {solve_triangular(x[0], right, a.integers[0] != 0, a.integers[1] != 0)};
}

std::vector<HostTensor> solve_triangular_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  HostTensor result{out[0], {}};
  for (int64_t k = 0; k < count_of(in[0]); ++k) {
    const Matrix t = matrix_of(in[0], k);
    Matrix b = matrix_of(in[1], k);
    solve_in_place(attrs.integers[1] ? adjoint_of(t) : t, b, attrs.integers[0] != attrs.integers[1]);
    append(result, b.data);
  }
  return {result};
}

// ---- LU ----

std::vector<Type> lu_types(const Attrs&, TypeSpan in) {
  check_matrices("lu", in[0], false);
  const Shape& shape = in[0].shape;
  const Dim m = shape.back(), n = shape[shape.size() - 2];
  return {in[0], batch_of(in[0], {m}, uint32), batch_of(in[0], {m.bound() < n.bound() ? m : n}, uint32)};
}

/// Returns rows in the order that they had in A: the inverse permutation is the argsort of the permutation.
Value put_back(const Value& v, const Value& rows) { return take_rows(v, sort(rows, rows.type().rank() - 1).order); }

/// Returns `rows` x `columns` of v from (`row`, `column`) on, for all leading axes.
Value block(const Value& v, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const int rank = v.type().rank();
  return slice_axis(slice_axis(v, rank - 2, row, rows), rank - 1, column, columns);
}

struct Blocks {
  int64_t m, n, k;      // rows, columns, the smaller
  Value l, u;           // the leading k × k of both, L with its diagonal
  Value below, beside;  // the rest of L [m - k, k], or of U [k, n - k]; empty where there is none
};

Blocks factors_of(const Value& packed) {
  const Shape& shape = packed.shape();
  Blocks f{shape[shape.size() - 2].bound(), shape.back().bound(), 0, {}, {}, {}, {}};
  f.k = std::min(f.m, f.n);
  const Value square = block(packed, 0, f.k, 0, f.k);
  f.l = lower(square, -1) + identity_like(square);
  f.u = upper(square);
  if (f.m > f.k) f.below = block(packed, f.k, f.m - f.k, 0, f.k);
  if (f.n > f.k) f.beside = block(packed, 0, f.k, f.k, f.n - f.k);
  return f;
}

/// The square part: gA = P L⁻ᴴ (lower part of Lᴴ gL below the diagonal + upper part of gU Uᴴ) U⁻ᴴ; what is below or
/// beside it is L₂ = A₂U⁻¹ or U₂ = L⁻¹A₂.
Values lu_vjp(const Node&, ValueSpan, ValueSpan y, ValueSpan g) {
  if (!g[0]) return {Value{}};
  const Blocks f = factors_of(swap_last(y[0]));
  const Value all = swap_last(g[0]), square = block(all, 0, f.k, 0, f.k);
  const int rank = all.type().rank();
  Value gl = lower(square, -1), gu = upper(square), rest;
  if (f.below) {
    rest = times_inverse(block(all, f.k, f.m - f.k, 0, f.k), f.u, true);
    gu = upper(gu - batched_matmul(f.below, rest, true));
  }
  if (f.beside) {
    rest = solve_triangular(f.l, block(all, 0, f.k, f.k, f.n - f.k), false, true);
    gl = lower(gl - batched_matmul(rest, f.beside, false, true), -1);
  }
  const Value inner = lower(batched_matmul(f.l, gl, true), -1) + upper(batched_matmul(gu, f.u, false, true));
  Value ga = times_inverse(solve_triangular(f.l, inner, false, true), f.u, true);
  if (rest) ga = concat({ga, rest}, f.below ? rank - 2 : rank - 1);
  return {swap_last(put_back(ga, y[1]))};
}

/// dL = L · lower part of F below the diagonal, dU = upper part of F · U, F = L⁻¹ dA U⁻¹ with dA's rows exchanged.
Values lu_jvp(const Node&, ValueSpan, ValueSpan y, ValueSpan t) {
  if (!t[0]) return {Value{}, Value{}, Value{}};
  const Blocks f = factors_of(swap_last(y[0]));
  const Value all = take_rows(swap_last(t[0]), y[1]);
  const int rank = all.type().rank();
  const Value inner = times_inverse(solve_triangular(f.l, block(all, 0, f.k, 0, f.k), false), f.u, false);
  const Value dl = batched_matmul(f.l, lower(inner, -1)), du = batched_matmul(upper(inner), f.u);
  Value out = dl + du;
  if (f.below)
    out = concat({out, times_inverse(block(all, f.k, f.m - f.k, 0, f.k) - batched_matmul(f.below, du), f.u, false)},
                 rank - 2);
  if (f.beside)
    out = concat({out, solve_triangular(f.l, block(all, 0, f.k, f.k, f.n - f.k) - batched_matmul(dl, f.beside), false)},
                 rank - 1);
  return {swap_last(out), Value{}, Value{}};
}

std::vector<Complex> numbers(const std::vector<int64_t>& integers) {
  std::vector<Complex> out;
  for (const int64_t k : integers) out.emplace_back(static_cast<double>(k));
  return out;
}

std::vector<HostTensor> lu_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan out) {
  std::vector<HostTensor> results{{out[0], {}}, {out[1], {}}, {out[2], {}}};
  for (int64_t k = 0; k < count_of(in[0]); ++k) {
    Matrix a = transposed(matrix_of(in[0], k));
    std::vector<int64_t> rows, pivots;
    factor_lu(a, rows, pivots);
    append(results[0], transposed(a).data);
    for (int64_t& row : pivots) ++row;
    append(results[1], numbers(rows));
    append(results[2], numbers(pivots));
  }
  return results;
}

constexpr auto linalg_rules = std::to_array<CallRule>({
    {"cholesky", 1, 1, 0, cholesky_types, None::unbounded, cholesky_vjp, cholesky_jvp, batched_call, batch_factors,
     cholesky_reference, 16},
    {"solve_triangular", 2, 2, 2, solve_triangular_types, None::unbounded, solve_triangular_vjp, solve_triangular_jvp,
     batched_call, batch_factors, solve_triangular_reference, 16},
    {"lu", 1, 1, 0, lu_types, None::unbounded, lu_vjp, lu_jvp, batched_call, batch_factors, lu_reference, 16},
});
static_assert(complete_calls(linalg_rules));

}  // namespace

std::span<const CallRule> linalg_calls() { return linalg_rules; }

}  // namespace weft::graph
