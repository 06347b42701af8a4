// Activations.
#include "weft/nn/functions.h"

#include <string>

#include "base/error.h"
#include "weft/fast.h"
#include "weft/ops.h"

namespace weft::nn {

namespace {

// Returns a constant in the dtype of a floating x, or in float32, which integers promote to.
array float_number(double value, const array& x) {
  return array(value, issubdtype(x.dtype(), inexact) ? x.dtype() : float32);
}
array zero(const array& x) { return array(0, x.dtype()); }
array floating_point(const array& x) { return issubdtype(x.dtype(), inexact) ? x : astype(x, float32); }

}  // namespace

// The order of the operands of maximum and minimum decides which of them gets the gradient where they are equal; it is
// MLX's.
array celu(const array& x, float alpha) {
  return maximum(x, zero(x)) +
         float_number(alpha, x) * (exp(minimum(x, zero(x)) / float_number(alpha, x)) - float_number(1, x));
}
// The minimum keeps exp from overflowing where it is not selected, which would make the derivative 0 · ∞.
array elu(const array& x, float alpha) {
  return where(x > zero(x), x, float_number(alpha, x) * (exp(minimum(zero(x), x)) - float_number(1, x)));
}
array gelu(const array& x) { return fast::gelu(floating_point(x)); }
array gelu_approx(const array& x) { return fast::gelu_tanh(floating_point(x)); }
array gelu_fast_approx(const array& x) { return x * weft::sigmoid(float_number(1.702, x) * x); }

array glu(const array& x, int axis) {
  const auto halves = split(x, 2, axis);
  return halves[0] * weft::sigmoid(halves[1]);
}

array hard_shrink(const array& x, float lambda) { return where(abs(x) > float_number(lambda, x), x, zero(x)); }
array hard_tanh(const array& x, float low, float high) {
  return minimum(maximum(x, float_number(low, x)), float_number(high, x));
}
array hardswish(const array& x) { return x * hard_tanh(x + float_number(3, x), 0, 6) / float_number(6, x); }
array leaky_relu(const array& x, float negative_slope) { return maximum(float_number(negative_slope, x) * x, x); }
array log_sigmoid(const array& x) { return -softplus(-x); }
// Subtracts the maximum first: next to a large one the logarithm of the sum would be rounded away.
array log_softmax(const array& x, int axis) {
  const array below = x - stop_gradient(max(x, axis, true));
  return below - logsumexp(below, axis, true);
}
array mish(const array& x) { return x * weft::tanh(softplus(x)); }
array prelu(const array& x, const array& alpha) {
  const array slope = issubdtype(x.dtype(), inexact) ? astype(alpha, x.dtype()) : alpha;
  return maximum(zero(x), x) + slope * minimum(zero(x), x);
}
array relu(const array& x) { return maximum(x, zero(x)); }
array relu2(const array& x) { return square(relu(x)); }
array relu6(const array& x) { return minimum(relu(x), float_number(6, x)); }
// Klambauer et al. 2017: with these constants activations keep mean 0 and variance 1. They have MLX's digits.
array selu(const array& x) { return elu(x, 1.67326f) * float_number(1.0507, x); }
array sigmoid(const array& x) { return weft::sigmoid(x); }
array silu(const array& x) { return x * weft::sigmoid(x); }
array softmax(const array& x, int axis) { return weft::softmax(x, axis, true); }
array softmin(const array& x, int axis) { return weft::softmax(-x, axis, true); }
array softplus(const array& x) { return logaddexp(x, zero(x)); }
array softshrink(const array& x, float lambda) {
  return where(abs(x) > float_number(lambda, x), x - sign(x) * float_number(lambda, x), zero(x));
}
array softsign(const array& x) { return x / (float_number(1, x) + abs(x)); }
array step(const array& x, float threshold) { return where(x >= float_number(threshold, x), array(1), array(0)); }
array tanh(const array& x) { return weft::tanh(x); }

}  // namespace weft::nn
