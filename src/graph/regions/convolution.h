#pragma once
// Convolutions of channels-last arrays as regions. The derivatives of a convolution and of its two gradients are these
// three again, so three routines compute derivatives of every order.
#include "graph/node.h"

namespace weft::graph {

/// One number for each axis of space. y[n, o…, c] = Σ x'[n, o·stride + k·dilation …, ·] w[c, k…, ·], where x' is x with
/// input_dilation - 1 zeros between neighbours, and `low` and `high` zeros at the ends (negative: elements cut off).
/// Channels fall into `groups`, which see only their own.
struct ConvolutionForm {
  std::vector<int64_t> stride, low, high, dilation, input_dilation;
  int64_t groups = 1;
  int space() const { return static_cast<int>(stride.size()); }
};

/// Returns the form that a region's integers state (Composite::integers).
ConvolutionForm convolution_form(const std::vector<int64_t>& integers);
/// Returns whether the windows lie side by side and see all channels: the convolution is a dot of the pixels in another
/// order.
bool windows_tile(const ConvolutionForm& form, const std::vector<int64_t>& kernel);

/// x [N, space…, C], w [O, kernel…, C / groups] of one floating dtype; the result is [N, space…, O].
Value convolution(const Value& x, const Value& w, const ConvolutionForm& form);
/// The weight's gradient: dw[c, k…, ·] = Σ g[n, o…, c] x'[n, o·stride + k·dilation …, ·] for a kernel of the given
/// extents.
Value convolution_weights(const Value& x, const Value& g, const ConvolutionForm& form,
                          const std::vector<int64_t>& kernel);
/// The input's gradient, for x with these extents of space: a convolution of g, dilated by the stride, with the kernel
/// reversed. It is a region of its own where the stride is not 1 and x not dilated; libraries compute it without zeros.
Value convolution_input(const Value& g, const Value& w, const ConvolutionForm& form,
                        const std::vector<int64_t>& extents);

/// Computes a convolution whose input is dilated by convolutions whose inputs are not: the body of the region. All axes
/// of x have elements.
Value convolution_by_phases(const Value& x, const Value& w, const ConvolutionForm& form);

/// Batching rules of the three regions (Composite::vmap); no results if the batch or the axis that it merges with has
/// no fixed extent.
Values convolution_vmap(const ConvolutionForm& form, std::span<const Value> inputs, std::span<const int> axes);
Values convolution_input_vmap(const ConvolutionForm& form, const std::vector<int64_t>& extents,
                              std::span<const Value> inputs, std::span<const int> axes);
Values convolution_weights_vmap(const ConvolutionForm& form, const std::vector<int64_t>& kernel,
                                std::span<const Value> inputs, std::span<const int> axes);

}  // namespace weft::graph
