#pragma once
// The named regions. Each has a body in primitives, and a derivative of its own where differentiating the body would
// need more kernels.
#include "graph/node.h"

namespace weft::graph {

/// Returns exp(x - max) / Σ exp(x - max) along the axes (counted from 0).
Value softmax(const Value& x, std::vector<int64_t> axes);
Value logsumexp(const Value& x, std::vector<int64_t> axes, bool keep_dims);
/// Returns (x - mean) · rsqrt(var + eps) · weight + bias along the last axis; weight and bias may be empty. Statistics
/// are at least float32.
Value layer_norm(const Value& x, const Value& weight, const Value& bias, double eps);
/// Returns (x - mean) · rsqrt(var + eps) · weight + bias with statistics over `axes`, and mean and (biased) variance.
/// weight and bias may be empty, else they have x's shape with the axes at 1; so have mean and variance, in float32 at
/// least.
Values standardise(const Value& x, std::vector<int64_t> axes, const Value& weight, const Value& bias, double eps);
/// Return 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))), and the exact 0.5 x (1 + erf(x/√2)).
Value gelu_tanh(const Value& x);
Value gelu(const Value& x);
/// Returns -log softmax(logits)[target] for logits [..., classes] and integer targets [...], in the targets' shape.
Value cross_entropy(const Value& logits, const Value& targets);
/// Dropout of attention's weights. `key`: two uint32 words, or such a pair for each index along the first axes of q.
/// kernel/describe/dropout.h says which weights are kept.
struct AttentionDropout {
  double rate = 0;  // 0: none
  Value key = {};
};
/// Returns softmax(scale · q kᵀ + mask) v for q [..., tq, d], k and v [..., tk, d]. `causal`: row i sees columns up to
/// i + tk - tq. `mask` (may be empty) is bool (false hides) or additive, broadcast to [..., tq, tk]; or one integer,
/// the number of leading keys that are visible. `sinks` (may be empty), broadcast from the last leading axes, are
/// additional logits of the rows that have no value, which `dropout` cannot be given with.
Value attention(const Value& q, const Value& k, const Value& v, double scale, bool causal, const Value& mask,
                const Value& sinks = {}, const AttentionDropout& dropout = {});
/// Returns integers as they are. Reverse mode refuses derivatives by them: they choose matrices of a product.
Value matrix_index(const Value& integers);
constexpr const char* matrix_index_name = "matrix_index";
/// Returns x [..., k] · w[n, k]ᵀ with both operands rounded to float8_e4m3; the derivatives round the cotangent to
/// float8_e5m2. Each array has one scale, from its largest magnitude; sums are in float32; the result has x's dtype.
Value float8_linear(const Value& x, const Value& w);

}  // namespace weft::graph
