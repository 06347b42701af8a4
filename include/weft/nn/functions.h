#pragma once
#include "weft/array.h"

/// Activations with MLX's names, defaults and values, and its gradients where a function has a kink. All are
/// elementwise but glu, softmax, softmin and log_softmax. The result has the dtype of a floating x; integers are
/// promoted to float32 wherever MLX promotes them. step alone gives int32 for any x.
namespace weft::nn {

WEFT_API array celu(const array& x, float alpha = 1);             ///< max(x, 0) + min(α (exp(x / α) - 1), 0)
WEFT_API array elu(const array& x, float alpha = 1);              ///< x, or α (exp(x) - 1) where x ≤ 0
WEFT_API array gelu(const array& x);                              ///< exact
WEFT_API array gelu_approx(const array& x);                       ///< the tanh form of GPT-2
WEFT_API array gelu_fast_approx(const array& x);                  ///< x sigmoid(1.702 x)
WEFT_API array glu(const array& x, int axis = -1);                ///< the first half times the sigmoid of the second
WEFT_API array hard_shrink(const array& x, float lambda = 0.5f);  ///< 0 where |x| ≤ λ
WEFT_API array hard_tanh(const array& x, float low = -1, float high = 1);
WEFT_API array hardswish(const array& x);                                 ///< x min(max(x + 3, 0), 6) / 6
WEFT_API array leaky_relu(const array& x, float negative_slope = 0.01f);  ///< max(negative_slope · x, x)
WEFT_API array log_sigmoid(const array& x);
WEFT_API array log_softmax(const array& x, int axis = -1);  ///< x - log Σ exp(x)
WEFT_API array mish(const array& x);                        ///< x tanh(softplus(x))
WEFT_API array prelu(const array& x, const array& alpha);   ///< max(0, x) + α min(0, x)
WEFT_API array relu(const array& x);
WEFT_API array relu2(const array& x);  ///< relu(x)²
WEFT_API array relu6(const array& x);  ///< min(relu(x), 6)
WEFT_API array selu(const array& x);   ///< 1.0507 elu(x, 1.67326)
WEFT_API array sigmoid(const array& x);
WEFT_API array silu(const array& x);  ///< x sigmoid(x)
WEFT_API array softmax(const array& x, int axis = -1);
WEFT_API array softmin(const array& x, int axis = -1);
WEFT_API array softplus(const array& x);                         ///< log(1 + exp(x))
WEFT_API array softshrink(const array& x, float lambda = 0.5f);  ///< x moved toward 0 by λ, or 0
WEFT_API array softsign(const array& x);                         ///< x / (1 + |x|)
WEFT_API array step(const array& x, float threshold = 0);        ///< int32: 1 where x ≥ threshold, else 0
WEFT_API array tanh(const array& x);

}  // namespace weft::nn
