#pragma once
#include <optional>
#include <string>

#include "weft/array.h"

/// Composites with kernels and derivatives of their own.
namespace weft::fast {

/// Along the last axis; weight and bias have that axis' length.
WEFT_API array layer_norm(const array& x, const std::optional<array>& weight, const std::optional<array>& bias, float eps, StreamOrDevice s = {});
/// q [B, H, Tq, D], k and v [B, H, Tk, D]; mask_mode "" or "causal"; mask bool (false hides) or additive.
WEFT_API array scaled_dot_product_attention(const array& queries, const array& keys, const array& values, float scale, const std::string& mask_mode = "",
                                            const std::optional<array>& mask = std::nullopt, StreamOrDevice s = {});
/// -log softmax(logits)[target] for logits [..., classes] and integer targets [...].
WEFT_API array cross_entropy(const array& logits, const array& targets, StreamOrDevice s = {});
WEFT_API array gelu(const array& x, StreamOrDevice s = {});       ///< exact, through erf
WEFT_API array gelu_tanh(const array& x, StreamOrDevice s = {});  ///< the tanh form of GPT-2

}  // namespace weft::fast
