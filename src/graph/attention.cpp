// Scaled dot-product attention, materialised: the probabilities are the region's second output, kept for the derivative.
//
//   s = scale · q kᵀ (+ mask, -inf where hidden), p = softmax(s) in float32 at least, o = p v
//   dv = pᵀ g,  dp = g vᵀ,  ds = p (dp - Σ dp p),  dq = scale · ds k,  dk = scale · dsᵀ q
//
// A row that sees nothing gives zeros, in p and in o.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/composites.h"
#include "graph/regions.h"

namespace weft::graph {
namespace {

using In = std::span<const Value>;
using Axes = std::vector<int64_t>;

struct Plan {
  double scale;
  bool causal;
  int64_t offset;  // causal: row i sees columns up to i + offset
  bool has_mask;
};

/// The product over one axis of each operand, all leading axes but the last two being batch axes; the result in `dtype`.
Value product(const Value& a, int64_t a_axis, const Value& b, int64_t b_axis, Dtype dtype) {
  Attrs attrs;
  attrs.axes = {a_axis};
  attrs.axes2 = {b_axis};
  for (int64_t k = 0; k + 2 < a.type().rank(); ++k) attrs.batch.push_back(k);
  attrs.batch2 = attrs.batch;
  attrs.dtype = dtype;
  return make(Op::dot, {a, b}, std::move(attrs));
}

Value hide(const Value& visible, const Value& scores) { return select(visible, scores, full_like(scores, -INFINITY)); }

Value probabilities(const Plan& plan, const Value& q, const Value& k, const Value& mask) {
  const int rank = q.type().rank();
  Value s = product(q, rank - 1, k, rank - 1, compute_dtype(q.dtype())) * plan.scale;
  if (plan.causal) {
    const Value row = iota(s.shape(), rank - 2, int32), column = iota(s.shape(), rank - 1, int32);
    s = hide(binary(Op::le, column, plan.offset == 0 ? row : row + static_cast<double>(plan.offset)), s);
  }
  if (plan.has_mask) s = mask.dtype() == bool_ ? hide(spread(mask, s), s) : s + spread(cast(mask, s.dtype()), s);
  const Value m = stop_gradient(finite_or_zero(max(s, {rank - 1}, true)));
  const Value e = exp(s - spread(m, s));
  const Value total = sum(e, {rank - 1}, true);
  const Value nothing = binary(Op::eq, total, zeros_like(total));
  return e * spread(unary(Op::recip, select(nothing, full_like(total, 1), total)), s);  // one division a row
}

Values attention_body(const Plan& plan, In in) {
  const int rank = in[0].type().rank();
  const Value p = cast(probabilities(plan, in[0], in[1], plan.has_mask ? in[3] : Value{}), in[2].dtype());
  return {product(p, rank - 1, in[2], rank - 2, in[2].dtype()), p};
}

Values attention_vjp(const Plan& plan, In in, In out, In g) {
  const Value &q = in[0], &k = in[1], &v = in[2];
  const int rank = q.type().rank();
  const Dtype wide = compute_dtype(q.dtype());
  const Value p = cast(out[1], wide);
  Value dv, dp;
  if (g[0]) {
    dv = product(out[1], rank - 2, g[0], rank - 2, v.dtype());
    dp = product(g[0], rank - 1, v, rank - 1, wide);
  }
  if (g[1]) dp = dp ? dp + cast(g[1], wide) : cast(g[1], wide);
  const Value ds = p * (dp - spread(sum(dp * p, {rank - 1}, true), p));
  const Value scaled = cast(ds * plan.scale, q.dtype());
  Values gradients{product(scaled, rank - 1, k, rank - 2, q.dtype()), product(scaled, rank - 2, q, rank - 2, k.dtype()), dv};
  if (plan.has_mask) gradients.push_back(in[3].dtype() == bool_ ? Value{} : cast(sum_to(ds, in[3].shape()), in[3].dtype()));
  return gradients;
}

void check_arguments(const Value& q, const Value& k, const Value& v, const Value& mask) {
  const auto describe = [&] { return fmt::format("q {}, k {}, v {}", to_string(q.type()), to_string(k.type()), to_string(v.type())); };
  const size_t rank = q.shape().size();
  if (rank < 2 || k.shape().size() != rank || v.shape().size() != rank || !is_float(q.dtype()) || k.dtype() != q.dtype() || v.dtype() != q.dtype())
    throw_invalid("attention", "needs floating q [..., tq, d], k and v [..., tk, d] of one dtype, got " + describe());
  bool fits = q.shape()[rank - 1] == k.shape()[rank - 1] && k.shape()[rank - 2] == v.shape()[rank - 2];
  for (size_t axis = 0; axis + 2 < rank; ++axis) fits = fits && q.shape()[axis] == k.shape()[axis] && q.shape()[axis] == v.shape()[axis];
  if (!fits) throw_invalid("attention", "leading axes, the width of q and k, and the length of k and v must be equal, got " + describe());
  if (mask && mask.dtype() != bool_ && !is_float(mask.dtype())) throw_invalid("attention", "the mask must be bool or floating, got " + to_string(mask.type()));
}

/// The causal offset tk - tq; a single row sees everything, so that nothing need be hidden.
bool resolve_causal(const Dim& tq, const Dim& tk, int64_t& offset) {
  offset = 0;
  if (tq == 1) return false;
  if (tq == tk) return true;
  if (!tq.is_static() || !tk.is_static()) throw_invalid("attention", "causal with different symbolic lengths: pass a mask instead");
  offset = tk.bound() - tq.bound();
  return true;
}

}  // namespace

Value attention(const Value& q, const Value& k, const Value& v, double scale, bool causal, const Value& mask) {
  check_arguments(q, k, v, mask);
  const size_t rank = q.shape().size();
  Plan plan{scale, causal, 0, static_cast<bool>(mask)};
  if (causal) plan.causal = resolve_causal(q.shape()[rank - 2], k.shape()[rank - 2], plan.offset);
  Composite region;
  region.name = "attention";
  region.key = fmt::format("scale({:a}) causal({},{}) mask({})", scale, plan.causal, plan.offset, plan.has_mask);
  region.body = [plan](In in) { return attention_body(plan, in); };
  region.vjp = [plan](In in, In out, In g) { return attention_vjp(plan, in, out, g); };
  Values inputs{q, k, v};
  if (mask) inputs.push_back(mask);
  return composite(std::make_shared<Composite>(std::move(region)), std::move(inputs))[0];
}

}  // namespace weft::graph
