#include "helpers.h"

#include <algorithm>

namespace weft::python::helpers {

std::vector<array> arrays(const std::vector<Operand>& operands) {
  std::vector<array> out;
  out.reserve(operands.size());
  for (const Operand& x : operands) out.push_back(x.get());
  return out;
}

std::pair<int, int> two(const Axes& axes) {
  const std::vector<int> all = axes.repeated(2);
  if (all.size() != 2) throw std::invalid_argument("[conv] give one int, or one for each of two axes");
  return {all[0], all[1]};
}

std::tuple<int, int, int> three(const Axes& axes) {
  const std::vector<int> all = axes.repeated(3);
  if (all.size() != 3) throw std::invalid_argument("[conv] give one int, or one for each of three axes");
  return {all[0], all[1], all[2]};
}

nb::object tuple(const std::vector<array>& arrays) {
  nb::object out = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(arrays.size())));
  for (size_t k = 0; k < arrays.size(); ++k)
    PyTuple_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(k), nb::cast(arrays[k]).release().ptr());
  return out;
}

nb::object list(const std::vector<array>& arrays) {
  nb::list out;
  for (const array& a : arrays) out.append(a);
  return std::move(out);
}

nb::object one_or_tuple(const std::vector<array>& arrays) {
  return arrays.size() == 1 ? nb::cast(arrays[0]) : tuple(arrays);
}

array concatenate(std::vector<array> arrays, std::optional<int> axis, const StreamOrDevice& s) {
  if (axis) return weft::concatenate(std::move(arrays), *axis, s);
  for (array& a : arrays) a = flatten(a, s);
  return weft::concatenate(std::move(arrays), 0, s);
}

array full(const Shape& shape, const Operand& value, std::optional<Dtype> dtype, const StreamOrDevice& s) {
  const array filling = dtype ? value.beside(*dtype) : value.get();
  return weft::full(shape, filling, dtype.value_or(filling.dtype()), s);
}

array roll(const array& a, const Shape& shift, const Axes& axis, const StreamOrDevice& s) {
  if (!axis) return weft::roll(a, shift, s);
  if (shift.size() == 1) return weft::roll(a, static_cast<int>(shift[0]), axis.axes, s);
  if (axis.axes.size() == 1 && !shift.empty()) {  // several shifts along one axis add up
    int64_t total = 0;
    for (const Dim& n : shift) total += n.bound();
    return weft::roll(a, Shape{total}, axis.axes, s);
  }
  return weft::roll(a, shift, axis.axes, s);
}

array pad(const array& a, nb::handle width, const Operand& constant, const std::string& mode, const StreamOrDevice& s) {
  const array value = constant.beside(a.dtype());
  if (int64_t n = 0; read_int(width, n)) return weft::pad(a, static_cast<int>(n), value, mode, s);
  std::vector<int> one;
  if (nb::try_cast(width, one)) {
    if (one.size() == 1) return weft::pad(a, one[0], value, mode, s);
    if (one.size() == 2) return weft::pad(a, std::pair{one[0], one[1]}, value, mode, s);
    throw std::invalid_argument("[pad] give one width, a pair, or a pair for each axis; got " +
                                std::to_string(one.size()) + " numbers");
  }
  std::vector<std::vector<int>> pairs;
  if (!nb::try_cast(width, pairs)) throw nb::type_error("[pad] pad_width must be an int, a pair of ints or pairs");
  std::vector<std::pair<int, int>> widths;
  for (const std::vector<int>& p : pairs) {
    if (p.empty() || p.size() > 2) throw std::invalid_argument("[pad] each axis takes one width or two");
    widths.emplace_back(p[0], p.back());
  }
  if (widths.size() == 1 && a.ndim() != 1) return weft::pad(a, widths[0], value, mode, s);
  return weft::pad(a, widths, value, mode, s);
}

array as_strided(const array& a, const std::optional<Shape>& shape, const std::optional<Strides>& strides,
                 int64_t offset, const StreamOrDevice& s) {
  const Shape of = shape.value_or(a.shape());
  return weft::as_strided(a, of, strides.value_or(row_major_strides(of)), static_cast<size_t>(offset), s);
}

array take_along_axis(const array& a, const array& indices, std::optional<int> axis, const StreamOrDevice& s) {
  if (axis) return weft::take_along_axis(a, indices, *axis, s);
  return weft::take_along_axis(flatten(a, s), flatten(indices, s), 0, s);
}

array put_along_axis(const array& a, const array& indices, const array& values, std::optional<int> axis,
                     const StreamOrDevice& s) {
  if (axis) return weft::put_along_axis(a, indices, values, *axis, s);
  const array all = values.ndim() == 0 ? values : flatten(values, s);
  return reshape(weft::put_along_axis(flatten(a, s), flatten(indices, s), all, 0, s), a.shape(), s);
}

array convolve(const array& a, const array& v, const std::string& mode, const StreamOrDevice& s) {
  if (a.ndim() != 1 || v.ndim() != 1) throw std::invalid_argument("[convolve] both inputs must be vectors");
  if (a.size() == 0 || v.size() == 0) throw std::invalid_argument("[convolve] an input is empty");
  const array& input = a.size() < v.size() ? v : a;
  const array weight = weft::slice(a.size() < v.size() ? a : v, {-1}, {-static_cast<int>(input.size()) - 1}, {-1}, s);
  const auto n = static_cast<int>(weight.size());
  int low = 0, high = 0;
  if (mode == "full") low = high = n - 1;
  else if (mode == "same") low = n / 2, high = n - 1 - n / 2;
  else if (mode != "valid") throw std::invalid_argument("[convolve] mode is \"" + mode + "\"; full, valid or same");
  const array padded = weft::pad(input, std::pair{low, high}, array(0), "constant", s);
  const array out = conv1d(reshape(padded, {1, -1, 1}, s), reshape(weight, {1, -1, 1}, s), 1, 0, 1, 1, s);
  return reshape(out, {-1}, s);
}

std::pair<Axes, Axes> low_and_high(const std::vector<std::vector<int>>& padding) {
  if (padding.size() != 2) throw std::invalid_argument("[conv_general] padding takes two lists: before and after");
  return {Axes{.given = true, .axes = padding[0]}, Axes{.given = true, .axes = padding[1]}};
}

array conv_general(const array& input, const array& weight, const Axes& stride, const std::pair<Axes, Axes>& padding,
                   const Axes& kernel_dilation, const Axes& input_dilation, int groups, bool flip,
                   const StreamOrDevice& s) {
  const size_t axes = input.ndim() < 2 ? 0 : input.ndim() - 2;
  return weft::conv_general(input, weight, stride.repeated(axes), padding.first.repeated(axes),
                            padding.second.repeated(axes), kernel_dilation.repeated(axes),
                            input_dilation.repeated(axes), groups, flip, s);
}

array norm(const array& a, const std::optional<std::variant<double, std::string>>& ord, const Axes& axis, bool keepdims,
           const StreamOrDevice& s) {
  const std::optional<std::vector<int>> axes = axis ? std::optional(axis.axes) : std::nullopt;
  if (!ord) return linalg::norm(a, axes, keepdims, s);
  return std::visit([&](const auto& o) { return linalg::norm(a, o, axes, keepdims, s); }, *ord);
}

array categorical(const array& logits, int axis, const std::optional<Lengths>& shape, std::optional<int> num_samples,
                  const std::optional<array>& key, const StreamOrDevice& s) {
  if (shape && num_samples) throw std::invalid_argument("[categorical] give shape or num_samples, not both");
  if (shape) return random::categorical(logits, axis, shape->shape, key, s);
  if (num_samples) return random::categorical(logits, axis, *num_samples, key, s);
  return random::categorical(logits, axis, key, s);
}

array attention(const array& q, const array& k, const array& v, double scale,
                const std::optional<std::variant<std::string, Operand>>& mask, const std::optional<array>& sinks,
                bool force_fused, const StreamOrDevice& s) {
  const auto of = static_cast<float>(scale);
  if (mask && mask->index() == 1)
    return fast::scaled_dot_product_attention(q, k, v, of, "array", std::get<1>(*mask).get(), sinks, force_fused, s);
  const std::string mode = mask ? std::get<0>(*mask) : "";
  if (mask && mode != "causal")
    throw std::invalid_argument("[scaled_dot_product_attention] mask is \"" + mode + "\"; an array or \"causal\"");
  return fast::scaled_dot_product_attention(q, k, v, of, mode, std::nullopt, sinks, force_fused, s);
}

}  // namespace weft::python::helpers
