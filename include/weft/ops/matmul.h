#pragma once
#include <optional>
#include <vector>

#include "weft/array.h"

/// Multiplies matrices. Part of weft/ops.h. Results have the promoted dtype of the operands. It must be floating or
/// complex: integers throw std::invalid_argument, except in outer, kron and vecdot. 16-bit floats accumulate in float32
/// and are rounded once.
namespace weft {

/// Returns a [..., m, k] times b [..., k, n]: [..., m, n]. Leading axes broadcast. A vector a [k] counts as a row, b
/// [k] as a column, and that axis is left out of the result. Throws std::invalid_argument for scalars.
WEFT_API array matmul(const array& a, const array& b, StreamOrDevice s = {});
/// Returns alpha · matmul(a, b) + beta · c; c broadcasts to the shape of the product.
WEFT_API array addmm(array c, array a, array b, const float& alpha = 1, const float& beta = 1, StreamOrDevice s = {});
/// Returns the matrix a[i] · b[j] of the flattened arrays.
WEFT_API array outer(const array& a, const array& b, StreamOrDevice s = {});
/// Returns the sums of products over the last axes: result[i…, j…] = Σ a[i…, k] b[j…, k]. A scalar operand multiplies.
WEFT_API array inner(const array& a, const array& b, StreamOrDevice s = {});
/// Returns Σ conj(a) · b along the axis of the broadcast arrays.
WEFT_API array vecdot(const array& a, const array& b, int axis = -1, StreamOrDevice s = {});
/// Returns the products summed over the last `axis` axes of a and the first of b.
WEFT_API array tensordot(const array& a, const array& b, const int axis = 2, StreamOrDevice s = {});
/// Returns the products summed over the axes axes_a[k] of a and axes_b[k] of b, pairwise. The result has the other axes
/// of a, then those of b.
WEFT_API array tensordot(const array& a, const array& b, const std::vector<int>& axes_a, const std::vector<int>& axes_b,
                         StreamOrDevice s = {});
/// Returns the Kronecker product: each element of a times the whole of b, of sizes a.shape(k) · b.shape(k). Throws
/// std::invalid_argument where an array has no elements.
WEFT_API array kron(const array& a, const array& b, StreamOrDevice s = {});
/// Returns the last axis multiplied by the Hadamard matrix of ±1 and by `scale` (by default 1/√n). Throws
/// std::invalid_argument unless n is m·2ᵏ with m of 1, 12, 20 or 28.
WEFT_API array hadamard_transform(const array& a, std::optional<float> scale = std::nullopt, StreamOrDevice s = {});
/// Returns matmul(a, b) with masks that have one element for each block of block_size rows and columns: of the result,
/// of a and of b. A bool mask zeroes blocks, a float one scales them.
WEFT_API array block_masked_mm(array a, array b, int block_size, std::optional<array> mask_out = std::nullopt,
                               std::optional<array> mask_lhs = std::nullopt,
                               std::optional<array> mask_rhs = std::nullopt, StreamOrDevice s = {});
/// Returns matmul of matrix lhs_indices[i…] of a and matrix rhs_indices[i…] of b: [i…, m, n]. The indices number the
/// matrices of the flattened leading axes and broadcast together; missing ones take each matrix in its place.
/// `sorted_indices` changes nothing. Reverse mode throws std::invalid_argument where indices depend on what it
/// differentiates by: put stop_gradient around them.
WEFT_API array gather_mm(array a, array b, std::optional<array> lhs_indices = std::nullopt,
                         std::optional<array> rhs_indices = std::nullopt, bool sorted_indices = false,
                         StreamOrDevice s = {});
/// Returns a [m, k] times b [k, n] over each range [begin, end) of k in `segments` (integers [..., 2]): [..., m, n].
WEFT_API array segmented_mm(array a, array b, array segments, StreamOrDevice s = {});

}  // namespace weft
