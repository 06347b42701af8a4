#pragma once
#include <tuple>
#include <utility>
#include <vector>

#include "weft/array.h"

/// Convolves channels-last arrays. Part of weft/ops.h.
///
/// The input is [batch, space…, channels], the weight [channels out, kernel…, channels in / groups] and the result
/// [batch, space…, channels out], in the promoted dtype, which must be floating. The kernel is not flipped (a
/// cross-correlation, as in other machine learning libraries) unless `flip` says so. Shapes that do not fit throw
/// std::invalid_argument.
namespace weft {

/// Returns the convolution over any number of space axes. Each list holds a number for each space axis, one for all of
/// them, or nothing (the default: stride and dilations 1, padding 0). input_dilation puts zeros between the elements of
/// the input.
WEFT_API array conv_general(array input, array weight, std::vector<int> stride, std::vector<int> padding_lo,
                            std::vector<int> padding_hi, std::vector<int> kernel_dilation,
                            std::vector<int> input_dilation, int groups = 1, bool flip = false, StreamOrDevice s = {});
inline array conv_general(const array& input, const array& weight, std::vector<int> stride = {},
                          std::vector<int> padding = {}, std::vector<int> kernel_dilation = {},
                          std::vector<int> input_dilation = {}, int groups = 1, bool flip = false,
                          StreamOrDevice s = {}) {
  return conv_general(input, weight, std::move(stride), padding, padding, std::move(kernel_dilation),
                      std::move(input_dilation), groups, flip, s);
}
/// Returns the convolution of [batch, length, channels].
WEFT_API array conv1d(const array& input, const array& weight, int stride = 1, int padding = 0, int dilation = 1,
                      int groups = 1, StreamOrDevice s = {});
/// Returns the convolution of [batch, height, width, channels]; pairs are (height, width).
WEFT_API array conv2d(const array& input, const array& weight, const std::pair<int, int>& stride = {1, 1},
                      const std::pair<int, int>& padding = {0, 0}, const std::pair<int, int>& dilation = {1, 1},
                      int groups = 1, StreamOrDevice s = {});
/// Returns the convolution of [batch, depth, height, width, channels].
WEFT_API array conv3d(const array& input, const array& weight, const std::tuple<int, int, int>& stride = {1, 1, 1},
                      const std::tuple<int, int, int>& padding = {0, 0, 0},
                      const std::tuple<int, int, int>& dilation = {1, 1, 1}, int groups = 1, StreamOrDevice s = {});
/// Returns the transpose of a convolution with this stride, padding and dilation (the gradient of its input), over
/// [batch, length, channels]. The weight is [channels out, kernel, channels in / groups] of this direction.
/// `output_padding` adds elements at the end.
WEFT_API array conv_transpose1d(const array& input, const array& weight, int stride = 1, int padding = 0,
                                int dilation = 1, int output_padding = 0, int groups = 1, StreamOrDevice s = {});
/// Returns the same over [batch, height, width, channels].
WEFT_API array conv_transpose2d(const array& input, const array& weight, const std::pair<int, int>& stride = {1, 1},
                                const std::pair<int, int>& padding = {0, 0},
                                const std::pair<int, int>& dilation = {1, 1},
                                const std::pair<int, int>& output_padding = {0, 0}, int groups = 1,
                                StreamOrDevice s = {});
/// Returns the same over [batch, depth, height, width, channels].
WEFT_API array conv_transpose3d(const array& input, const array& weight,
                                const std::tuple<int, int, int>& stride = {1, 1, 1},
                                const std::tuple<int, int, int>& padding = {0, 0, 0},
                                const std::tuple<int, int, int>& dilation = {1, 1, 1},
                                const std::tuple<int, int, int>& output_padding = {0, 0, 0}, int groups = 1,
                                StreamOrDevice s = {});

}  // namespace weft
