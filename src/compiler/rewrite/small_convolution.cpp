#include "compiler/rewrite/small_convolution.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "compiler/ir/index_map.h"
#include "compiler/ir/rewriter.h"

namespace weft::compiler {

using graph::Op;

namespace {

constexpr int64_t least_channels = 16;  // of the output: lanes of a warp

/// Unpacks the integers of graph/regions/convolution.h: groups, then stride, low, high, dilation and input dilation of
/// each spatial axis.
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

/// The kind of composite, if it has few taps.
enum class Kind : uint8_t { none, forward, weights };

/// Returns the kind of a node; `none` unless it is a static convolution without groups, input dilation or negative
/// padding, with few taps.
Kind kind_of(const Ir& ir, const IrNode& node) {
  if (node.op != Op::composite) return Kind::none;
  const std::string& call = node.attrs->composite->call;
  const Kind kind = call == "convolution" ? Kind::forward : call == "convolution_weights" ? Kind::weights : Kind::none;
  if (kind == Kind::none) return Kind::none;
  const Form form(node.attrs->composite->integers);
  const auto none_negative = [](const std::vector<int64_t>& v) {
    return std::all_of(v.begin(), v.end(), [](int64_t e) { return e >= 0; });
  };
  const auto is_static = [](const graph::Type& t) {
    return std::all_of(t.shape.begin(), t.shape.end(), [](const Dim& d) { return d.is_static() && d.bound() > 0; });
  };
  const graph::Type &x = ir[node.inputs[0]].type, &second = ir[node.inputs[1]].type,
                    &w = kind == Kind::forward ? second : node.type;
  if (form.groups != 1 || x.dtype == float64 || !none_negative(form.low) || !none_negative(form.high) ||
      !is_static(x) || !is_static(second))
    return Kind::none;
  if (std::any_of(form.input_dilation.begin(), form.input_dilation.end(), [](int64_t d) { return d != 1; }))
    return Kind::none;
  const int64_t channels = w.shape[0].bound();
  return channels >= least_channels && volume(w.shape) <= most_convolution_taps * channels ? kind : Kind::none;
}

class SmallConvolution : Rewriter {
 public:
  explicit SmallConvolution(Ir ir) : Rewriter(std::move(ir)) {}

  Ir run() {
    return rewrite([&](NodeId id, IrNode node) -> NodeId {
      switch (kind_of(from_, from_[id])) {
        case Kind::forward: return forward(node);
        case Kind::weights: return weights(node);
        case Kind::none: break;
      }
      // A slice of a few elements of a convolution (the shift of a norm's moments) recomputes them instead of reading
      // the stored result, so that the kernel that computes the convolution can use them.
      if (node.op == Op::slice && volume(node.type.shape) * few <= volume(to_[node.inputs[0]].type.shape))
        node.inputs[0] = recomputed(node.inputs[0], 4);
      return add(std::move(node));
    });
  }

 private:
  static constexpr int64_t few = 1024;

  /// Returns x padded with zeros; x itself if there is no padding. The result is materialized, so that bounds are
  /// checked once and not for every tap of every output.
  NodeId padded(NodeId x, const Form& form) {
    std::vector<int64_t> low(form.space + 2, 0), high = low;
    Shape shape = to_[x].type.shape;
    for (size_t k = 0; k < form.space; ++k) {
      low[k + 1] = form.low[k], high[k + 1] = form.high[k];
      shape[k + 1] = shape[k + 1].bound() + low[k + 1] + high[k + 1];
    }
    if (shape == to_[x].type.shape) return x;
    const auto [known, fresh] = padded_.try_emplace({x, low, high}, -1);
    if (!fresh) return known->second;
    IrNode node = made(Op::pad, {x}, shape, to_[x].type.dtype);
    graph::Attrs& attrs = node.attrs.edit();
    attrs.low = low, attrs.high = high, attrs.number = Number::of_real(0);
    node.materialized = true;
    return known->second = add(std::move(node));
  }

  /// Returns what the outputs read through the tap (k…, c), as float32, broadcast over the output channels: shape
  /// `positions`.
  NodeId seen(NodeId x, const Form& form, const Shape& positions, const std::vector<int64_t>& tap) {
    Shape shape = positions;
    shape.back() = 1;
    IrNode node = made(Op::slice, {x}, shape, to_[x].type.dtype);
    graph::Attrs& attrs = node.attrs.edit();
    attrs.shape = shape;
    attrs.start.assign(shape.size(), 0);
    attrs.step.assign(shape.size(), 1);
    for (size_t k = 0; k < form.space; ++k) {
      attrs.start[k + 1] = tap[k] * form.dilation[k];
      attrs.step[k + 1] = form.stride[k];
    }
    attrs.start.back() = tap.back();
    return cast(shaped(Op::broadcast, add(std::move(node)), positions), float32);
  }

  /// Visits the taps of w [O, k…, C], row-major.
  template <class Visit>
  static void each_tap(const Shape& w, const Visit& visit) {
    std::vector<int64_t> tap(w.size() - 1, 0);
    for (int64_t left = volume(w) / w[0].bound(); left > 0; --left) {
      visit(tap);
      for (size_t k = tap.size(); k-- > 0 && ++tap[k] == w[k + 1].bound();) tap[k] = 0;
    }
  }

  /// Returns the convolution [N, o…, O]: the sum over the taps of input · weight, by fused multiply-adds.
  NodeId forward(const IrNode& call) {
    const Form form(call.attrs->composite->integers);
    const Shape positions = call.type.shape, w = to_[call.inputs[1]].type.shape;
    const NodeId x = padded(call.inputs[0], form);
    int sum = -1;
    each_tap(w, [&](const std::vector<int64_t>& tap) {
      Shape one(w.size(), 1);
      one[0] = w[0];
      IrNode node = made(Op::slice, {call.inputs[1]}, one, to_[call.inputs[1]].type.dtype);
      graph::Attrs& attrs = node.attrs.edit();
      attrs.shape = one;
      attrs.start = tap;
      attrs.start.insert(attrs.start.begin(), 0);
      attrs.step.assign(w.size(), 1);
      const int weight =
          cast(shaped(Op::broadcast, shaped(Op::reshape, add(std::move(node)), {w[0]}), positions), float32);
      const NodeId product = add(made(Op::mul, {seen(x, form, positions, tap), weight}, positions, float32));
      if (sum < 0) {
        sum = product;
        return;
      }
      IrNode total = made(Op::add, {sum, product}, positions, float32);
      total.fused = true;
      sum = add(std::move(total));
    });
    const int again = cast(sum, call.type.dtype);
    IrNode kept = to_[again];
    kept.materialized = true;
    const int all = add(std::move(kept));
    recomputed_[all] = again;
    return all;
  }

  /// Returns v with materialized convolutions replaced by their expressions, looking through `depth` elementwise
  /// operators; v itself if there are none.
  NodeId recomputed(NodeId v, int depth) {
    if (const auto known = recomputed_.find(v); known != recomputed_.end()) return known->second;
    if (depth == 0 || !is_elementwise(to_[v].op)) return v;
    IrNode node = to_[v];
    for (NodeId& input : node.inputs) input = recomputed(input, depth - 1);
    return node.inputs == to_[v].inputs ? v : add(std::move(node));
  }

  /// Returns the gradient of the weights [O, k…, C]: for each tap the sum of g · input over examples and positions.
  NodeId weights(const IrNode& call) {
    const Form form(call.attrs->composite->integers);
    const graph::Type result = call.type;
    const NodeId g = cast(call.inputs[1], float32), x = padded(call.inputs[0], form);
    const Shape positions = to_[g].type.shape, one{1, positions.back()};
    std::vector<NodeId> each;
    each_tap(result.shape, [&](const std::vector<int64_t>& tap) {
      IrNode sum = made(Op::reduce, {add(made(Op::mul, {g, seen(x, form, positions, tap)}, positions, float32))},
                        {positions.back()}, float32);
      sum.attrs.edit().reducer = kernel::Reducer::sum;
      for (size_t axis = 0; axis + 1 < positions.size(); ++axis)
        sum.attrs.edit().axes.push_back(static_cast<int64_t>(axis));
      each.push_back(shaped(Op::reshape, add(std::move(sum)), one));
    });
    const auto taps = static_cast<int64_t>(each.size());
    int all = each[0];
    if (taps > 1) {
      IrNode joined = made(Op::concat, each, {taps, positions.back()}, float32);
      joined.attrs.edit().axes = {0};
      all = add(std::move(joined));
    }
    IrNode transposed = made(Op::permute, {all}, {positions.back(), taps}, float32);
    transposed.attrs.edit().axes = {1, 0};
    return cast(shaped(Op::reshape, add(std::move(transposed)), result.shape), result.dtype);
  }

  std::map<std::tuple<int, std::vector<int64_t>, std::vector<int64_t>>, int> padded_;
  std::map<NodeId, NodeId> recomputed_;  // a convolution's materialized result → the same as an expression
};

}  // namespace

Ir small_convolution(Ir ir) {
  const bool any = std::any_of(ir.nodes.begin(), ir.nodes.end(),
                               [&](const IrNode& node) { return kind_of(ir, node) != Kind::none; });
  if (!any) return ir;
  return SmallConvolution(std::move(ir)).run();
}

}  // namespace weft::compiler
