// weft/ops/convolution.h: checks, promotion, and every form as one region (graph/regions/convolution.h).
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "array/op_support.h"
#include "base/error.h"
#include "graph/regions/convolution.h"
#include "weft/ops.h"

namespace weft {
namespace {

using detail::describe;
using detail::on_device;

using Ints = std::vector<int>;

/// Returns one number for each space axis: `given` may be empty (then `otherwise`), or hold one number for all.
std::vector<int64_t> for_each_axis(const char* op, const char* what, const Ints& given, size_t space, int otherwise) {
  if (given.empty()) return std::vector<int64_t>(space, otherwise);
  if (given.size() == 1) return std::vector<int64_t>(space, given[0]);
  if (given.size() != space)
    throw_invalid(op, std::string(what) + " needs one number, or one for each of " + std::to_string(space) +
                          " axes of space; got " + std::to_string(given.size()));
  return std::vector<int64_t>(given.begin(), given.end());
}

/// Flips the kernel of a weight along all space axes.
array flipped(const array& weight) {
  std::vector<int> space;
  for (int k = 1; k + 1 < static_cast<int>(weight.ndim()); ++k) space.push_back(k);
  return flip(weight, space);
}

array convolve(const char* op, const array& input, const array& weight, graph::ConvolutionForm form, bool flip_kernel) {
  if (input.ndim() < 3 || weight.ndim() != input.ndim())
    throw_invalid(
        op, "the input must be [batch, space…, channels] and the weight [channels out, space…, channels in], got " +
                describe(input) + " and " + describe(weight));
  const Dtype dtype = promote_types(input.dtype(), weight.dtype());
  if (!is_float(dtype))
    throw_invalid(op, "floating types are needed, got " + describe(input) + " and " + describe(weight));
  const array w = flip_kernel ? flipped(weight) : weight;
  return array(graph::convolution(detail::to_dtype(input.value(), dtype), detail::to_dtype(w.value(), dtype), form));
}

void require_rank(const char* op, const array& input, size_t space) {
  if (input.ndim() != space + 2)
    throw_invalid(op, "the input must have " + std::to_string(space + 2) + " axes [batch, space…, channels], got " +
                          describe(input));
}

array plain(const char* op, const array& input, const array& weight, const Ints& stride, const Ints& padding,
            const Ints& dilation, int groups) {
  require_rank(op, input, stride.size());
  const size_t space = stride.size();
  const auto pad = for_each_axis(op, "padding", padding, space, 0);
  return convolve(op, input, weight,
                  {for_each_axis(op, "stride", stride, space, 1), pad, pad,
                   for_each_axis(op, "dilation", dilation, space, 1), std::vector<int64_t>(space, 1), groups},
                  false);
}

/// Computes a transposed convolution, the gradient of the input of a convolution with this stride and padding: the
/// input is dilated by the stride and the kernel flipped.
array transposed(const char* op, const array& input, const array& weight, const Ints& stride, const Ints& padding,
                 const Ints& dilation, const Ints& output_padding, int groups) {
  const size_t space = stride.size();
  require_rank(op, input, space);
  if (weight.ndim() != space + 2)
    throw_invalid(op, "the weight must be [channels out, space…, channels in], got " + describe(weight));
  graph::ConvolutionForm form{std::vector<int64_t>(space, 1),
                              {},
                              {},
                              for_each_axis(op, "dilation", dilation, space, 1),
                              for_each_axis(op, "stride", stride, space, 1),
                              groups};
  for (size_t k = 0; k < space; ++k) {
    const int64_t reach = (weight.shape()[k + 1].bound() - 1) * form.dilation[k];
    form.low.push_back(reach - padding[k]);
    form.high.push_back(reach - padding[k] + output_padding[k]);
  }
  return convolve(op, input, weight, std::move(form), true);
}

Ints list(const std::pair<int, int>& p) { return {p.first, p.second}; }
Ints list(const std::tuple<int, int, int>& t) { return {std::get<0>(t), std::get<1>(t), std::get<2>(t)}; }

}  // namespace

array conv_general(array input, array weight, std::vector<int> stride, std::vector<int> padding_lo,
                   std::vector<int> padding_hi, std::vector<int> kernel_dilation, std::vector<int> input_dilation,
                   int groups, bool flip, StreamOrDevice s) {
  const char* op = "conv_general";
  on_device(op, s);
  const size_t space = input.ndim() < 3 ? 1 : input.ndim() - 2;
  return convolve(op, input, weight,
                  {for_each_axis(op, "stride", stride, space, 1), for_each_axis(op, "padding", padding_lo, space, 0),
                   for_each_axis(op, "padding", padding_hi, space, 0),
                   for_each_axis(op, "kernel_dilation", kernel_dilation, space, 1),
                   for_each_axis(op, "input_dilation", input_dilation, space, 1), groups},
                  flip);
}

array conv1d(const array& input, const array& weight, int stride, int padding, int dilation, int groups,
             StreamOrDevice s) {
  on_device("conv1d", s);
  return plain("conv1d", input, weight, {stride}, {padding}, {dilation}, groups);
}
array conv2d(const array& input, const array& weight, const std::pair<int, int>& stride,
             const std::pair<int, int>& padding, const std::pair<int, int>& dilation, int groups, StreamOrDevice s) {
  on_device("conv2d", s);
  return plain("conv2d", input, weight, list(stride), list(padding), list(dilation), groups);
}
array conv3d(const array& input, const array& weight, const std::tuple<int, int, int>& stride,
             const std::tuple<int, int, int>& padding, const std::tuple<int, int, int>& dilation, int groups,
             StreamOrDevice s) {
  on_device("conv3d", s);
  return plain("conv3d", input, weight, list(stride), list(padding), list(dilation), groups);
}

array conv_transpose1d(const array& input, const array& weight, int stride, int padding, int dilation,
                       int output_padding, int groups, StreamOrDevice s) {
  on_device("conv_transpose1d", s);
  return transposed("conv_transpose1d", input, weight, {stride}, {padding}, {dilation}, {output_padding}, groups);
}
array conv_transpose2d(const array& input, const array& weight, const std::pair<int, int>& stride,
                       const std::pair<int, int>& padding, const std::pair<int, int>& dilation,
                       const std::pair<int, int>& output_padding, int groups, StreamOrDevice s) {
  on_device("conv_transpose2d", s);
  return transposed("conv_transpose2d", input, weight, list(stride), list(padding), list(dilation),
                    list(output_padding), groups);
}
array conv_transpose3d(const array& input, const array& weight, const std::tuple<int, int, int>& stride,
                       const std::tuple<int, int, int>& padding, const std::tuple<int, int, int>& dilation,
                       const std::tuple<int, int, int>& output_padding, int groups, StreamOrDevice s) {
  on_device("conv_transpose3d", s);
  return transposed("conv_transpose3d", input, weight, list(stride), list(padding), list(dilation),
                    list(output_padding), groups);
}

}  // namespace weft
