#pragma once
#include <optional>
#include <string>

#include "weft/array.h"

/// Composites with kernels and derivatives of their own.
namespace weft::fast {

/// Along the last axis; weight and bias have that axis' length.
WEFT_API array layer_norm(const array& x, const std::optional<array>& weight, const std::optional<array>& bias,
                          float eps, StreamOrDevice s = {});
/// x · rsqrt(mean(x²) + eps) · weight along the last axis, which is as long as the weight; without a weight: not
/// scaled. Statistics in float32 at least. Returns the promoted dtype of x and weight; throws std::invalid_argument
/// where that is not a float.
WEFT_API array rms_norm(const array& x, const std::optional<array>& weight, float eps, StreamOrDevice s = {});
/// softmax(scale · q kᵀ + mask) v: q [B, H, Tq, D], k and v [B, G, Tk, D] with H a multiple of G; mask_mode "",
/// "causal" or "array"; mask bool (false hides) or additive. `sinks` [H] are logits that stand in the denominator of
/// every row of their head, and nowhere else. Returns the promoted dtype of q, k and v. `force_fused` throws
/// std::invalid_argument where no fused kernel of the stream's device takes these sizes and dtypes: elsewhere the
/// scores are written out.
WEFT_API array scaled_dot_product_attention(const array& queries, const array& keys, const array& values, float scale,
                                            const std::string& mask_mode = "",
                                            const std::optional<array>& mask = std::nullopt,
                                            const std::optional<array>& sinks = std::nullopt, bool force_fused = false,
                                            StreamOrDevice s = {});
/// Attention of one new token over caches that are longer than the text: q [B, H, 1, D] sees the first `length` rows
/// (one integer) of k and v [B, H, T, D]. The length is data, not part of a shape, so that every token runs the same
/// program.
WEFT_API array cached_attention(const array& queries, const array& keys, const array& values, float scale,
                                const array& length, StreamOrDevice s = {});
/// Rotary encoding of x [batch, …, time, width]: of the first `dims` elements of a row, i and i + dims / 2
/// (`traditional`: 2i and 2i + 1) are rotated by (place · scale) · base^(-2i / dims), where the places are offset,
/// offset + 1, …; or divided by `freqs` [dims / 2] where base is not given. An array of offsets holds an integer, or
/// one for each element of the batch. Angles are computed in float32 at least.
WEFT_API array rope(const array& x, int dims, bool traditional, std::optional<float> base, float scale, int offset,
                    const std::optional<array>& freqs = std::nullopt, StreamOrDevice s = {});
WEFT_API array rope(const array& x, int dims, bool traditional, std::optional<float> base, float scale,
                    const array& offset, const std::optional<array>& freqs = std::nullopt, StreamOrDevice s = {});
/// -log softmax(logits)[target] for logits [..., classes] and integer targets [...].
WEFT_API array cross_entropy(const array& logits, const array& targets, StreamOrDevice s = {});
WEFT_API array gelu(const array& x, StreamOrDevice s = {});       ///< exact, through erf
WEFT_API array gelu_tanh(const array& x, StreamOrDevice s = {});  ///< the tanh form of GPT-2
/// x [..., k] times weight[n, k]ᵀ in 8-bit floats: both rounded to float8_e4m3, the gradient of the result to
/// float8_e5m2; sums are float32's, and the result has x's dtype. Each array is scaled by a power of two, such that its
/// largest magnitude comes near the format's. GPUs from compute capability 8.9 on have tensor cores for it where n, k
/// and the number of rows are multiples of 16; elsewhere it is the same numbers in more time than bfloat16 takes.
WEFT_API array float8_linear(const array& x, const array& weight, StreamOrDevice s = {});

}  // namespace weft::fast
