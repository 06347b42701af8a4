// Normalises any axes to mean 0 and variance 1, in one region: the core of batch, group and instance norms.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/regions/composites.h"
#include "graph/regions/regions.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

using In = std::span<const Value>;
using Axes = std::vector<int64_t>;

/// Returns Σ over the axes, kept at extent 1. Over a batch it sums each example first: this divides the work, and
/// shorter sums lose less to rounding.
Value total(const Value& v, const Axes& axes) {
  if (axes.size() < 2 || axes[0] != 0) return sum(v, axes, true);
  return sum(sum(v, Axes(axes.begin() + 1, axes.end()), true), {0}, true);
}

/// Mean and variance, axes kept at extent 1, in one pass: moments of x - x₀, where x₀ is the first element. It is near
/// enough to the mean that the square of the shifted mean does not swamp the variance.
struct Moments {
  Value mean, var;
};

Moments moments(const Value& x, const Axes& axes, double n) {
  Shape first = x.shape();
  for (const int64_t axis : axes) first[static_cast<size_t>(axis)] = 1;
  const Value shift = stop_gradient(slice(x, std::vector<int64_t>(first.size(), 0), first));
  const Value d = x - broadcast_like(shift, x);
  const Value m = total(d, axes) * (1 / n);
  return {m + shift, binary(Op::max, total(square(d), axes) * (1 / n) - square(m), zeros_like(m))};
}

int64_t elements(const Shape& shape, const Axes& axes) {
  int64_t n = 1;
  for (const int64_t axis : axes) n *= shape[static_cast<size_t>(axis)].bound();
  return n;
}

}  // namespace

/// With xhat = (x - mean) rstd: dx = w rstd (g - mean g - xhat mean(g xhat)), dw = Σ g xhat, db = Σ g; and dmean / n, 2
/// (x - mean) dvar / n from the moments.
Values standardise(const Value& x, std::vector<int64_t> axes, const Value& weight, const Value& bias, double eps) {
  if (!is_float(x.dtype()))
    throw_invalid("standardise", "expected a floating array, got " + to_string(x.type()) + ": cast it first");
  for (int64_t& axis : axes) axis = normalize_axis("standardise", static_cast<int>(axis), x.type().rank());
  std::sort(axes.begin(), axes.end());
  Shape kept = x.shape();
  for (const int64_t axis : axes) {
    if (!kept[static_cast<size_t>(axis)].is_static())
      throw_invalid("standardise",
                    fmt::format("axis {} of {} is symbolic: its extent must be fixed", axis, to_string(x.type())));
    kept[static_cast<size_t>(axis)] = 1;
  }
  const double n = static_cast<double>(elements(x.shape(), axes));
  if (n == 0) throw_invalid("standardise", "there is nothing to take the mean of in " + to_string(x.type()));
  for (const Value& v : {weight, bias})
    if (v && v.shape() != kept)
      throw_invalid("standardise",
                    fmt::format("weight and bias must have shape {}, got {}", to_string(kept), to_string(v.type())));
  const bool has_weight = static_cast<bool>(weight), has_bias = static_cast<bool>(bias);

  const auto body = [=](In in) -> Values {
    const Value v = widened(in[0]);
    const auto [m, var] = moments(v, axes, n);
    const Value scale = rsqrt(var + eps);
    Value y = (v - broadcast_like(m, v)) * broadcast_like(scale, v);
    if (has_weight) y = y * broadcast_like(cast(in[1], v.dtype()), v);
    if (has_bias) y = y + broadcast_like(cast(in.back(), v.dtype()), v);
    return {cast(y, in[0].dtype()), m, var};
  };
  const auto vjp = [=](In in, In out, In gs) -> Values {
    const Value v = widened(in[0]);
    const Value centred = v - broadcast_like(out[1], v), rstd = rsqrt(out[2] + eps);
    Values result(in.size());
    Value dx;
    const auto add = [&](const Value& term) { dx = dx ? dx + term : term; };
    if (gs[0]) {
      const Value g = widened(gs[0]), xhat = centred * broadcast_like(rstd, v);
      const Value all = total(g, axes), along = total(g * xhat, axes);
      const Value scale = has_weight ? rstd * cast(in[1], v.dtype()) : rstd;
      add(broadcast_like(scale, v) * (g - (broadcast_like(all, v) + xhat * broadcast_like(along, v)) * (1 / n)));
      if (has_weight) result[1] = cast(along, in[1].dtype());
      if (has_bias) result.back() = cast(all, in.back().dtype());
    }
    if (gs[1]) add(broadcast_like(gs[1] * (1 / n), v));
    if (gs[2]) add(centred * broadcast_like(gs[2] * (2 / n), v));
    result[0] = cast(dx, in[0].dtype());
    return result;
  };
  Values inputs{x};
  if (has_weight) inputs.push_back(weight);
  if (has_bias) inputs.push_back(bias);
  return composite(
      std::make_shared<Composite>(Composite{
          "standardise", fmt::format("axes{} eps({:a}) weight({}) bias({})", list(axes), eps, has_weight, has_bias),
          body, vjp}),
      std::move(inputs));
}

}  // namespace weft::graph
