// The gated delta rule of weft/fast.h in chunks; it stands here because chunks follow each other in a scan.
// Within a chunk of C times let G be the running product of gamma. The corrections
// u_t = beta_t (v_t - gamma_t S_{t-1} k_t) solve a triangular system,
//
//   (I + A) U = diag(beta) (V - diag(G) K S₀ᵀ),   A[t, i] = beta_t (G_t / G_i) k_t · k_i  for i < t,
//
// after which outputs and the next state are products of matrices:
//
//   O = diag(G) Q S₀ᵀ + (Q Kᵀ ⊙ D) U,   S = G_C S₀ + Σ (G_C / G_i) u_i k_iᵀ,   D[t, i] = G_t / G_i  for i ≤ t.
#include <algorithm>

#include "array/op_support.h"
#include "base/error.h"
#include "weft/control.h"
#include "weft/fast.h"
#include "weft/linalg.h"
#include "weft/ops.h"

namespace weft::fast {

namespace {

constexpr const char* op = "gated_delta_update";
constexpr int64_t longest_chunk = 64;
constexpr float log_of_nothing = -1e30f;  // of what lies above the diagonal: its exponential is 0
constexpr float smallest_log = -80;       // of gamma: e⁻⁸⁰ stands for 0, whose logarithm has no differences

/// The sizes of a call.
struct Sizes {
  int64_t batch, times, heads, depth, width;  // depth of keys, width of values
};

Sizes sizes_of(const array& q, const array& k, const array& v, const array& gamma, const array& beta,
               const std::optional<array>& state, const std::optional<array>& mask) {
  const auto refuse = [&](const std::string& what) { throw_invalid(op, what); };
  if (q.ndim() != 4 || v.ndim() != 4 || q.shape() != k.shape())
    refuse("queries and keys are [B, T, G, D], values [B, T, H, Dv]; got " + detail::describe(q) + ", " +
           detail::describe(k) + " and " + detail::describe(v));
  const Sizes n{v.shape(0), v.shape(1), v.shape(2), q.shape(3), v.shape(3)};
  if (q.shape(0) != n.batch || q.shape(1) != n.times || int64_t{q.shape(2)} == 0 || n.heads % int64_t{q.shape(2)} != 0)
    refuse("queries " + to_string(q.shape()) + " and values " + to_string(v.shape()) +
           " differ in batch or time, or their heads do not divide");
  const Shape gates{n.batch, n.times, n.heads};
  if (gamma.shape() != gates || beta.shape() != gates)
    refuse("gamma and beta must be " + to_string(gates) + "; got " + to_string(gamma.shape()) + " and " +
           to_string(beta.shape()));
  if (state && state->shape() != Shape{n.batch, n.heads, n.width, n.depth})
    refuse("the initial state must be " + to_string(Shape{n.batch, n.heads, n.width, n.depth}) + "; got " +
           to_string(state->shape()));
  if (mask && mask->shape() != Shape{n.batch, n.times})
    refuse("the mask must be " + to_string(Shape{n.batch, n.times}) + "; got " + to_string(mask->shape()));
  return n;
}

/// Returns x [B, T, H, …] as float32 chunks [N, B, H, C, …], with `fill` behind the last time.
array chunked(const array& x, int64_t chunks, int64_t length, float fill, const StreamOrDevice& s) {
  const int64_t missing = chunks * length - int64_t{x.shape(1)};
  array a = astype(x, float32, s);
  if (missing > 0) a = pad(a, {1}, {0}, {missing}, array(fill), "constant", s);
  Shape apart{x.shape(0), chunks, length};
  apart.insert(apart.end(), x.shape().begin() + 2, x.shape().end());
  std::vector<int> order{1, 0, 3, 2};
  for (int axis = 4; axis < static_cast<int>(apart.size()); ++axis) order.push_back(axis);
  return transpose(reshape(a, apart, s), order, s);
}

/// Returns each of G heads repeated for the H / G heads that share it.
array shared(const array& x, int64_t heads, const StreamOrDevice& s) {
  const int64_t times = heads / int64_t{x.shape(2)};
  return times == 1 ? x : repeat(x, static_cast<int>(times), 2, s);
}

array transposed(const array& x, const StreamOrDevice& s) { return swapaxes(x, -1, -2, s); }

}  // namespace

std::vector<array> gated_delta_update(const array& queries, const array& keys, const array& values, const array& gamma,
                                      const array& beta, const std::optional<array>& initial_state,
                                      const std::optional<array>& mask, StreamOrDevice s) {
  const Sizes n = sizes_of(queries, keys, values, gamma, beta, initial_state, mask);
  const array start =
      initial_state ? astype(*initial_state, float32, s) : zeros({n.batch, n.heads, n.width, n.depth}, float32, s);
  if (n.times == 0) return {zeros(values.shape(), queries.dtype(), s), start};
  const int64_t length = std::min(n.times, longest_chunk), chunks = (n.times + length - 1) / length;
  const array on = mask ? expand_dims(astype(*mask, bool_, s), -1, s) : array(true);
  const array forget = mask ? where(on, gamma, array(1.0f), s) : gamma;
  const array rate = mask ? where(on, beta, array(0.0f), s) : beta;

  const array q = chunked(shared(queries, n.heads, s), chunks, length, 0, s);
  const array k = chunked(shared(keys, n.heads, s), chunks, length, 0, s);
  const array v = chunked(values, chunks, length, 0, s);
  const array b = expand_dims(chunked(rate, chunks, length, 0, s), -1, s);
  const array logs = cumsum(maximum(log(chunked(forget, chunks, length, 1, s), s), array(smallest_log), s), -1, false,
                            true, std::nullopt, s);
  const array kept = expand_dims(exp(logs, s), -1, s);  // G
  const array below = tri(static_cast<int>(length), static_cast<int>(length), 0, bool_, s);
  const array ratio =
      where(below, subtract(expand_dims(logs, -1, s), expand_dims(logs, -2, s), s), array(log_of_nothing), s);
  const array decay = exp(ratio, s);  // D
  const array last = expand_dims(take(logs, -1, -1, s), -1, s);

  const array strictly = tri(static_cast<int>(length), static_cast<int>(length), -1, float32, s);
  const array system = eye(static_cast<int>(length), s) + b * decay * matmul(k, transposed(k, s), s) * strictly;
  const array solved = linalg::solve_triangular(system, concatenate({b * v, b * kept * k}, -1, s), false, s);
  const std::vector<array> parts = split(solved, Shape{n.width}, -1, s);  // U = parts[0] - parts[1] S₀ᵀ
  const array scores = matmul(q, transposed(k, s), s) * decay;
  const array to_end = exp(last - logs, s);  // G_C / G
  const array weighted = k * expand_dims(to_end, -1, s);

  const auto [carry, stacked] = scan(
      [&](const std::vector<array>& state, const std::vector<array>& x) {
        const array corrections = x[0] - matmul(x[1], transposed(state[0], s), s);
        const array out = matmul(x[2], transposed(state[0], s), s) + matmul(x[3], corrections, s);
        const array next = x[5] * state[0] + matmul(transposed(corrections, s), x[4], s);
        return std::pair{std::vector{next}, std::vector{out}};
      },
      {start}, {parts[0], parts[1], q * kept, scores, weighted, expand_dims(exp(last, s), -1, s)});

  // [N, B, H, C, Dv] → [B, T, H, Dv]
  array out = reshape(transpose(stacked[0], {1, 0, 3, 2, 4}, s), {n.batch, chunks * length, n.heads, n.width}, s);
  if (chunks * length > n.times) out = slice(out, {0, 0, 0, 0}, values.shape(), s);
  if (mask) out = where(expand_dims(on, -1, s), out, array(0.0f), s);
  return {astype(out, queries.dtype(), s), carry[0]};
}

}  // namespace weft::fast
