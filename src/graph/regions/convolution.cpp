// Convolution and the gradients of its input and its weights. Their bodies are windows and one dot, which is bilinear,
// so each derivative is one of the three again. Where the input is dilated or cut, they are regions of a simpler form:
// libraries take those, and no windows are stored that a library would not need. Each names a routine that targets may
// have; its integers are the groups, then stride, low, high, dilation and input dilation of each axis of space.
#include "graph/regions/convolution.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "graph/build.h"
#include "graph/regions/regions.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

using In = std::span<const Value>;
using Extents = std::vector<int64_t>;

size_t space_of(const ConvolutionForm& form) { return form.stride.size(); }
int64_t extent(const Value& v, size_t axis) { return v.shape()[axis].bound(); }
Extents space_extents(const Value& v) { return bounds(Shape(v.shape().begin() + 1, v.shape().end() - 1)); }

/// Returns the sum of two values that may be missing.
Value sum_of(const Value& a, const Value& b) { return a && b ? a + b : a ? a : b; }

std::vector<int64_t> integers_of(const ConvolutionForm& form) {
  std::vector<int64_t> all{form.groups};
  for (const auto* list : {&form.stride, &form.low, &form.high, &form.dilation, &form.input_dilation})
    all.insert(all.end(), list->begin(), list->end());
  return all;
}

std::string form_key(const ConvolutionForm& form) { return fmt::format("form({})", fmt::join(integers_of(form), ",")); }

/// Returns the extent of x', and the number of positions of a kernel in it.
int64_t padded_extent(const ConvolutionForm& form, size_t k, int64_t n) {
  return (n == 0 ? 0 : (n - 1) * form.input_dilation[k] + 1) + form.low[k] + form.high[k];
}
int64_t span_of(const ConvolutionForm& form, size_t k, int64_t kernel) { return (kernel - 1) * form.dilation[k] + 1; }

/// Returns x': x dilated, then padded or cut.
Value prepared(Value x, const ConvolutionForm& form) {
  Extents low(x.shape().size(), 0), high = low, start = low;
  Shape sizes = x.shape();
  bool pads = false, cuts = false;
  for (size_t k = 0; k < space_of(form); ++k) {
    x = dilate(x, k + 1, form.input_dilation[k]);
    low[k + 1] = std::max<int64_t>(form.low[k], 0);
    high[k + 1] = std::max<int64_t>(form.high[k], 0);
    start[k + 1] = std::max<int64_t>(-form.low[k], 0);
    sizes[k + 1] = extent(x, k + 1) - start[k + 1] - std::max<int64_t>(-form.high[k], 0);
    pads = pads || low[k + 1] != 0 || high[k + 1] != 0;
    cuts = cuts || sizes[k + 1] != x.shape()[k + 1];
  }
  if (cuts) x = slice(x, start, sizes);
  return pads ? pad(x, low, high) : x;
}

bool is_dilated(const ConvolutionForm& form) {
  return std::any_of(form.input_dilation.begin(), form.input_dilation.end(), [](int64_t d) { return d != 1; });
}
bool is_empty(const Value& x) {
  return std::any_of(x.shape().begin() + 1, x.shape().end(), [](const Dim& n) { return n == 0; });
}

/// Cuts the elements off x that negative padding leaves out, and makes the padding of `form` positive. Returns false if
/// there are none, or if nothing would be left.
bool cut(Value& x, ConvolutionForm& form) {
  Extents start(x.shape().size(), 0);
  Shape sizes = x.shape();
  ConvolutionForm out = form;
  for (size_t k = 0; k < space_of(form); ++k) {
    const int64_t d = form.input_dilation[k];
    const auto lost = [&](int64_t& padding) {
      const int64_t elements = padding < 0 ? (-padding + d - 1) / d : 0;
      padding += elements * d;
      return elements;
    };
    start[k + 1] = lost(out.low[k]);
    const int64_t left = extent(x, k + 1) - start[k + 1] - lost(out.high[k]);
    if (left < 1) return false;
    sizes[k + 1] = left;
  }
  if (sizes == x.shape()) return false;
  x = slice(x, start, sizes);
  form = std::move(out);
  return true;
}

/// Returns a convolution of a dilated input by convolutions of the elements that are not cut off.
Value by_phases(Value x, const Value& w, ConvolutionForm form) {
  cut(x, form);
  return convolution_by_phases(x, w, form);
}

/// Returns [N, o₁, k₁, o₂, k₂, …, C]: the inputs of the kernel at each position.
Value windows(const Value& x, const ConvolutionForm& form, const Extents& kernel) {
  Value v = prepared(x, form);
  for (size_t k = 0; k < kernel.size(); ++k)
    v = window(v, static_cast<int>(1 + 2 * k), kernel[k], form.stride[k], form.dilation[k]);
  return v;
}

/// Splits the axis into [groups, rest].
Value grouped(const Value& v, size_t axis, int64_t groups) {
  Shape shape = v.shape();
  shape[axis] = shape[axis].bound() / groups;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), Dim(groups));
  return reshape(v, shape);
}

/// Moves axis `from` to `to`.
Value moved(const Value& v, size_t from, size_t to) {
  std::vector<int64_t> order;
  for (size_t k = 0; k < v.shape().size(); ++k)
    if (k != from) order.push_back(static_cast<int64_t>(k));
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(to), static_cast<int64_t>(from));
  return permute(v, order);
}

/// Returns [N, o…, kernel · C]: the pixels of each window side by side. Each pixel lies in one window at most, so this
/// is the image in another order.
Value patches(const Value& x, const Extents& kernel) {
  const size_t space = kernel.size();
  Shape cut = x.shape(), apart{x.shape()[0]}, joined = apart;
  std::vector<int64_t> order{0}, within;
  int64_t elements = extent(x, space + 1);
  for (size_t k = 0; k < space; ++k) {
    const int64_t count = extent(x, k + 1) / kernel[k];
    cut[k + 1] = count * kernel[k];
    apart.insert(apart.end(), {Dim(count), Dim(kernel[k])});
    joined.emplace_back(count);
    order.push_back(static_cast<int64_t>(2 * k + 1));
    within.push_back(static_cast<int64_t>(2 * k + 2));
    elements *= kernel[k];
  }
  apart.push_back(x.shape().back());
  joined.emplace_back(elements);
  order.insert(order.end(), within.begin(), within.end());
  order.push_back(static_cast<int64_t>(2 * space + 1));
  const Value whole = cut == x.shape() ? x : slice(x, Extents(space + 2, 0), cut);
  return reshape(permute(reshape(whole, apart), order), joined);
}

/// Returns w [O, k…, C / G] as the kernel of the input's gradient: [C, k… reversed, O / G].
Value transposed_weights(const Value& w, int64_t groups) {
  const size_t rank = w.shape().size();
  Extents start(rank, 0), step(rank, 1);
  for (size_t k = 1; k + 1 < rank; ++k) {
    start[k] = extent(w, k) - 1;
    step[k] = -1;
  }
  const Value flipped = grouped(slice(w, start, w.shape(), step), 0, groups);  // [G, O / G, k…, C / G]
  std::vector<int64_t> order{0, static_cast<int64_t>(rank)};
  for (size_t k = 2; k < rank; ++k) order.push_back(static_cast<int64_t>(k));
  order.push_back(1);
  const Value swapped = permute(flipped, order);  // [G, C / G, k…, O / G]
  Shape shape = swapped.shape();
  const int64_t channels = extent(swapped, 0) * extent(swapped, 1);
  shape.erase(shape.begin());
  shape[0] = channels;
  return reshape(swapped, shape);
}

/// Returns the form of the convolution that the input's gradient is: for x with these extents of space.
ConvolutionForm gradient_form(const ConvolutionForm& form, const Extents& kernel, const Extents& extents,
                              const Extents& positions) {
  ConvolutionForm back{form.input_dilation, {}, {}, form.dilation, form.stride, form.groups};
  for (size_t k = 0; k < space_of(form); ++k) {
    const int64_t reach = span_of(form, k, kernel[k]) - 1, dilated = (positions[k] - 1) * form.stride[k] + 1;
    back.low.push_back(reach - form.low[k]);
    back.high.push_back((extents[k] - 1) * form.input_dilation[k] + 1 + reach - dilated - back.low[k]);
  }
  return back;
}

/// Returns the input's gradient as a region.
Value input_region(const Value& g, const Value& w, const ConvolutionForm& form, const Extents& extents) {
  const Extents kernel = space_extents(w), positions = space_extents(g);
  const ConvolutionForm back = gradient_form(form, kernel, extents, positions);
  Composite region;
  region.name = "convolution_input";
  region.key = fmt::format("{} extents({})", form_key(form), fmt::join(extents, ","));
  region.body = [back](In in) -> Values { return {by_phases(in[0], transposed_weights(in[1], back.groups), back)}; };
  region.vjp = [form, kernel](In in, In, In h) -> Values {
    return {convolution(h[0], in[1], form), convolution_weights(h[0], in[0], form, kernel)};
  };
  region.jvp = [form, extents](In in, In, In t) -> Values {
    return {sum_of(t[0] ? input_region(t[0], in[1], form, extents) : Value{},
                   t[1] ? input_region(in[0], t[1], form, extents) : Value{})};
  };
  region.vmap = [form, extents](In in, std::span<const int> axes) {
    return convolution_input_vmap(form, extents, in, axes);
  };
  region.call = "convolution_input";
  region.integers = integers_of(form);
  return composite(std::make_shared<Composite>(std::move(region)), {g, w})[0];
}

/// Returns a convolution of a dilated input: where its stride is 1 it is the input's gradient of a convolution whose
/// stride is the dilation.
Value dilated_body(const Value& x, const Value& w, const ConvolutionForm& form) {
  ConvolutionForm forward{form.input_dilation, {}, {}, form.dilation, form.stride, form.groups};
  const Extents kernel = space_extents(w);
  Extents extents;
  bool is_gradient = true;
  for (size_t k = 0; k < space_of(form); ++k) {
    const int64_t reach = span_of(form, k, kernel[k]) - 1,
                  dilated = (extent(x, k + 1) - 1) * form.input_dilation[k] + 1;
    extents.push_back(dilated + form.low[k] + form.high[k] - reach);
    forward.low.push_back(reach - form.low[k]);
    // Further zeros at the end, less than a stride, would add no position.
    forward.high.push_back(std::max<int64_t>(0, dilated + reach - extents[k] - forward.low[k]));
    is_gradient = is_gradient && form.stride[k] == 1 && forward.low[k] >= 0;
  }
  return is_gradient ? input_region(x, transposed_weights(w, form.groups), forward, extents) : by_phases(x, w, form);
}

/// Returns [N, o…, O]: of a plain input, the dot of windows and w over the kernel and the channels.
Value forward_body(Value x, const Value& w, ConvolutionForm form) {
  if (cut(x, form)) return convolution(x, w, form);
  if (is_dilated(form) && !is_empty(x)) return dilated_body(x, w, form);
  const size_t space = space_of(form);
  const Extents kernel = space_extents(w);
  if (windows_tile(form, kernel)) {
    const Value seen = patches(x, kernel);
    return dot(seen, reshape(w, {w.shape()[0], seen.shape().back()}), {static_cast<int64_t>(space + 1)}, {1});
  }
  const Value seen = windows(x, form, kernel);
  std::vector<int64_t> over_x, over_w;
  for (size_t k = 0; k < space; ++k) {
    over_x.push_back(static_cast<int64_t>(2 * k + 2));
    over_w.push_back(static_cast<int64_t>(k + 1));
  }
  const auto channels = static_cast<int64_t>(2 * space + 1);
  if (form.groups == 1) {
    over_x.push_back(channels);
    over_w.push_back(static_cast<int64_t>(space + 1));
    return dot(seen, w, over_x, over_w);
  }
  over_x.push_back(channels + 1);
  for (int64_t& axis : over_w) ++axis;
  over_w.push_back(static_cast<int64_t>(space + 2));
  const Value parts = dot(grouped(seen, static_cast<size_t>(channels), form.groups), grouped(w, 0, form.groups), over_x,
                          over_w, {channels}, {0});
  const Value joined = moved(parts, 0, space + 1);  // [N, o…, G, O / G]
  Shape shape = joined.shape();
  shape.pop_back();
  shape.back() = w.shape()[0];
  return reshape(joined, shape);
}

/// Returns the weight's gradient where the input is dilated and the stride is 1, as in a transposed convolution: that
/// of the convolution from g to x, transposed.
Value exchanged_weights(const Value& x, const Value& g, const ConvolutionForm& form, const Extents& kernel) {
  ConvolutionForm back{form.input_dilation, {}, {}, form.dilation, form.stride, form.groups};
  for (size_t k = 0; k < space_of(form); ++k) {
    const int64_t reach = span_of(form, k, kernel[k]) - 1;
    back.low.push_back(reach - form.low[k]);
    back.high.push_back((extent(x, k + 1) - 1) * back.stride[k] + reach + 1 - extent(g, k + 1) - back.low[k]);
  }
  return transposed_weights(convolution_weights(g, x, back, kernel), form.groups);
}

/// Returns [O, k…, C / G]: of a plain input, the dot of windows and g over examples and positions.
Value weights_body(Value x, const Value& g, ConvolutionForm form, const Extents& kernel) {
  const size_t space = space_of(form);
  if (cut(x, form)) return convolution_weights(x, g, form, kernel);
  if (is_dilated(form) && !is_empty(x)) {
    if (std::all_of(form.stride.begin(), form.stride.end(), [](int64_t s) { return s == 1; }))
      return exchanged_weights(x, g, form, kernel);
    for (size_t k = 0; k < space; ++k) x = dilate(x, k + 1, std::exchange(form.input_dilation[k], 1));
    return convolution_weights(x, g, form, kernel);
  }
  if (windows_tile(form, kernel)) {
    std::vector<int64_t> over(space + 1);
    std::iota(over.begin(), over.end(), 0);
    Shape shape{g.shape().back()};
    shape.insert(shape.end(), kernel.begin(), kernel.end());
    shape.push_back(x.shape().back());
    return reshape(dot(g, patches(x, kernel), over, over), shape);
  }
  const Value seen = windows(x, form, kernel);
  std::vector<int64_t> over_x{0}, over_g{0};
  for (size_t k = 0; k < space; ++k) {
    over_x.push_back(static_cast<int64_t>(2 * k + 1));
    over_g.push_back(static_cast<int64_t>(k + 1));
  }
  if (form.groups == 1) return dot(g, seen, over_g, over_x);
  const size_t channels = 2 * space + 1;
  const Value parts =
      dot(grouped(g, space + 1, form.groups), grouped(seen, channels, form.groups), over_g, over_x,
          {static_cast<int64_t>(space + 1)}, {static_cast<int64_t>(channels)});  // [G, O / G, k…, C / G]
  Shape shape = parts.shape();
  shape.erase(shape.begin());
  shape[0] = g.shape().back();
  return reshape(parts, shape);
}

[[noreturn]] void refuse(const Value& x, const Value& w, const std::string& why) {
  throw_invalid("convolution", fmt::format("{}: input {}, weight {}", why, to_string(x.type()), to_string(w.type())));
}

void check_form(const Value& x, const Value& w, const ConvolutionForm& form) {
  const size_t space = space_of(form);
  for (const auto* list : {&form.low, &form.high, &form.dilation, &form.input_dilation})
    if (list->size() != space)
      refuse(x, w, fmt::format("stride, padding and dilations need one number for each of {} axes", space));
  if (space < 1 || x.shape().size() != space + 2 || w.shape().size() != space + 2)
    refuse(x, w,
           fmt::format("an input [batch, {0} of space, channels] and a weight [channels out, {0} of space, channels "
                       "in] are needed",
                       space));
  if (!is_float(x.dtype()) || x.dtype() != w.dtype()) refuse(x, w, "both must have one floating dtype");
  for (size_t k = 1; k < space + 2; ++k)
    if (!x.shape()[k].is_static() || !w.shape()[k].is_static()) refuse(x, w, "space and channels need fixed extents");
  for (const auto* list : {&form.stride, &form.dilation, &form.input_dilation})
    for (const int64_t v : *list)
      if (v < 1) refuse(x, w, "strides and dilations must be at least 1");
}

}  // namespace

bool windows_tile(const ConvolutionForm& form, const Extents& kernel) {
  const auto all = [](const Extents& v, int64_t e) {
    return std::all_of(v.begin(), v.end(), [&](int64_t x) { return x == e; });
  };
  for (size_t k = 0; k < kernel.size(); ++k)
    if (kernel[k] != 1 && form.dilation[k] != 1) return false;
  return form.groups == 1 && form.stride == kernel && all(form.low, 0) && all(form.high, 0) &&
         all(form.input_dilation, 1);
}

ConvolutionForm convolution_form(const std::vector<int64_t>& integers) {
  const size_t space = (integers.size() - 1) / 5;
  const auto part = [&](size_t k) {
    const auto begin = integers.begin() + static_cast<std::ptrdiff_t>(1 + k * space);
    return Extents(begin, begin + static_cast<std::ptrdiff_t>(space));
  };
  return {part(0), part(1), part(2), part(3), part(4), integers[0]};
}

Value convolution_input(const Value& g, const Value& w, const ConvolutionForm& form,
                        const std::vector<int64_t>& extents) {
  const ConvolutionForm back = gradient_form(form, space_extents(w), extents, space_extents(g));
  if (is_dilated(back) && !is_dilated(form)) return input_region(g, w, form, extents);
  return convolution(g, transposed_weights(w, form.groups), back);
}

Value convolution(const Value& x, const Value& w, const ConvolutionForm& form) {
  check_form(x, w, form);
  const size_t space = space_of(form);
  const int64_t out = extent(w, 0);
  if (form.groups < 1 || out % form.groups != 0 || x.shape().back() != Dim(extent(w, space + 1) * form.groups))
    refuse(x, w, fmt::format("{} groups do not divide the channels of both", form.groups));
  for (size_t k = 0; k < space; ++k)
    if (extent(w, k + 1) < 1 || span_of(form, k, extent(w, k + 1)) > padded_extent(form, k, extent(x, k + 1)))
      refuse(x, w, fmt::format("the kernel does not fit into axis {} of the padded input", k + 1));
  const Extents kernel = space_extents(w), extents = space_extents(x);

  Composite region;
  region.name = "convolution";
  region.key = form_key(form);
  region.body = [form](In in) -> Values { return {forward_body(in[0], in[1], form)}; };
  region.vjp = [form, kernel, extents](In in, In, In g) -> Values {
    return {convolution_input(g[0], in[1], form, extents), convolution_weights(in[0], g[0], form, kernel)};
  };
  region.jvp = [form](In in, In, In t) -> Values {
    return {sum_of(t[0] ? convolution(t[0], in[1], form) : Value{}, t[1] ? convolution(in[0], t[1], form) : Value{})};
  };
  region.vmap = [form](In in, std::span<const int> axes) { return convolution_vmap(form, in, axes); };
  region.call = "convolution";
  region.integers = integers_of(form);
  return composite(std::make_shared<Composite>(std::move(region)), {x, w})[0];
}

Value convolution_weights(const Value& x, const Value& g, const ConvolutionForm& form,
                          const std::vector<int64_t>& kernel) {
  const Extents extents = space_extents(x);
  Composite region;
  region.name = "convolution_weights";
  region.key = fmt::format("{} kernel({})", form_key(form), fmt::join(kernel, ","));
  region.body = [form, kernel](In in) -> Values { return {weights_body(in[0], in[1], form, kernel)}; };
  region.vjp = [form, extents](In in, In, In h) -> Values {
    return {convolution_input(in[1], h[0], form, extents), convolution(in[0], h[0], form)};
  };
  region.jvp = [form, kernel](In in, In, In t) -> Values {
    return {sum_of(t[0] ? convolution_weights(t[0], in[1], form, kernel) : Value{},
                   t[1] ? convolution_weights(in[0], t[1], form, kernel) : Value{})};
  };
  region.vmap = [form, kernel](In in, std::span<const int> axes) {
    return convolution_weights_vmap(form, kernel, in, axes);
  };
  region.call = "convolution_weights";
  region.integers = integers_of(form);
  return composite(std::make_shared<Composite>(std::move(region)), {x, g})[0];
}

}  // namespace weft::graph
