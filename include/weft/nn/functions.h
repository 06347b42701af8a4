#pragma once
#include "weft/array.h"

/// Activations with MLX's names, defaults and values, and its gradients where a function has a kink. All but glu,
/// softmax, softmin and log_softmax are elementwise. The result has the shape of x and the dtype of a floating x;
/// integers are promoted to float32 wherever MLX promotes them. step alone returns int32 for any x.
namespace weft::nn {

/// Returns max(x, 0) + min(α (exp(x / α) - 1), 0).
WEFT_API array celu(const array& x, float alpha = 1);
/// Returns x where x > 0, else α (exp(x) - 1).
WEFT_API array elu(const array& x, float alpha = 1);
/// Returns x Φ(x), exactly through erf.
WEFT_API array gelu(const array& x);
/// Returns the tanh approximation of gelu, as in GPT-2.
WEFT_API array gelu_approx(const array& x);
/// Returns x sigmoid(1.702 x).
WEFT_API array gelu_fast_approx(const array& x);
/// Returns the first half of the axis times the sigmoid of the second; the axis must have an even size.
WEFT_API array glu(const array& x, int axis = -1);
/// Returns x, or 0 where |x| ≤ λ.
WEFT_API array hard_shrink(const array& x, float lambda = 0.5f);
/// Returns x limited to [low, high].
WEFT_API array hard_tanh(const array& x, float low = -1, float high = 1);
/// Returns x min(max(x + 3, 0), 6) / 6.
WEFT_API array hardswish(const array& x);
/// Returns max(negative_slope · x, x).
WEFT_API array leaky_relu(const array& x, float negative_slope = 0.01f);
/// Returns log(sigmoid(x)) without overflow.
WEFT_API array log_sigmoid(const array& x);
/// Returns x - log Σ exp(x), the sum along the axis.
WEFT_API array log_softmax(const array& x, int axis = -1);
/// Returns x tanh(softplus(x)).
WEFT_API array mish(const array& x);
/// Returns max(0, x) + α min(0, x); α broadcasts to x.
WEFT_API array prelu(const array& x, const array& alpha);
/// Returns max(x, 0).
WEFT_API array relu(const array& x);
/// Returns relu(x)².
WEFT_API array relu2(const array& x);
/// Returns min(relu(x), 6).
WEFT_API array relu6(const array& x);
/// Returns 1.0507 elu(x, 1.67326) (Klambauer et al. 2017).
WEFT_API array selu(const array& x);
/// Returns 1 / (1 + exp(-x)).
WEFT_API array sigmoid(const array& x);
/// Returns x sigmoid(x).
WEFT_API array silu(const array& x);
/// Returns exp(x) / Σ exp(x), the sum along the axis.
WEFT_API array softmax(const array& x, int axis = -1);
/// Returns softmax(-x) along the axis.
WEFT_API array softmin(const array& x, int axis = -1);
/// Returns log(1 + exp(x)) without overflow.
WEFT_API array softplus(const array& x);
/// Returns x moved toward 0 by λ, or 0 where |x| ≤ λ.
WEFT_API array softshrink(const array& x, float lambda = 0.5f);
/// Returns x / (1 + |x|).
WEFT_API array softsign(const array& x);
/// Returns 1 where x ≥ threshold, else 0, int32.
WEFT_API array step(const array& x, float threshold = 0);
/// Returns the hyperbolic tangent.
WEFT_API array tanh(const array& x);

}  // namespace weft::nn
