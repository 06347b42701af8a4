// weft/fast.h: checks and promotion, then one composite.
#include "weft/fast.h"

#include <algorithm>

#include "array/op_support.h"
#include "base/error.h"
#include "compiler/program.h"
#include "compiler/region/attention_call.h"
#include "graph/regions/composites.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::fast {
namespace {

using detail::describe;

void require_float_array(const char* op, const array& a) {
  if (!is_float(a.dtype())) throw_invalid(op, "a floating type is needed, got " + describe(a));
}

// Returns a weight or bias of a norm, checked to be as long as the last axis; nothing where it is not given.
graph::Value along_last(const char* op, const char* what, const std::optional<array>& v, const array& x, Dtype dtype) {
  if (!v) return {};
  if (v->ndim() != 1 || v->shape()[0] != x.shape().back())
    throw_invalid(op, std::string(what) + " must have one number for each element of the last axis, got " +
                          describe(*v) + " for " + describe(x));
  return detail::to_dtype(v->value(), dtype);
}

void require_heads(const char* op, const array& q, const array& k, const array& v) {
  for (const array* a : {&q, &k, &v})
    if (a->ndim() != 4)
      throw_invalid(op,
                    "queries, keys and values have four dimensions (batch, heads, length, width), got " + describe(*a));
  const bool fits = q.shape()[0] == k.shape()[0] && k.shape()[0] == v.shape()[0] && k.shape()[1] == v.shape()[1] &&
                    k.shape()[2] == v.shape()[2] && q.shape()[3] == k.shape()[3];
  if (!fits)
    throw_invalid(op,
                  "sizes do not match: queries " + describe(q) + ", keys " + describe(k) + ", values " + describe(v));
  const int64_t heads = q.shape()[1], groups = k.shape()[1];
  if (groups == 0 || heads % groups != 0)
    throw_invalid(op,
                  std::to_string(heads) + " query heads do not share " + std::to_string(groups) + " key heads evenly");
}

// Repeats each key head for its query heads: (B, G, T, D) becomes (B, G, H / G, T, D).
graph::Value shared_heads(const graph::Value& v, int64_t sharers) {
  const graph::Value column = graph::expand_dims(v, {2});
  Shape shape = column.shape();
  shape[2] = sharers;
  return graph::broadcast(column, shape);
}

/// Computes attention in which neighbouring query heads may share a key head. `hidden` is a mask of the scores' shape,
/// the number of keys, or nothing; `sinks` a logit for each query head, or nothing.
graph::Value grouped_attention(graph::Value q, graph::Value k, graph::Value v, float scale, bool causal,
                               graph::Value hidden, graph::Value sinks = {}, bool force_fused = false,
                               const graph::AttentionDropout& dropout = {}) {
  const int64_t heads = q.shape()[1], groups = k.shape()[1];
  const Shape result{q.shape()[0], q.shape()[1], q.shape()[2], v.shape()[3]};
  if (heads != groups) {
    const auto grouped = [&](const graph::Value& x) {
      return graph::reshape(x, {x.shape()[0], groups, heads / groups, x.shape()[2], x.shape()[3]});
    };
    q = grouped(q);
    if (hidden && hidden.type().rank() > 0) hidden = grouped(hidden);
    if (sinks) sinks = graph::reshape(sinks, {groups, heads / groups});
    k = shared_heads(k, heads / groups);
    v = shared_heads(v, heads / groups);
  }
  if (force_fused &&
      !compiler::keeps_attention(*graph::attention(q, k, v, static_cast<double>(scale), causal, hidden).node,
                                 compiler::default_target(), compiler::default_policy()))
    throw_invalid("scaled_dot_product_attention",
                  "force_fused, but no fused kernel of this device takes queries " + graph::to_string(q.type()) +
                      " with keys " + graph::to_string(k.type()) + " and values " + graph::to_string(v.type()));
  return graph::reshape(graph::attention(q, k, v, static_cast<double>(scale), causal, hidden, sinks, dropout), result);
}

}  // namespace

array layer_norm(const array& x, const std::optional<array>& weight, const std::optional<array>& bias, float eps,
                 StreamOrDevice s) {
  const detail::OnStream on_stream("layer_norm", s);
  require_float_array("layer_norm", x);
  if (x.ndim() == 0) throw_invalid("layer_norm", "an array with at least one dimension is needed, got " + describe(x));
  Dtype dtype = x.dtype();
  for (const std::optional<array>& v : {weight, bias})
    if (v) dtype = promote_types(dtype, v->dtype());
  return array(graph::layer_norm(detail::to_dtype(x.value(), dtype),
                                 along_last("layer_norm", "the weight", weight, x, dtype),
                                 along_last("layer_norm", "the bias", bias, x, dtype), static_cast<double>(eps)));
}

array rms_norm(const array& x, const std::optional<array>& weight, float eps, StreamOrDevice s) {
  const detail::OnStream on_stream("rms_norm", s);
  if (x.ndim() == 0) throw_invalid("rms_norm", "an array with at least one dimension is needed, got " + describe(x));
  const Dtype dtype = weight ? promote_types(x.dtype(), weight->dtype()) : x.dtype();
  if (!is_float(dtype))
    throw_invalid("rms_norm", "a floating type is needed, got " + describe(x) +
                                  (weight ? " and the weight " + describe(*weight) : ""));
  const graph::Value scales = along_last("rms_norm", "the weight", weight, x, dtype);
  const array wide = astype(x, dtype == float64 ? float64 : float32, s);
  const array unit = astype(wide * rsqrt(mean(square(wide, s), -1, true, s) + array(eps, wide.dtype()), s), dtype, s);
  return scales ? unit * array(scales) : unit;
}

std::vector<array> standardize(const array& x, const std::vector<int>& axes, const std::optional<array>& weight,
                               const std::optional<array>& bias, float eps, StreamOrDevice s) {
  const detail::OnStream on_stream("standardize", s);
  require_float_array("standardize", x);
  Shape kept = x.shape();
  std::vector<int64_t> along;
  for (const int axis : axes) {
    along.push_back(normalize_axis("standardize", axis, static_cast<int>(x.ndim())));
    kept[static_cast<size_t>(along.back())] = 1;
  }
  const auto given = [&](const std::optional<array>& a) {
    return a ? broadcast_to(*a, kept, s).value() : graph::Value{};
  };
  std::vector<array> results;
  for (const graph::Value& v :
       graph::standardise(x.value(), along, given(weight), given(bias), static_cast<double>(eps)))
    results.emplace_back(v);
  return results;
}

namespace {

/// What attention is called with, of one dtype; `hidden` is the mask, of the scores' shape, or nothing.
struct Operands {
  graph::Value q, k, v, hidden;
};

Operands operands(const char* op, const array& queries, const array& keys, const array& values,
                  const std::string& mask_mode, const std::optional<array>& mask, const StreamOrDevice& s) {
  if (mask_mode != "" && mask_mode != "causal" && mask_mode != "array")
    throw_invalid(op, "mask_mode is \"\", \"causal\" or \"array\", got \"" + mask_mode + "\"");
  if (mask_mode == "causal" && mask) throw_invalid(op, "a causal mask and a mask array cannot be given together");
  if (mask_mode == "array" && !mask) throw_invalid(op, "mask_mode \"array\" needs a mask");
  require_heads(op, queries, keys, values);
  const Dtype dtype = promote_types(promote_types(queries.dtype(), keys.dtype()), values.dtype());
  if (!is_float(dtype)) throw_invalid(op, "floating types are needed, got " + describe(queries));
  Operands out{detail::to_dtype(queries.value(), dtype),
               detail::to_dtype(keys.value(), dtype),
               detail::to_dtype(values.value(), dtype),
               {}};
  if (!mask) return out;
  if (mask->dtype() != bool_ && promote_types(mask->dtype(), dtype) != dtype)
    throw_invalid(op,
                  "the mask must be bool or convert to " + std::string(dtype_name(dtype)) + ", got " + describe(*mask));
  const array whole = broadcast_to(*mask, {out.q.shape()[0], out.q.shape()[1], out.q.shape()[2], out.k.shape()[2]}, s);
  out.hidden = mask->dtype() == bool_ ? whole.value() : detail::to_dtype(whole.value(), dtype);
  return out;
}

}  // namespace

array scaled_dot_product_attention(const array& queries, const array& keys, const array& values, float scale,
                                   const std::string& mask_mode, const std::optional<array>& mask,
                                   const std::optional<array>& sinks, bool force_fused, StreamOrDevice s) {
  const char* op = "scaled_dot_product_attention";
  const detail::OnStream on_stream(op, s);
  const auto [q, k, v, hidden] = operands(op, queries, keys, values, mask_mode, mask, s);
  graph::Value logits;
  if (sinks) {
    const Dtype dtype = q.dtype();
    if (promote_types(sinks->dtype(), dtype) != dtype)
      throw_invalid(op, "sinks must convert to " + std::string(dtype_name(dtype)) + ", got " + describe(*sinks));
    if (sinks->shape() != Shape{queries.shape()[1]})
      throw_invalid(op, "sinks are one number for each head of the queries, got " + describe(*sinks) + " for " +
                            describe(queries));
    logits = detail::to_dtype(sinks->value(), dtype);
  }
  return array(grouped_attention(q, k, v, scale, mask_mode == "causal", hidden, logits, force_fused));
}

array dropout_attention(const array& queries, const array& keys, const array& values, float scale, float rate,
                        const std::string& mask_mode, const std::optional<array>& mask, const std::optional<array>& key,
                        StreamOrDevice s) {
  const char* op = "dropout_attention";
  const detail::OnStream on_stream(op, s);
  if (!(rate >= 0 && rate < 1)) throw_invalid(op, "the rate is at least 0 and below 1, got " + std::to_string(rate));
  if (key && (key->dtype() != uint32 || key->shape() != Shape{2}))
    throw_invalid(op, "a key is two words of uint32, as random::key gives, got " + describe(*key));
  const auto [q, k, v, hidden] = operands(op, queries, keys, values, mask_mode, mask, s);
  graph::AttentionDropout dropout;
  if (rate > 0) dropout = {static_cast<double>(rate), (key ? *key : random::KeySequence::default_().next()).value()};
  return array(grouped_attention(q, k, v, scale, mask_mode == "causal", hidden, {}, false, dropout));
}

array cached_attention(const array& queries, const array& keys, const array& values, float scale, const array& length,
                       StreamOrDevice s) {
  const char* op = "cached_attention";
  const detail::OnStream on_stream(op, s);
  require_heads(op, queries, keys, values);
  if (queries.shape()[2] != Dim(1)) throw_invalid(op, "the queries are of one token, got " + describe(queries));
  detail::require_integer(op, "the length", length);
  if (!std::all_of(length.shape().begin(), length.shape().end(), [](const Dim& d) { return d == 1; }))
    throw_invalid(op, "the length is one integer, got " + describe(length));
  const Dtype dtype = promote_types(promote_types(queries.dtype(), keys.dtype()), values.dtype());
  if (!is_float(dtype)) throw_invalid(op, "floating types are needed, got " + describe(queries));
  return array(grouped_attention(detail::to_dtype(queries.value(), dtype), detail::to_dtype(keys.value(), dtype),
                                 detail::to_dtype(values.value(), dtype), scale, false,
                                 graph::reshape(detail::to_dtype(length.value(), int32), {})));
}

// Losses of 16-bit logits are computed and returned in float32.
array cross_entropy(const array& logits, const array& targets, StreamOrDevice s) {
  const detail::OnStream on_stream("cross_entropy", s);
  require_float_array("cross_entropy", logits);
  detail::require_integer("cross_entropy", "targets", targets);
  if (logits.ndim() != targets.ndim() + 1 ||
      !std::equal(targets.shape().begin(), targets.shape().end(), logits.shape().begin()))
    throw_invalid("cross_entropy",
                  "logits (..., classes) need targets (...), got " + describe(logits) + " and " + describe(targets));
  return array(
      graph::cross_entropy(detail::to_dtype(logits.value(), detail::accumulator(logits.dtype())), targets.value()));
}

array float8_linear(const array& x, const array& weight, StreamOrDevice s) {
  const detail::OnStream on_stream("float8_linear", s);
  return array(graph::float8_linear(x.value(), weight.value()));
}

array gelu(const array& x, StreamOrDevice s) {
  const detail::OnStream on_stream("gelu", s);
  return array(graph::gelu(detail::to_dtype(x.value(), detail::floating_of(x.dtype()))));
}

array gelu_tanh(const array& x, StreamOrDevice s) {
  const detail::OnStream on_stream("gelu_tanh", s);
  return array(graph::gelu_tanh(detail::to_dtype(x.value(), detail::floating_of(x.dtype()))));
}

}  // namespace weft::fast
