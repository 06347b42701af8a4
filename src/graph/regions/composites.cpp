// Named regions whose derivatives would otherwise need many kernels: softmax, logsumexp, layer_norm, gelu,
// cross_entropy. 16-bit floats are computed in float32 and rounded at the end.
#include "graph/regions/composites.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/regions/regions.h"
#include "graph/rows.h"

namespace weft::graph {

using In = std::span<const Value>;
using Axes = std::vector<int64_t>;

Dtype compute_dtype(Dtype t) { return is_low_float(t) ? float32 : t; }
Value widened(const Value& v) { return cast(v, compute_dtype(v.dtype())); }

Value broadcast_like(const Value& v, const Value& like) { return broadcast(v, like.shape()); }

namespace {

/// Returns whether a number is infinite; for a complex one, whether its real part is.
Value is_end(const Value& m) {
  const Value size = unary(Op::abs, is_complex(m.dtype()) ? unary(Op::real, m) : m);
  return binary(Op::eq, size, full_like(size, INFINITY));
}

}  // namespace

Value finite_or_zero(const Value& m) { return select(is_end(m), zeros_like(m), m); }

Value stable_logsumexp(const Value& x, const Axes& axes) {
  const Value top = max(x, axes, true), m = stop_gradient(finite_or_zero(top));
  const Value y = log(sum(exp(x - broadcast_like(m, x)), axes, true)) + m;
  return is_complex(x.dtype()) ? select(is_end(top), top, y) : y;  // an infinite real part keeps its angle
}

namespace {

void require_float(const char* op, const Value& v) {
  if (!is_float(v.dtype()))
    throw_invalid(op, "expected a floating array, got " + to_string(v.type()) + ": cast it first");
}
void require_inexact(const char* op, const Value& v) {
  if (!is_inexact(v.dtype())) require_float(op, v);
}

/// Returns the factor of a cotangent (graph/complex/complex.h).
Value conjugated(const Value& v) { return is_complex(v.dtype()) ? conjugate(v) : v; }

Value region(std::string name, std::string key, std::function<Values(In)> body, std::function<Values(In, In, In)> vjp,
             Values inputs) {
  return composite(
      std::make_shared<Composite>(Composite{std::move(name), std::move(key), std::move(body), std::move(vjp), {}, {}}),
      std::move(inputs))[0];
}

Axes checked_axes(const char* op, Axes axes, const Value& v) {
  for (int64_t& axis : axes) axis = normalize_axis(op, static_cast<int>(axis), v.type().rank());
  std::sort(axes.begin(), axes.end());
  return axes;
}

}  // namespace

// ---- softmax and logsumexp ----

/// y = exp(x - max) / Σ;  dx = y (g - Σ g y). A row of -inf alone gives NaN, as in MLX.
Value matrix_index(const Value& integers) {
  const auto same = [](In in) {
    Attrs attrs;
    attrs.shape = in[0].shape();
    return Values{make(Op::reshape, {in[0]}, std::move(attrs))};
  };
  return region(matrix_index_name, "", same, nullptr, {integers});
}

Value softmax(const Value& x, Axes axes) {
  require_inexact("softmax", x);
  axes = checked_axes("softmax", std::move(axes), x);
  const auto body = [axes](In in) -> Values {
    const Value v = widened(in[0]);
    const Value e = exp(v - broadcast_like(stop_gradient(max(v, axes, true)), v));
    return {cast(e * broadcast_like(unary(Op::recip, sum(e, axes, true)), v), in[0].dtype())};  // one division a row
  };
  const auto vjp = [axes](In in, In out, In g) -> Values {
    const Value y = conjugated(widened(out[0])), gy = widened(g[0]);
    return {cast(y * (gy - broadcast_like(sum(gy * y, axes, true), y)), in[0].dtype())};
  };
  return region("softmax", "axes" + list(axes), body, vjp, {x});
}

/// y = log Σ exp x;  dx = g exp(x - y). All of -inf gives -inf, a +inf gives +inf.
Value logsumexp(const Value& x, Axes axes, bool keep_dims) {
  require_inexact("logsumexp", x);
  axes = checked_axes("logsumexp", std::move(axes), x);
  const auto body = [axes, keep_dims](In in) -> Values {
    const Value y = cast(stable_logsumexp(widened(in[0]), axes), in[0].dtype());
    return {keep_dims ? y : squeeze(y, axes)};
  };
  const auto vjp = [axes, keep_dims](In in, In out, In g) -> Values {
    const Value v = widened(in[0]);
    const auto kept = [&](const Value& a) { return widened(keep_dims ? a : expand_dims(a, axes)); };
    const Value p = conjugated(exp(v - broadcast_like(finite_or_zero(kept(out[0])), v)));
    return {cast(broadcast_like(kept(g[0]), v) * p, in[0].dtype())};
  };
  return region("logsumexp", fmt::format("axes{} keep({})", list(axes), keep_dims), body, vjp, {x});
}

// ---- layer_norm ----

namespace {

/// (x - mean) · rstd along the last axis, and rstd.
struct Normalised {
  Value xhat, rstd;
};

Normalised normalise(const Value& x, double eps) {
  const Axes last{x.type().rank() - 1};
  const Value centred = x - broadcast_like(mean(x, last, true), x);
  const Value rstd = rsqrt(mean(square(centred), last, true) + eps);
  return {centred * broadcast_like(rstd, x), rstd};
}

Value row_mean(const Value& v) { return broadcast_like(mean(v, {v.type().rank() - 1}, true), v); }

/// Returns v summed over all axes but the last.
Value over_rows(const Value& v, Dtype dtype) { return cast(sum_to(v, {v.shape().back()}), dtype); }

}  // namespace

/// With gw = g · weight: dx = rstd (gw - mean gw - xhat mean(gw xhat)), dweight = Σ g xhat, dbias = Σ g. Mean and rstd
/// are computed anew from x.
Value layer_norm(const Value& x, const Value& weight, const Value& bias, double eps) {
  require_float("layer_norm", x);
  if (x.type().rank() == 0) throw_invalid("layer_norm", "needs an axis to normalise along, got a scalar");
  for (const Value& v : {weight, bias})
    if (v && (v.shape() != Shape{x.shape().back()} || !is_float(v.dtype())))
      throw_invalid("layer_norm", fmt::format("weight and bias must be floating, of the last axis of {}, got {}",
                                              to_string(x.type()), to_string(v.type())));
  const bool has_weight = static_cast<bool>(weight), has_bias = static_cast<bool>(bias);

  const auto body = [=](In in) -> Values {
    const Value v = widened(in[0]);
    Value y = normalise(v, eps).xhat;
    if (has_weight) y = y * broadcast_like(cast(in[1], v.dtype()), v);
    if (has_bias) y = y + broadcast_like(cast(in.back(), v.dtype()), v);
    return {cast(y, in[0].dtype())};
  };
  const auto vjp = [=](In in, In, In gs) -> Values {
    const Value v = widened(in[0]), g = widened(gs[0]);
    const auto [xhat, rstd] = normalise(v, eps);
    const Value gw = has_weight ? g * broadcast_like(cast(in[1], v.dtype()), v) : g;
    Values out{cast(broadcast_like(rstd, v) * (gw - row_mean(gw) - xhat * row_mean(gw * xhat)), in[0].dtype())};
    if (has_weight) out.push_back(over_rows(g * xhat, in[1].dtype()));
    if (has_bias) out.push_back(over_rows(g, in.back().dtype()));
    return out;
  };
  Values inputs{x};
  if (has_weight) inputs.push_back(weight);
  if (has_bias) inputs.push_back(bias);
  return region("layer_norm", fmt::format("eps({:a}) weight({}) bias({})", eps, has_weight, has_bias), body, vjp,
                std::move(inputs));
}

// ---- gelu ----

namespace {

/// σ(w), w = 2 √(2/π) (x + 0.044715 x³).
constexpr double gelu_cubic = 0.044715;
Value gelu_gate(const Value& v) {
  static const double c = 2 * std::sqrt(2 / std::numbers::pi);
  return unary(Op::sigmoid, v * (square(v) * (c * gelu_cubic) + c));
}

/// The derivative of gelu_tanh, a region of its own so that libraries that multiply with it know it by name.
Value gelu_tanh_slope(const Value& x) {
  const auto body = [](In in) -> Values {
    static const double c = 2 * std::sqrt(2 / std::numbers::pi);
    const Value &v = in[0], s = gelu_gate(v);
    return {s + v * s * (1.0 - s) * (square(v) * (c * 3 * gelu_cubic) + c)};
  };
  return region("gelu_tanh_slope", "", body, {}, {x});
}

}  // namespace

/// (1 + tanh u) / 2 = σ(2u): with w = 2 √(2/π) (x + 0.044715 x³) and s = σ(w), y = x s and y' = s + x s (1 - s) w'.
/// This form does not cancel for large negative x.
Value gelu_tanh(const Value& x) {
  require_float("gelu", x);
  const auto body = [](In in) -> Values {
    const Value v = widened(in[0]);
    return {cast(v * gelu_gate(v), in[0].dtype())};
  };
  const auto vjp = [](In in, In, In g) -> Values {
    return {cast(widened(g[0]) * gelu_tanh_slope(widened(in[0])), in[0].dtype())};
  };
  return region("gelu_tanh", "", body, vjp, {x});
}

/// y = x Φ(x), Φ(x) = (1 + erf(x/√2)) / 2;  y' = Φ(x) + x φ(x).
Value gelu(const Value& x) {
  require_float("gelu", x);
  const auto cdf = [](const Value& v) { return (unary(Op::erf, v * (1 / std::numbers::sqrt2)) + 1.0) * 0.5; };
  const auto body = [cdf](In in) -> Values {
    const Value v = widened(in[0]);
    return {cast(v * cdf(v), in[0].dtype())};
  };
  const auto vjp = [cdf](In in, In, In g) -> Values {
    const Value v = widened(in[0]);
    const Value density = exp(square(v) * -0.5) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    return {cast(widened(g[0]) * (cdf(v) + v * density), in[0].dtype())};
  };
  return region("gelu", "", body, vjp, {x});
}

// ---- cross_entropy ----

namespace {

/// Returns where the class axis of `like` equals the target.
Value hot(const Value& targets, const Value& like) {
  const int last = like.type().rank() - 1;
  const Value wide = targets.dtype().size() < 4 ? cast(targets, int32) : targets;  // wide enough for every class
  return binary(Op::eq, iota(like.shape(), last, wide.dtype()), broadcast_like(expand_dims(wide, {last}), like));
}

}  // namespace

/// loss = lse - logits[target], lse = logsumexp(logits): the region's second output, kept for the derivative, where
/// dlogits = (g + g_lse) exp(logits - lse) - g onehot. A target outside the classes picks nothing: its loss is lse.
Value cross_entropy(const Value& logits, const Value& targets) {
  require_float("cross_entropy", logits);
  const Shape& shape = logits.shape();
  if (shape.empty() || Shape(shape.begin(), shape.end() - 1) != targets.shape() || !is_integer(targets.dtype()))
    throw_invalid("cross_entropy", fmt::format("needs logits [..., classes] and integer targets [...], got {} and {}",
                                               to_string(logits.type()), to_string(targets.type())));
  const int64_t last = logits.type().rank() - 1;

  const auto body = [last](In in) -> Values {
    const Value v = widened(in[0]);
    const Value lse = squeeze(stable_logsumexp(v, {last}), {last});
    const Value picked = sum(select(hot(in[1], v), v, zeros_like(v)), {last});
    return {cast(lse - picked, in[0].dtype()), lse};
  };
  const auto vjp = [last](In in, In out, In g) -> Values {
    const Value v = widened(in[0]);
    const auto over_classes = [&](const Value& a) { return broadcast_like(expand_dims(widened(a), {last}), v); };
    const Value p = exp(v - over_classes(finite_or_zero(out[1])));
    Value gradient;
    if (g[0]) {
      const Value g0 = over_classes(g[0]);
      gradient = g0 * (p - cast(hot(in[1], v), v.dtype()));
    }
    if (g[1]) {
      const Value term = over_classes(g[1]) * p;
      gradient = gradient ? gradient + term : term;
    }
    return {cast(gradient, in[0].dtype()), Value{}};
  };
  return region("cross_entropy", "", body, vjp, {logits, targets});
}

}  // namespace weft::graph
