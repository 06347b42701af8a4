#pragma once
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "weft/array.h"

/// Composites that are computed by kernels, and have derivatives, of their own. `s` is explained at StreamOrDevice in
/// weft/device.h.
namespace weft::fast {

/// Returns (x - mean) / √(var + eps) · weight + bias over the last axis. weight and bias, where given, are vectors of
/// that axis' length. Statistics are float32 at least; the result has x's shape and the promoted dtype of all three.
/// Throws std::invalid_argument unless x is floating and has an axis.
WEFT_API array layer_norm(const array& x, const std::optional<array>& weight, const std::optional<array>& bias,
                          float eps, StreamOrDevice s = {});
/// Returns x / √(mean(x²) + eps) · weight over the last axis. weight, where given, is a vector of that axis' length.
/// Statistics are float32 at least; the result has x's shape and the promoted dtype of both. Throws
/// std::invalid_argument unless that is floating.
WEFT_API array rms_norm(const array& x, const std::optional<array>& weight, float eps, StreamOrDevice s = {});
/// Returns {y, mean, variance} with y = (x - mean) / √(variance + eps) · weight + bias and statistics over `axes`: the
/// core of batch, group and instance norms, in one region with a derivative of its own. Mean and (biased) variance have
/// x's shape with the axes at 1, in float32 at least; weight and bias, where given, broadcast to that shape. y has x's
/// shape and dtype. Throws std::invalid_argument unless x is floating and has elements along the axes. MLX has no such
/// function.
WEFT_API std::vector<array> standardize(const array& x, const std::vector<int>& axes,
                                        const std::optional<array>& weight, const std::optional<array>& bias, float eps,
                                        StreamOrDevice s = {});
/// Returns softmax(scale · q kᵀ + mask) v [B, H, Tq, D] for q [B, H, Tq, D], k [B, G, Tk, D] and v [B, G, Tk, Dv], H a
/// multiple of G, in their promoted dtype. mask_mode is "", "causal" or "array"; the mask is bool (false hides) or
/// additive and broadcasts to [B, H, Tq, Tk]. `sinks` [H] are logits in the denominator of every row of their head, and
/// nowhere else. `force_fused` throws std::invalid_argument where no fused kernel of the stream's device takes these
/// sizes and dtypes; without it the scores are then written to memory. So do shapes that do not fit.
WEFT_API array scaled_dot_product_attention(const array& queries, const array& keys, const array& values, float scale,
                                            const std::string& mask_mode = "",
                                            const std::optional<array>& mask = std::nullopt,
                                            const std::optional<array>& sinks = std::nullopt, bool force_fused = false,
                                            StreamOrDevice s = {});
/// Returns the same with dropout of the weights: each becomes 0 with probability `rate` and is divided by 1 - rate
/// otherwise, after the denominator was taken. Which ones follows from `key`, two words, or the next one of the default
/// sequence (weft/random.h), and from the position. Fused kernels draw the weights where they compute them, forward and
/// backward, and store nothing of the size of the scores; without such a kernel (exact float32 on a GPU, float64, fewer
/// than 8 queries) scores are written to memory. `rate` 0 gives attention without dropout. Lengths that are symbolic
/// draw as their bounds do. MLX has no such function. Throws std::invalid_argument unless 0 ≤ rate < 1.
WEFT_API array dropout_attention(const array& queries, const array& keys, const array& values, float scale, float rate,
                                 const std::string& mask_mode = "", const std::optional<array>& mask = std::nullopt,
                                 const std::optional<array>& key = std::nullopt, StreamOrDevice s = {});
/// Returns the attention of one new token over a key-value cache: q [B, H, 1, D] sees the first `length` rows of k and
/// v [B, G, T, D]. `length` is one integer in an array: data, not part of a shape, so every token runs the same
/// program. MLX has no such function.
///
///     auto decode = compile(
///         [&](const std::vector<array>& in) {  // q, k, v of one token [1, heads, 1, width]; its position, int32 [1]
///           keys = slice_update(keys, in[1], in[3], {2});    // both caches are [1, heads, context, width]
///           values = slice_update(values, in[2], in[3], {2});
///           return std::vector{fast::cached_attention(in[0], keys, values, scale, in[3] + array(1))};
///         },
///         {.state = {&keys, &values}});
///     for (int t = 0; t < tokens; ++t) out = decode({q, k, v, array({t})})[0];
WEFT_API array cached_attention(const array& queries, const array& keys, const array& values, float scale,
                                const array& length, StreamOrDevice s = {});
/// Returns x [batch, …, time, width] with rotary encoding. Of the first `dims` elements of a row, elements i and i +
/// dims / 2
/// (`traditional`: 2i and 2i + 1) are rotated by the angle position · scale · base^(-2i / dims), where the positions
/// are offset, offset + 1, …; where base is not given the angle is position · scale / freqs[i], freqs [dims / 2]. An
/// array of offsets holds one integer, or one for each element of the batch. Angles are computed in float32 at least;
/// the result has x's dtype. Throws std::invalid_argument unless just one of base and freqs is given.
WEFT_API array rope(const array& x, int dims, bool traditional, std::optional<float> base, float scale, int offset,
                    const std::optional<array>& freqs = std::nullopt, StreamOrDevice s = {});
WEFT_API array rope(const array& x, int dims, bool traditional, std::optional<float> base, float scale,
                    const array& offset, const std::optional<array>& freqs = std::nullopt, StreamOrDevice s = {});
/// Returns {outputs [B, T, H, Dv], state [B, H, Dv, D]} of the gated delta rule (Yang et al. 2025, "Gated Delta
/// Networks"), a linear attention whose state S of each head forgets and corrects itself. For each time t
///
///   S = gamma S + beta (v - gamma S k) kᵀ,   output = S q
///
/// q and k are [B, T, G, D], v [B, T, H, Dv], H a multiple of G; gamma and beta [B, T, H]. S begins as `initial_state`
/// [B, H, Dv, D], or zeros. Where `mask` [B, T] is false the output is 0 and S stays. Computed in float32, 64 times at
/// once as products of matrices (Yang et al. 2024, "Parallelizing Linear Transformers with the Delta Rule"); outputs
/// have q's dtype, the state float32. Throws std::invalid_argument for shapes that do not fit.
WEFT_API std::vector<array> gated_delta_update(const array& queries, const array& keys, const array& values,
                                               const array& gamma, const array& beta,
                                               const std::optional<array>& initial_state = std::nullopt,
                                               const std::optional<array>& mask = std::nullopt, StreamOrDevice s = {});
/// Returns -log softmax(logits)[target] for floating logits [..., classes] and integer targets [...], float32 at least.
WEFT_API array cross_entropy(const array& logits, const array& targets, StreamOrDevice s = {});
/// Returns x Φ(x), exactly through erf.
WEFT_API array gelu(const array& x, StreamOrDevice s = {});
/// Returns the tanh approximation of gelu, as in GPT-2.
WEFT_API array gelu_tanh(const array& x, StreamOrDevice s = {});
/// Returns x [..., k] times weight [n, k]ᵀ in 8-bit floats, in x's dtype: both are rounded to float8_e4m3, the gradient
/// of the result to float8_e5m2, and sums are float32. Each array is scaled by a power of two, so that its largest
/// magnitude comes near the format's. GPUs from compute capability 8.9 on have tensor cores for it where n, k and the
/// number of rows are multiples of 16; elsewhere the same numbers take more time than bfloat16.
WEFT_API array float8_linear(const array& x, const array& weight, StreamOrDevice s = {});

/// An argument of a kernel's template: a number, a truth value, or a dtype for a type.
using TemplateArg = std::variant<int, bool, Dtype>;
/// What cuda_kernel returns: a function of the inputs, the shapes and dtypes of the outputs, the threads of the grid
/// along x, y and z, those of a block, the arguments of the template, what outputs begin as (not given: nothing in
/// particular), whether to print the source, and the stream.
using CustomKernelFunction = std::function<std::vector<array>(
    const std::vector<array>& inputs, const std::vector<Shape>& output_shapes, const std::vector<Dtype>& output_dtypes,
    std::tuple<int, int, int> grid, std::tuple<int, int, int> threadgroup,
    const std::vector<std::pair<std::string, TemplateArg>>& template_args, std::optional<float> init_value,
    bool verbose, StreamOrDevice s)>;
/// What a CPU computes in place of a kernel: the outputs from the inputs.
using CpuKernelFunction = std::function<std::vector<array>(const std::vector<array>& inputs)>;
/// Returns a kernel of CUDA C++. `source` is the body of a __global__ function whose parameters are pointers to the
/// row-major arrays, inputs before outputs, by these names; 16-bit floats are their bits, as unsigned short. It may use
/// blockIdx, threadIdx, gridDim and blockDim, the names of template arguments, and of an input `x` x_shape, x_strides
/// and x_ndim. `header` stands before it; `shared_memory` is in bytes. All inputs are row-major, whatever
/// `ensure_row_contiguous` says. Without `cpu` it runs on GPUs alone. It has no derivative: custom_function gives one.
///
/// Calls throw std::invalid_argument "[kernel NAME] …" where names and arrays do not fit, a block has more than 1024
/// threads, the stream is a CPU's and there is no `cpu`; and, when they run, where the source does not compile, with
/// the compiler's messages in the lines of `source` (the first is 1).
WEFT_API CustomKernelFunction cuda_kernel(const std::string& name, const std::vector<std::string>& input_names,
                                          const std::vector<std::string>& output_names, const std::string& source,
                                          const std::string& header = "", bool ensure_row_contiguous = true,
                                          int shared_memory = 0, CpuKernelFunction cpu = {});

}  // namespace weft::fast
