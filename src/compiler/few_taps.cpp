#include "compiler/few_taps.h"

#include <algorithm>

#include "compiler/access.h"
#include "compiler/rewrite.h"

namespace weft::compiler {

using graph::Op;

namespace {

constexpr int64_t most_taps = 16;  // sums that one kernel keeps in registers
constexpr int64_t least_channels = 16;  // of the output: lanes of a warp

/// The integers of graph/convolution.h: groups, then stride, low, high, dilation and input dilation of each axis of space.
struct Form {
  explicit Form(const std::vector<int64_t>& integers) : space((integers.size() - 1) / 5), groups(integers[0]) {
    const auto part = [&](size_t k) {
      const auto begin = integers.begin() + static_cast<std::ptrdiff_t>(1 + k * space);
      return std::vector<int64_t>(begin, begin + static_cast<std::ptrdiff_t>(space));
    };
    stride = part(0), low = part(1), high = part(2), dilation = part(3), input_dilation = part(4);
  }
  size_t space;
  int64_t groups;
  std::vector<int64_t> stride, low, high, dilation, input_dilation;
};

class FewTaps : Rewriter {
 public:
  explicit FewTaps(Ir ir) : Rewriter(std::move(ir)) {}

  Ir run() {
    return rewrite([&](int id, IrNode node) { return has_few_taps(from_[id], from_) ? sums(node) : add(std::move(node)); });
  }

 private:
  /// x with zeros around it, or without the margins that no window reaches.
  int padded(int x, const Form& form) {
    std::vector<int64_t> low(form.space + 2, 0), high = low;
    Shape shape = to_[x].type.shape;
    for (size_t k = 0; k < form.space; ++k) {
      low[k + 1] = form.low[k], high[k + 1] = form.high[k];
      shape[k + 1] = shape[k + 1].bound() + low[k + 1] + high[k + 1];
    }
    if (shape == to_[x].type.shape) return x;
    IrNode node = made(Op::pad, {x}, shape, to_[x].type.dtype);
    node.attrs.low = low, node.attrs.high = high, node.attrs.number = Number::of_real(0);
    return add(std::move(node));
  }

  /// What each output sees through the tap (k…, c): [N, o…, 1].
  int seen(int x, const Form& form, const Shape& places, const std::vector<int64_t>& tap) {
    Shape shape = places;
    shape.back() = 1;
    IrNode node = made(Op::slice, {x}, shape, to_[x].type.dtype);
    node.attrs.shape = shape;
    node.attrs.start.assign(shape.size(), 0);
    node.attrs.step.assign(shape.size(), 1);
    for (size_t k = 0; k < form.space; ++k) {
      node.attrs.start[k + 1] = tap[k] * form.dilation[k];
      node.attrs.step[k + 1] = form.stride[k];
    }
    node.attrs.start.back() = tap.back();
    return add(std::move(node));
  }

  /// [O, k…, C]: for each tap the sum of g times what is seen through it, over examples and places.
  int sums(const IrNode& call) {
    const Form form(call.attrs.composite->integers);
    const graph::Type result = call.type;
    const int g = cast(call.inputs[1], float32), x = padded(cast(call.inputs[0], float32), form);
    const Shape places = to_[g].type.shape, one{1, places.back()};
    std::vector<int64_t> extents;
    for (size_t k = 1; k < result.shape.size(); ++k) extents.push_back(result.shape[k].bound());
    std::vector<int64_t> tap(extents.size(), 0);
    std::vector<int> each;
    for (int64_t left = volume(result.shape) / result.shape[0].bound(); left > 0; --left) {
      const int product = add(made(Op::mul, {g, shaped(Op::broadcast, seen(x, form, places, tap), places)}, places, float32));
      IrNode sum = made(Op::fold, {product}, {places.back()}, float32);
      sum.attrs.reducer = kernel::Reducer::sum;
      for (size_t axis = 0; axis + 1 < places.size(); ++axis) sum.attrs.axes.push_back(static_cast<int64_t>(axis));
      each.push_back(shaped(Op::reshape, add(std::move(sum)), one));
      for (size_t k = tap.size(); k-- > 0 && ++tap[k] == extents[k];) tap[k] = 0;
    }
    const auto taps = static_cast<int64_t>(each.size());
    int all = each[0];
    if (taps > 1) {
      IrNode joined = made(Op::concat, each, {taps, places.back()}, float32);
      joined.attrs.axes = {0};
      all = add(std::move(joined));
    }
    IrNode turned = made(Op::permute, {all}, {places.back(), taps}, float32);
    turned.attrs.axes = {1, 0};
    return cast(shaped(Op::reshape, add(std::move(turned)), result.shape), result.dtype);
  }
};

}  // namespace

bool has_few_taps(const IrNode& node, const Ir& ir) {
  if (node.op != Op::composite || node.attrs.composite->call != "convolution_weights") return false;
  const graph::Type &x = ir[node.inputs[0]].type, &g = ir[node.inputs[1]].type;
  const Form form(node.attrs.composite->integers);
  const auto none_negative = [](const std::vector<int64_t>& v) { return std::all_of(v.begin(), v.end(), [](int64_t e) { return e >= 0; }); };
  const auto is_static = [](const Shape& shape) { return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_static() && d.bound() > 0; }); };
  if (form.groups != 1 || !none_negative(form.low) || !none_negative(form.high) || !is_static(x.shape) || !is_static(g.shape) || x.dtype == float64) return false;
  if (std::any_of(form.input_dilation.begin(), form.input_dilation.end(), [](int64_t d) { return d != 1; })) return false;
  const int64_t channels = node.type.shape[0].bound();
  return channels >= least_channels && volume(node.type.shape) <= most_taps * channels;
}

Ir few_taps(Ir ir) { return FewTaps(std::move(ir)).run(); }

}  // namespace weft::compiler
