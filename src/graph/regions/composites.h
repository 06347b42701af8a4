#pragma once
// The named regions: each with its body in primitives, and a derivative of its own where differentiation through the
// body would spread over more kernels.
#include "graph/node.h"

namespace weft::graph {

/// exp(x - max) / Σ exp(x - max) along the axes (counted from 0).
Value softmax(const Value& x, std::vector<int64_t> axes);
Value logsumexp(const Value& x, std::vector<int64_t> axes, bool keep_dims);
/// (x - mean) · rsqrt(var + eps) · weight + bias along the last axis; weight and bias may be empty. Statistics in
/// float32 at least.
Value layer_norm(const Value& x, const Value& weight, const Value& bias, double eps);
/// (x - mean) · rsqrt(var + eps) · weight + bias with the statistics over `axes`; weight and bias may be empty, else
/// they have x's shape with the axes at 1. Three results: that, and mean and (biased) variance in this shape, in
/// float32 at least.
Values standardise(const Value& x, std::vector<int64_t> axes, const Value& weight, const Value& bias, double eps);
/// 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))), and the exact 0.5 x (1 + erf(x/√2)).
Value gelu_tanh(const Value& x);
Value gelu(const Value& x);
/// -log softmax(logits)[target] for logits [..., classes] and integer targets [...]; the result has the targets' shape.
Value cross_entropy(const Value& logits, const Value& targets);
/// softmax(scale · q kᵀ + mask) v for q [..., tq, d], k and v [..., tk, d]. `causal` lets row i see columns up to i +
/// tk - tq. `mask` (may be empty) is bool (false hides) or additive, broadcast to [..., tq, tk]; or one integer: so
/// many of the first keys are seen. `sinks` (may be empty), of the leading axes from the last on, are further logits of
/// their rows, which belong to no value.
Value attention(const Value& q, const Value& k, const Value& v, double scale, bool causal, const Value& mask,
                const Value& sinks = {});
/// x [..., k] · w[n, k]ᵀ with both operands rounded to float8_e4m3, and in the derivatives the cotangent to
/// float8_e5m2. Each array has one scale, from its own largest magnitude; sums are float32's; the result has x's dtype.
Value float8_linear(const Value& x, const Value& w);

}  // namespace weft::graph
