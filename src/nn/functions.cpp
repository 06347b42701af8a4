// Activations.
#include "weft/nn/functions.h"

#include <string>

#include "base/error.h"
#include "weft/fast.h"
#include "weft/ops.h"

namespace weft::nn {

namespace {

array as(double value, const array& like) { return array(value, like.dtype()); }
array zero(const array& x) { return as(0, x); }

// exp(x) - 1 where x < 0, and 0 elsewhere: nothing overflows, in the derivative either.
array negative_exp(const array& x) { return exp(minimum(x, zero(x))) - as(1, x); }

}  // namespace

array celu(const array& x, float alpha) { return maximum(x, zero(x)) + as(alpha, x) * negative_exp(x / as(alpha, x)); }
array elu(const array& x, float alpha) { return where(x > zero(x), x, as(alpha, x) * negative_exp(x)); }
array gelu(const array& x) { return fast::gelu(x); }
array gelu_approx(const array& x) { return fast::gelu_tanh(x); }
array gelu_fast_approx(const array& x) { return x * weft::sigmoid(as(1.702, x) * x); }

array glu(const array& x, int axis) {
  const auto halves = split(x, 2, axis);
  return halves[0] * weft::sigmoid(halves[1]);
}

array hard_shrink(const array& x, float lambda) { return where(abs(x) > as(lambda, x), x, zero(x)); }
array hard_tanh(const array& x, float low, float high) { return minimum(maximum(x, as(low, x)), as(high, x)); }
array hardswish(const array& x) { return x * hard_tanh(x + as(3, x), 0, 6) / as(6, x); }
array leaky_relu(const array& x, float negative_slope) { return where(x > zero(x), x, as(negative_slope, x) * x); }
array log_sigmoid(const array& x) { return -softplus(-x); }
array log_softmax(const array& x, int axis) { return x - logsumexp(x, axis, true); }
array mish(const array& x) { return x * weft::tanh(softplus(x)); }
array prelu(const array& x, const array& alpha) { return maximum(x, zero(x)) + astype(alpha, x.dtype()) * minimum(x, zero(x)); }
array relu(const array& x) { return maximum(x, zero(x)); }
array relu2(const array& x) { return square(relu(x)); }
array relu6(const array& x) { return minimum(relu(x), as(6, x)); }
// Klambauer et al. 2017: with these numbers activations keep mean 0 and variance 1.
array selu(const array& x) { return as(1.0507009873554805, x) * elu(x, 1.6732632423543772f); }
array sigmoid(const array& x) { return weft::sigmoid(x); }
array silu(const array& x) { return x * weft::sigmoid(x); }
array softmax(const array& x, int axis) { return weft::softmax(x, axis, true); }
array softmin(const array& x, int axis) { return weft::softmax(-x, axis, true); }
array softplus(const array& x) { return logaddexp(x, zero(x)); }
array softshrink(const array& x, float lambda) { return x - hard_tanh(x, -lambda, lambda); }
array softsign(const array& x) { return x / (as(1, x) + abs(x)); }
array step(const array& x, float threshold) { return where(x > as(threshold, x), as(1, x), zero(x)); }
array tanh(const array& x) { return weft::tanh(x); }

}  // namespace weft::nn
