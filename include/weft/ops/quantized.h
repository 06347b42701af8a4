#pragma once
#include <optional>
#include <string>
#include <vector>

#include "weft/array.h"

/// Matrices in a few bits an element. Part of weft/ops.h.
///
/// `group_size` neighbours along the last axis share a scale. An element is a code of `bits` bits. The codes of a row
/// are one stream of bits in uint32 words, from the low bits up, whatever the width. Missing sizes are a mode's usual
/// ones.
///
///   | mode     | group_size  | bits             | code c stands for         | scales                     |
///   | -------- | ----------- | ---------------- | ------------------------- | -------------------------- |
///   | "affine" | 32, 64, 128 | 1 to 6, 8; usual: 64, 4 | scale · c + bias   | the matrix's dtype; biases |
///   | "mxfp4"  | 32          | 4                | scale · E2M1              | uint8, a power of two      |
///   | "mxfp8"  | 32          | 8                | scale · E4M3              | uint8, a power of two      |
///   | "nvfp4"  | 16          | 4                | scale · E2M1              | uint8, E4M3                |
///
/// E2M1 are the numbers ±{0, 0.5, 1, 1.5, 2, 3, 4, 6}, E4M3 is float8_e4m3; a power of two is its exponent + 127, as in
/// the Open Compute Project's Microscaling Formats 1.0. In "nvfp4" a `global_scale` g, a number of float32, multiplies
/// every scale by g / 2688, the product of the largest numbers of both formats.
///
/// quantized_matmul unpacks weights as it reads them: no matrix of their numbers lies in memory. qqmm rounds numbers,
/// and the gathers may make those of the matrices that indices choose. All functions throw std::invalid_argument for
/// modes, sizes, dtypes and shapes that do not fit.
namespace weft {

/// Returns the codes of a matrix w [..., k] of floats as uint32 [..., k · bits / 32], its scales [..., k / group_size],
/// and in "affine" its biases of the same shape. w needs two axes or more, and k whole groups.
WEFT_API std::vector<array> quantize(const array& w, std::optional<int> group_size = std::nullopt,
                                     std::optional<int> bits = std::nullopt, const std::string& mode = "affine",
                                     const std::optional<array>& global_scale = std::nullopt, StreamOrDevice s = {});
/// Returns the matrix [..., k] that codes and scales stand for: of `dtype`, by default the scales' in "affine" and
/// bfloat16 in the others.
WEFT_API array dequantize(const array& w, const array& scales, const std::optional<array>& biases = std::nullopt,
                          std::optional<int> group_size = std::nullopt, std::optional<int> bits = std::nullopt,
                          const std::string& mode = "affine", const std::optional<array>& global_scale = std::nullopt,
                          std::optional<Dtype> dtype = std::nullopt, StreamOrDevice s = {});
/// Returns x [..., m, k] times the quantised matrix, of which w are the codes: wᵀ of [n, k] with `transpose`, else of
/// [k, n]. Sums are float32. The result has the promoted dtype of x and the scales in "affine", and else x's.
WEFT_API array quantized_matmul(const array& x, const array& w, const array& scales,
                                const std::optional<array>& biases = std::nullopt, bool transpose = true,
                                std::optional<int> group_size = std::nullopt, std::optional<int> bits = std::nullopt,
                                const std::string& mode = "affine", StreamOrDevice s = {});
/// Returns x [..., m, k] times wᵀ of [n, k], both quantised ("nvfp4" or "mxfp8"): x here, w as well unless it has
/// `w_scales` and is codes. The result has x's dtype. Derivatives are those of the product of what the codes stand for,
/// as if rounding had slope 1.
WEFT_API array qqmm(const array& x, const array& w, const std::optional<array>& w_scales = std::nullopt,
                    std::optional<int> group_size = std::nullopt, std::optional<int> bits = std::nullopt,
                    const std::string& mode = "nvfp4", const std::optional<array>& global_scale_x = std::nullopt,
                    const std::optional<array>& global_scale_w = std::nullopt, StreamOrDevice s = {});
/// Returns quantized_matmul of matrix lhs_indices[i…] of x and matrix rhs_indices[i…] of w: [i…, m, n]. Indices are
/// those of gather_mm. `sorted_indices` changes nothing.
WEFT_API array gather_qmm(const array& x, const array& w, const array& scales,
                          const std::optional<array>& biases = std::nullopt,
                          std::optional<array> lhs_indices = std::nullopt,
                          std::optional<array> rhs_indices = std::nullopt, bool transpose = true,
                          std::optional<int> group_size = std::nullopt, std::optional<int> bits = std::nullopt,
                          const std::string& mode = "affine", const std::optional<array>& global_scale = std::nullopt,
                          bool sorted_indices = false, StreamOrDevice s = {});
/// Returns qqmm of the matrices that indices choose, as gather_qmm does.
WEFT_API array gather_qqmm(const array& x, const array& w, const std::optional<array>& scales_w = std::nullopt,
                           const std::optional<array>& lhs_indices = std::nullopt,
                           const std::optional<array>& rhs_indices = std::nullopt,
                           std::optional<int> group_size = std::nullopt, std::optional<int> bits = std::nullopt,
                           const std::string& mode = "nvfp4", const std::optional<array>& global_scale_x = std::nullopt,
                           const std::optional<array>& global_scale_w = std::nullopt, bool sorted_indices = false,
                           StreamOrDevice s = {});

}  // namespace weft
