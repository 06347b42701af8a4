// Convolution layers.
#include "weft/nn/convolution.h"

#include <cmath>
#include <tuple>

#include "nn/support.h"
#include "weft/nn/init.h"

namespace weft::nn {

namespace {

/// Returns one number for each axis, from a list of one number or of all.
std::vector<int> for_axes(const char* op, const char* what, const std::vector<int>& given, int space) {
  if (given.size() == 1) return std::vector<int>(static_cast<size_t>(space), given[0]);
  if (given.size() != static_cast<size_t>(space))
    throw_invalid(op, std::string(what) + " needs one number, or one for each of " + std::to_string(space) +
                          " axes; got " + std::to_string(given.size()));
  return given;
}

Shape weight_shape(const char* op, int space, int64_t in, int64_t out, const std::vector<int>& kernel, int groups) {
  if (groups < 1 || in % groups != 0 || out % groups != 0)
    throw_invalid(op, std::to_string(groups) + " groups must divide the channels " + std::to_string(in) + " and " +
                          std::to_string(out));
  Shape shape = sizes(op, {out});
  for (const int k : for_axes(op, "the kernel", kernel, space)) shape.push_back(sizes(op, {k})[0]);
  shape.push_back(sizes(op, {in / groups})[0]);
  return shape;
}

array started(const Shape& shape) {
  int64_t fan = 1;
  for (size_t k = 1; k < shape.size(); ++k) fan *= shape[k].bound();
  return init::uniform(shape, -bound_of(fan), bound_of(fan));
}

std::pair<int, int> two(const std::vector<int>& v) { return {v[0], v[1]}; }
std::tuple<int, int, int> three(const std::vector<int>& v) { return {v[0], v[1], v[2]}; }

std::string listed(const std::vector<int>& v) {
  std::string out;
  for (const int e : v) out += (out.empty() ? "" : ", ") + std::to_string(e);
  return v.size() == 1 ? out : "(" + out + ")";
}

std::string described(const char* name, int space, const Parameter& weight, int groups, const std::vector<int>& stride,
                      const std::vector<int>& padding, bool bias) {
  const Shape& s = weight.value().shape();
  std::vector<int> kernel;
  for (size_t k = 1; k + 1 < s.size(); ++k) kernel.push_back(static_cast<int>(s[k].bound()));
  return name + std::to_string(space) + "d(" + std::to_string(s.back().bound() * groups) + ", " + number(s[0]) +
         ", kernel=" + listed(kernel) + ", stride=" + listed(stride) + ", padding=" + listed(padding) +
         (groups == 1 ? "" : ", groups=" + std::to_string(groups)) + (bias ? ")" : ", bias=false)");
}

void check_input(const char* op, const array& x, int space) {
  if (x.ndim() != static_cast<size_t>(space) + 2 || !issubdtype(x.dtype(), floating))
    throw_invalid(op, "the input must be floating, [batch, " + std::to_string(space) +
                          " axes of space, channels]; it is " + to_string(x.shape()) + " " + dtype_name(x.dtype()));
}

}  // namespace

Conv::Conv(Scope scope, int space, int64_t in, int64_t out, const std::vector<int>& kernel, ConvOptions options)
    : Layer(std::move(scope)),
      weight(*this, "weight", started(weight_shape("Conv", space, in, out, kernel, options.groups))), space_(space),
      options_(std::move(options)) {
  options_.stride = for_axes("Conv", "stride", options_.stride, space);
  options_.padding = for_axes("Conv", "padding", options_.padding, space);
  options_.dilation = for_axes("Conv", "dilation", options_.dilation, space);
  if (options_.bias) bias.emplace(*this, "bias", init::constant({out}, 0));
}

array Conv::operator()(const array& x) const {
  check_input("Conv", x, space_);
  const array w = astype(weight, x.dtype());
  const auto& o = options_;
  const array y = conv_general(x, w, o.stride, o.padding, o.dilation, {}, o.groups);
  return bias ? y + astype(*bias, x.dtype()) : y;
}

std::string Conv::describe() const {
  return described("Conv", space_, weight, options_.groups, options_.stride, options_.padding, bias.has_value());
}

ConvTranspose::ConvTranspose(Scope scope, int space, int64_t in, int64_t out, const std::vector<int>& kernel,
                             ConvTransposeOptions options)
    : Layer(std::move(scope)),
      weight(*this, "weight", started(weight_shape("ConvTranspose", space, in, out, kernel, options.groups))),
      space_(space), options_(std::move(options)) {
  options_.stride = for_axes("ConvTranspose", "stride", options_.stride, space);
  options_.padding = for_axes("ConvTranspose", "padding", options_.padding, space);
  options_.dilation = for_axes("ConvTranspose", "dilation", options_.dilation, space);
  options_.output_padding = for_axes("ConvTranspose", "output_padding", options_.output_padding, space);
  if (options_.bias) bias.emplace(*this, "bias", init::constant({out}, 0));
}

array ConvTranspose::operator()(const array& x) const {
  check_input("ConvTranspose", x, space_);
  const array w = astype(weight, x.dtype());
  const auto& o = options_;
  const auto convolved = [&] {
    if (space_ == 1)
      return conv_transpose1d(x, w, o.stride[0], o.padding[0], o.dilation[0], o.output_padding[0], o.groups);
    if (space_ == 2)
      return conv_transpose2d(x, w, two(o.stride), two(o.padding), two(o.dilation), two(o.output_padding), o.groups);
    return conv_transpose3d(x, w, three(o.stride), three(o.padding), three(o.dilation), three(o.output_padding),
                            o.groups);
  };
  const array y = convolved();
  return bias ? y + astype(*bias, x.dtype()) : y;
}

std::string ConvTranspose::describe() const {
  return described("ConvTranspose", space_, weight, options_.groups, options_.stride, options_.padding,
                   bias.has_value());
}

}  // namespace weft::nn
