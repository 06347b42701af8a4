// Scaled dot-product attention and its derivative: two regions that the attention kernels compute whole. Their bodies
// define them.
//
//   s = scale · q kᵀ (+ mask, -inf where hidden), l = log Σ exp s, p = exp(s - l), o = p v, all in float32 at least
//   dv = pᵀ g,  dp = g vᵀ,  ds = p (dp - Σ g o),  dq = scale · ds k,  dk = scale · dsᵀ q
//
// The second result of the forward region is l, from which the derivative recomputes p, so nothing of the size of s is
// stored. A row in which all keys are hidden gives zeros and l = +inf, so that exp(s - l) is 0.
//
// Dropout keeps each p with probability 1 - rate and divides it by that, after l was taken: o = d v with d = p m / (1 -
// rate), m in {0, 1}. Then dv = dᵀ g and dp = g vᵀ m / (1 - rate); Σ d (g vᵀ) = Σ g o still. m follows from a key and
// the position, so nothing is stored; the derivative's region draws it again.
//
// A sink is an additional logit t of a head's rows that has no value: l' = log(exp l + exp t), o' = o · exp(l - l') = o
// · sigmoid(l - t). With o' and l' in place of o and l, the derivative's equations still hold, so its region is used
// here too; dt = -Σ exp(t - l') Σ g o' over the rows.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/regions/composites.h"
#include "graph/regions/regions.h"
#include "kernel/describe/dropout.h"

namespace weft::graph {
namespace {

using kernel::dropout_block;

using In = std::span<const Value>;
using Axes = std::vector<int64_t>;

using Plan = AttentionRegion;

/// Contracts one axis of each operand; all leading axes but the last two are batch axes. The result has dtype `dtype`.
Value matmul(const Value& a, int64_t a_axis, const Value& b, int64_t b_axis, Dtype dtype) {
  Attrs attrs;
  attrs.axes = {a_axis};
  attrs.axes2 = {b_axis};
  for (int64_t k = 0; k + 2 < a.type().rank(); ++k) attrs.batch.push_back(k);
  attrs.batch2 = attrs.batch;
  attrs.dtype = dtype;
  return make(Op::dot, {a, b}, std::move(attrs));
}

std::string plan_key(const Plan& plan) {
  const std::string dropout = plan.dropout > 0 ? fmt::format(" dropout({:a})", plan.dropout) : "";
  return fmt::format("scale({:a}) causal({},{}) mask({}){}", plan.scale, plan.causal, plan.offset, plan.mask, dropout);
}

Value hide(const Value& visible, const Value& scores) { return select(visible, scores, full_like(scores, -INFINITY)); }

Value scores(const Plan& plan, const Value& q, const Value& k, const Value& mask) {
  const int rank = q.type().rank();
  Value s = matmul(q, rank - 1, k, rank - 1, compute_dtype(q.dtype())) * plan.scale;
  if (plan.mask && is_integer(mask.dtype()))
    s = hide(binary(Op::lt, iota(s.shape(), rank - 1, int32), broadcast_like(cast(mask, int32), s)), s);
  else if (plan.mask)
    s = mask.dtype() == bool_ ? hide(broadcast_like(mask, s), s) : s + broadcast_like(cast(mask, s.dtype()), s);
  if (plan.causal) {
    const Value row = iota(s.shape(), rank - 2, int32), column = iota(s.shape(), rank - 1, int32);
    s = hide(binary(Op::le, column, plan.offset == 0 ? row : row + static_cast<double>(plan.offset)), s);
  }
  return s;
}

/// The inputs of either region by name; those of the derivative are empty in the forward region.
struct Inputs {
  Value q, k, v, mask, key, o, lse, g;
  Inputs(const Plan& plan, In in) : q(in[0]), k(in[1]), v(in[2]) {
    if (plan.mask) mask = in[3];
    if (plan.dropout > 0) key = in[plan.mask ? 4 : 3];
    if (plan.derivative) o = in[in.size() - 3], lse = in[in.size() - 2], g = in[in.size() - 1];
  }
};

/// Returns weights, or their cotangents, after dropout (kernel/describe/dropout.h).
Value dropped(const Plan& plan, const Value& key, const Value& x) {
  if (plan.dropout == 0) return x;
  const Shape& shape = x.shape();
  const size_t rank = shape.size(), keyed = key.shape().size() - 1;
  const auto blocks = [](const Dim& n) { return Dim((n.bound() + dropout_block - 1) / dropout_block); };
  const Dim rows = blocks(shape[rank - 2]), columns = blocks(shape[rank - 1]), half = dropout_block / 2;
  Shape drawn(shape.begin() + static_cast<std::ptrdiff_t>(keyed), shape.end() - 2);
  drawn.insert(drawn.end(), {rows, 2, half, columns, 2, half, 2, 2});
  const auto r = static_cast<int64_t>(rank) - 2;
  Value words = random_bits(key, drawn, Generator::philox);
  for (const int64_t unused : {r + 1, r + 4}) words = slice_axis(words, static_cast<int>(unused), 1, 1);
  Axes order;
  for (int64_t axis = 0; axis < r; ++axis) order.push_back(axis);
  order.insert(order.end(), {r, r + 6, r + 2, r + 3, r + 7, r + 5, r + 1, r + 4});
  Shape padded(shape.begin(), shape.end() - 2);
  padded.insert(padded.end(), {rows.bound() * dropout_block, columns.bound() * dropout_block});
  const Value word = slice(reshape(permute(words, order), padded), std::vector<int64_t>(rank, 0), shape);
  const Value kept = binary(Op::lt, word, full_like(word, static_cast<double>(kernel::dropout_limit(plan.dropout))));
  return select(kept, x * (1 / (1 - plan.dropout)), zeros_like(x));
}

Values attention_body(const Plan& plan, In in) {
  const Inputs x(plan, in);
  const Axes last{x.q.type().rank() - 1};
  const Value s = scores(plan, x.q, x.k, x.mask);
  const Value m = stop_gradient(finite_or_zero(max(s, last, true)));
  const Value e = exp(s - broadcast_like(m, s));
  const Value total = sum(e, last, true);
  const Value nothing = binary(Op::eq, total, zeros_like(total)), safe = select(nothing, full_like(total, 1), total);
  const Value share = e * broadcast_like(unary(Op::recip, safe), s);  // one division a row
  const Value p = cast(dropped(plan, x.key, share), x.v.dtype());
  const Value lse = select(nothing, full_like(total, INFINITY), log(safe) + m);
  return {matmul(p, last[0], x.v, last[0] - 1, x.v.dtype()), squeeze(lse, last)};
}

/// What values are weighted by, and the derivative of the scores before scaling, ds.
struct Parts {
  Value p, ds;
};

Parts parts(const Plan& plan, const Inputs& x, const Value& lse_cotangent) {
  const Axes last{x.q.type().rank() - 1};
  const Dtype wide = compute_dtype(x.q.dtype());
  const Value s = scores(plan, x.q, x.k, x.mask);
  const Value p = exp(s - broadcast_like(expand_dims(x.lse, last), s));
  Value delta = sum(cast(x.g, wide) * cast(x.o, wide), last, true);
  if (lse_cotangent) delta = delta - expand_dims(lse_cotangent, last);
  const Value dp = dropped(plan, x.key, matmul(x.g, last[0], x.v, last[0], wide));
  return {dropped(plan, x.key, p), p * (dp - broadcast_like(delta, s))};
}

Values derivative_body(const Plan& plan, In in, const Value& lse_cotangent) {
  const Inputs x(plan, in);
  const int64_t column = x.q.type().rank() - 1, row = column - 1;
  const auto [p, ds] = parts(plan, x, lse_cotangent);
  const Value scaled = cast(ds * plan.scale, x.q.dtype());
  return {matmul(scaled, column, x.k, row, x.q.dtype()), matmul(scaled, row, x.q, row, x.k.dtype()),
          matmul(cast(p, x.v.dtype()), row, x.g, row, x.v.dtype())};
}

Values attention_vjp(const Plan& forward, In in, In out, In cotangents) {
  Plan plan = forward;
  plan.derivative = true;
  Values inputs(in.begin(), in.end());
  inputs.insert(inputs.end(), {out[0], out[1], cotangents[0] ? cotangents[0] : zeros_like(out[0])});
  Values gradients;
  if (cotangents[1]) {  // only derivatives of the derivative have a cotangent for the logsumexp
    gradients = derivative_body(plan, inputs, cotangents[1]);
  } else {
    Composite region;
    region.name = "attention_vjp";
    region.key = plan_key(plan);
    region.body = [plan](In x) { return derivative_body(plan, x, {}); };
    region.attention = plan;
    gradients = composite(std::make_shared<Composite>(std::move(region)), inputs);
  }
  if (plan.mask) {
    const Value& mask = in[3];
    if (!is_float(mask.dtype())) gradients.push_back({});
    else
      gradients.push_back(
          cast(sum_to(parts(plan, Inputs(plan, inputs), cotangents[1]).ds, mask.shape()), mask.dtype()));
  }
  if (plan.dropout > 0) gradients.push_back({});
  return gradients;
}

void check_arguments(const Value& q, const Value& k, const Value& v, const Value& mask) {
  const auto describe = [&] {
    return fmt::format("q {}, k {}, v {}", to_string(q.type()), to_string(k.type()), to_string(v.type()));
  };
  const size_t rank = q.shape().size();
  if (rank < 2 || k.shape().size() != rank || v.shape().size() != rank || !is_float(q.dtype()) ||
      k.dtype() != q.dtype() || v.dtype() != q.dtype())
    throw_invalid("attention", "needs floating q [..., tq, d], k and v [..., tk, d] of one dtype, got " + describe());
  bool fits = q.shape()[rank - 1] == k.shape()[rank - 1] && k.shape()[rank - 2] == v.shape()[rank - 2];
  for (size_t axis = 0; axis + 2 < rank; ++axis)
    fits = fits && q.shape()[axis] == k.shape()[axis] && q.shape()[axis] == v.shape()[axis];
  if (!fits)
    throw_invalid("attention",
                  "leading axes, the width of q and k, and the length of k and v must be equal, got " + describe());
  if (!mask || mask.dtype() == bool_ || is_float(mask.dtype())) return;
  const Shape& s = mask.shape();
  if (!is_integer(mask.dtype()) || !std::all_of(s.begin(), s.end(), [](const Dim& d) { return d == 1; }))
    throw_invalid("attention",
                  "the mask must be bool or floating, or one integer, the number of keys that are seen; got " +
                      to_string(mask.type()));
}

void check_dropout(const AttentionDropout& dropout, const Value& q, const Value& sinks) {
  const Value& key = dropout.key;
  const size_t leading = q.shape().size() - 2;
  if (!(dropout.rate > 0 && dropout.rate < 1))
    throw_invalid("attention", fmt::format("dropout needs a rate between 0 and 1, got {}", dropout.rate));
  if (sinks) throw_invalid("attention", "dropout and sinks cannot be given together");
  if (!key || key.dtype() != uint32 || key.shape().empty() || !(key.shape().back() == 2) ||
      key.shape().size() > leading + 1 || !std::equal(key.shape().begin(), key.shape().end() - 1, q.shape().begin()))
    throw_invalid("attention",
                  "dropout needs a key of two uint32 words, or one for each index along the first axes of "
                  "q; got " +
                      (key ? to_string(key.type()) : "none") + " for q " + to_string(q.type()));
}

/// Sets the causal offset tk - tq; returns false if nothing is hidden, because there is only one query.
bool resolve_causal(const Dim& tq, const Dim& tk, int64_t& offset) {
  offset = 0;
  if (tq == 1) return false;
  if (tq == tk) return true;
  if (!tq.is_static() || !tk.is_static())
    throw_invalid("attention", "causal with different symbolic lengths: pass a mask instead");
  offset = tk.bound() - tq.bound();
  return true;
}

/// Broadcasts `sinks`, given for the last of the leading axes, to the rows of `like` [..., tq].
Value for_rows(const Value& sinks, const Value& like) {
  return broadcast_like(expand_dims(cast(sinks, like.dtype()), {sinks.type().rank()}), like);
}

Values region_results(const Plan& plan, Values inputs) {
  Composite region;
  region.name = "attention";
  region.key = plan_key(plan);
  region.body = [plan](In in) { return attention_body(plan, in); };
  region.vjp = [plan](In in, In out, In g) { return attention_vjp(plan, in, out, g); };
  region.attention = plan;
  return composite(std::make_shared<Composite>(std::move(region)), std::move(inputs));
}

/// Inputs: those of attention, then the sinks; results: o' and l'.
Values sinks_body(const Plan& plan, In in) {
  const Values f = region_results(plan, {in.begin(), in.end() - 1});
  const Value &o = f[0], &lse = f[1], sink = for_rows(in.back(), lse);
  const Value share = expand_dims(unary(Op::sigmoid, lse - sink), {lse.type().rank()});
  return {cast(cast(o, lse.dtype()) * broadcast_like(share, o), o.dtype()), binary(Op::logaddexp, lse, sink)};
}

Values sinks_vjp(const Plan& plan, In in, In out, In cotangents) {
  const Value &sinks = in.back(), &o = out[0], &lse = out[1];
  Values gradients = attention_vjp(plan, in.first(in.size() - 1), out, cotangents);
  const Axes last{o.type().rank() - 1};
  Value flow = cotangents[1] ? cotangents[1] : zeros_like(lse);  // of l', without the part through o'
  if (cotangents[0]) flow = flow - sum(cast(cotangents[0], lse.dtype()) * cast(o, lse.dtype()), last);
  const Value part = exp(for_rows(sinks, lse) - lse) * flow;
  Shape heads = sinks.shape();
  heads.push_back(1);
  gradients.push_back(cast(squeeze(sum_to(part, heads), {sinks.type().rank()}), sinks.dtype()));
  return gradients;
}

void check_sinks(const Value& sinks, const Value& q) {
  const size_t leading = q.shape().size() - 2, rank = sinks.shape().size();
  const auto first = q.shape().begin() + static_cast<std::ptrdiff_t>(leading >= rank ? leading - rank : 0);
  if (!is_float(sinks.dtype()) || rank > leading || !std::equal(sinks.shape().begin(), sinks.shape().end(), first))
    throw_invalid("attention", "sinks are floating, with the last of the leading axes of q; got " +
                                   to_string(sinks.type()) + " for q " + to_string(q.type()));
}

}  // namespace

Value attention(const Value& q, const Value& k, const Value& v, double scale, bool causal, const Value& mask,
                const Value& sinks, const AttentionDropout& dropout) {
  check_arguments(q, k, v, mask);
  const size_t rank = q.shape().size();
  if (dropout.rate != 0) check_dropout(dropout, q, sinks);
  Plan plan{scale, causal, 0, static_cast<bool>(mask), false, dropout.rate};
  if (causal) plan.causal = resolve_causal(q.shape()[rank - 2], k.shape()[rank - 2], plan.offset);
  Values inputs{q, k, v};
  if (mask) inputs.push_back(mask);
  if (dropout.rate != 0) inputs.push_back(dropout.key);
  if (!sinks) return region_results(plan, std::move(inputs))[0];
  check_sinks(sinks, q);
  inputs.push_back(sinks);
  Composite region;
  region.name = "attention_with_sinks";
  region.key = plan_key(plan);
  region.body = [plan](In in) { return sinks_body(plan, in); };
  region.vjp = [plan](In in, In out, In g) { return sinks_vjp(plan, in, out, g); };
  return composite(std::make_shared<Composite>(std::move(region)), std::move(inputs))[0];
}

}  // namespace weft::graph
