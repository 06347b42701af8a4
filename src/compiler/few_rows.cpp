#include "compiler/few_rows.h"

#include <algorithm>

namespace weft::compiler {

using graph::Op;

namespace {

// Of shorter sums a library's call or a block of the dot class does as well.
constexpr int64_t least_depth = 16;

bool contains(const std::vector<int64_t>& list, int64_t axis) { return std::count(list.begin(), list.end(), axis) > 0; }

std::vector<int64_t> free_axes(const Shape& shape, const std::vector<int64_t>& contracted) {
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis)
    if (!contains(contracted, axis)) axes.push_back(axis);
  return axes;
}

int64_t extent(const Shape& shape, const std::vector<int64_t>& axes) {
  int64_t n = 1;
  for (int64_t axis : axes) n *= shape[static_cast<size_t>(axis)].bound();
  return n;
}

class Rewriter {
 public:
  explicit Rewriter(Ir ir) : from_(std::move(ir)), renamed_(from_.nodes.size()) {}

  Ir run() {
    for (int id = 0; id < from_.size(); ++id) {
      IrNode node = from_[id];
      for (int& input : node.inputs) input = renamed_[static_cast<size_t>(input)];
      renamed_[static_cast<size_t>(id)] = node.op == Op::dot ? dot(std::move(node)) : add(std::move(node));
    }
    for (int id : from_.inputs) to_.inputs.push_back(renamed_[static_cast<size_t>(id)]);
    for (int id : from_.outputs) to_.outputs.push_back(renamed_[static_cast<size_t>(id)]);
    return std::move(to_);
  }

 private:
  int add(IrNode node) {
    to_.nodes.push_back(std::move(node));
    return to_.size() - 1;
  }

  IrNode made(Op op, std::vector<int> inputs, Shape shape, Dtype dtype) const {
    IrNode node;
    node.op = op;
    node.inputs = std::move(inputs);
    node.type = {std::move(shape), dtype};
    node.stage = stage_;
    return node;
  }

  int cast(int v, Dtype dtype) {
    if (to_[v].type.dtype == dtype) return v;
    IrNode node = made(Op::cast, {v}, to_[v].type.shape, dtype);
    node.attrs.dtype = dtype;
    return add(std::move(node));
  }

  int shaped(Op op, int v, const Shape& shape) {
    if (to_[v].type.shape == shape) return v;
    IrNode node = made(op, {v}, shape, to_[v].type.dtype);
    node.attrs.shape = shape;
    return add(std::move(node));
  }

  /// The free axes first, then the contracted ones in their order.
  int turned(int v, const std::vector<int64_t>& contracted) {
    const Shape& shape = to_[v].type.shape;
    std::vector<int64_t> order = free_axes(shape, contracted);
    order.insert(order.end(), contracted.begin(), contracted.end());
    if (std::is_sorted(order.begin(), order.end())) return v;
    Shape to;
    for (int64_t axis : order) to.push_back(shape[static_cast<size_t>(axis)]);
    IrNode node = made(Op::permute, {v}, std::move(to), to_[v].type.dtype);
    node.attrs.axes = order;
    return add(std::move(node));
  }

  int dot(IrNode node) {
    const graph::Type &a = to_[node.inputs[0]].type, &b = to_[node.inputs[1]].type;
    const auto is_static = [](const Shape& shape) { return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_static() && d.bound() > 0; }); };
    const bool fits = node.attrs.batch.empty() && is_float(node.type.dtype) && is_float(a.dtype) && is_float(b.dtype) && is_static(a.shape) && is_static(b.shape) &&
                      extent(a.shape, node.attrs.axes) >= least_depth;
    const bool left = fits && extent(a.shape, free_axes(a.shape, node.attrs.axes)) == 1, right = fits && extent(b.shape, free_axes(b.shape, node.attrs.axes2)) == 1;
    if (!left && !right) return add(std::move(node));
    stage_ = node.stage;
    const Dtype wide = node.type.dtype == float64 ? float64 : float32;
    const graph::Type result = node.type;
    const int row = left ? node.inputs[0] : node.inputs[1], matrix = left ? node.inputs[1] : node.inputs[0];
    const auto &row_axes = left ? node.attrs.axes : node.attrs.axes2, &matrix_axes = left ? node.attrs.axes2 : node.attrs.axes;

    const int m = cast(turned(matrix, matrix_axes), wide);
    const Shape whole = to_[m].type.shape;
    const auto depth = static_cast<std::ptrdiff_t>(matrix_axes.size());
    int v = shaped(Op::reshape, turned(row, row_axes), Shape(whole.end() - depth, whole.end()));
    v = shaped(Op::broadcast, cast(v, wide), whole);
    IrNode sum = made(Op::fold, {add(made(Op::mul, {v, m}, whole, wide))}, Shape(whole.begin(), whole.end() - depth), wide);
    sum.attrs.reducer = kernel::Reducer::sum;
    for (auto axis = static_cast<int64_t>(whole.size()) - depth; axis < static_cast<int64_t>(whole.size()); ++axis) sum.attrs.axes.push_back(axis);
    sum.product = true;
    return shaped(Op::reshape, cast(add(std::move(sum)), result.dtype), result.shape);
  }

  Ir from_, to_;
  std::vector<int> renamed_;
  int stage_ = 0;
};

}  // namespace

Ir few_rows(Ir ir) { return Rewriter(std::move(ir)).run(); }

}  // namespace weft::compiler
