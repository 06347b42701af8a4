#include "compiler/rewrite/gemv.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "compiler/ir/index_map.h"
#include "compiler/ir/rewriter.h"
#include "compiler/ir/unpacking.h"

namespace weft::compiler {

using graph::Op;

namespace {

// Shorter sums run as well in a library call or a dot kernel.
constexpr int64_t least_depth = 16;
// A norm of the vector is recomputed for every row of the matrix if a warp can hold the vector in registers, and the
// matrix (in elements) is so small that another launch would cost more than the repeated reads.
constexpr int64_t longest_norm = 1024, most_normed = 4 << 20;
// So few sums of so many products leave most of a GPU idle unless they are split.
constexpr int64_t few_sums = 512, many_products = 4096;

std::vector<int64_t> free_axes(const Shape& shape, const std::vector<int64_t>& contracted) {
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis)
    if (!has_axis(contracted, axis)) axes.push_back(axis);
  return axes;
}

int64_t extent(const Shape& shape, const std::vector<int64_t>& axes) {
  int64_t n = 1;
  for (int64_t axis : axes) n *= shape[static_cast<size_t>(axis)].bound();
  return n;
}

/// Tells which operands are vectors: all their free axes have extent 1.
struct OneRow {
  bool left = false, right = false;
};

/// Returns whether a dot without batch axes multiplies floats of known extents, enough of them for each result.
bool is_gemv_like(const Ir& ir, const IrNode& dot) {
  if (!dot.attrs->batch.empty()) return false;
  const graph::Type &a = ir[dot.inputs[0]].type, &b = ir[dot.inputs[1]].type;
  const auto is_static = [](const Shape& shape) {
    return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_static() && d.bound() > 0; });
  };
  return is_float(dot.type.dtype) && is_float(a.dtype) && is_float(b.dtype) && is_static(a.shape) &&
         is_static(b.shape) && extent(a.shape, dot.attrs->axes) >= least_depth;
}

OneRow one_row(const Ir& ir, const IrNode& dot) {
  if (dot.op != Op::dot || !is_gemv_like(ir, dot)) return {};
  const Shape &a = ir[dot.inputs[0]].type.shape, &b = ir[dot.inputs[1]].type.shape;
  return {extent(a, free_axes(a, dot.attrs->axes)) == 1, extent(b, free_axes(b, dot.attrs->axes2)) == 1};
}

/// A dot of several vectors with a matrix that is unpacked: they share what unpacks it, which takes longer than to
/// multiply it.
struct SeveralVectors {
  int64_t count = 0;  // 0: the dot is none
  bool left = false;  // the rows are the left operand
};

SeveralVectors several_vectors(const Ir& ir, const IrNode& dot) {
  constexpr int64_t most = 4;  // more are multiplied by tensor cores
  if (dot.op != Op::dot || !is_gemv_like(ir, dot)) return {};
  for (const bool left : {true, false}) {
    const NodeId rows = dot.inputs[left ? 0 : 1], matrix = dot.inputs[left ? 1 : 0];
    const Shape& shape = ir[rows].type.shape;
    const int64_t count = extent(shape, free_axes(shape, left ? dot.attrs->axes : dot.attrs->axes2));
    if (count > 1 && count <= most && volume(ir[matrix].type.shape) > 16 * volume(shape) &&
        unpacking(ir, matrix).operations > 0)
      return {count, left};
  }
  return {};
}

class GemvRewriter : Rewriter {
 public:
  explicit GemvRewriter(Ir ir) : Rewriter(std::move(ir)) {}

  Ir run() {
    return rewrite([&](NodeId, IrNode node) -> NodeId {
      return node.op == Op::dot ? dot(std::move(node)) : add(std::move(node));
    });
  }

 private:
  /// Returns v with its free axes first, then the contracted ones in their order.
  NodeId permuted(NodeId v, const std::vector<int64_t>& contracted) {
    const Shape& shape = to_[v].type.shape;
    std::vector<int64_t> order = free_axes(shape, contracted);
    order.insert(order.end(), contracted.begin(), contracted.end());
    if (std::is_sorted(order.begin(), order.end())) return v;
    Shape to;
    for (int64_t axis : order) to.push_back(shape[static_cast<size_t>(axis)]);
    IrNode node = made(Op::permute, {v}, std::move(to), to_[v].type.dtype);
    node.attrs.edit().axes = order;
    return add(std::move(node));
  }

  bool is_scalar(NodeId id) const { return volume(to_[id].type.shape) == 1; }

  /// Returns x if node `id` is Σ x² in float32 over all of x, and x has as many elements as the vector; else -1.
  NodeId squared(NodeId id, int64_t depth) const {
    const IrNode& n = to_[id];
    if (n.op != Op::reduce || n.attrs->reducer != kernel::Reducer::sum || !is_scalar(id) || n.type.dtype != float32)
      return -1;
    const IrNode& operand = to_[n.inputs[0]];
    const bool square = operand.op == Op::square || (operand.op == Op::mul && operand.inputs[0] == operand.inputs[1]);
    return square && operand.type.dtype == float32 && volume(operand.type.shape) == depth ? operand.inputs[0]
                                                                                          : NodeId{};
  }

  /// Returns whether a scalar may be recomputed for every row of the matrix: it is computed elementwise from
  /// parameters, constants and sums of squares. Adds the number of these sums to `sums`; `steps` bounds the walk.
  bool repeatable(NodeId id, int64_t depth, int& sums, int& steps) const {
    if (--steps < 0 || !is_scalar(id)) return false;
    if (squared(id, depth) >= 0) return ++sums, true;
    const IrNode& n = to_[id];
    if (n.op == Op::constant || n.op == Op::parameter) return true;
    if (!is_elementwise(n.op) && n.op != Op::reshape && n.op != Op::broadcast) return false;
    return std::all_of(n.inputs.begin(), n.inputs.end(),
                       [&](int input) { return repeatable(input, depth, sums, steps); });
  }

  /// Returns the scalar recomputed for each row of the matrix: shape `rows`.
  NodeId repeated(NodeId id, const Shape& rows, const Shape& whole) {
    const int64_t depth = volume(whole) / std::max<int64_t>(1, volume(rows));
    if (const NodeId x = squared(id, depth); x >= 0) {
      const int all = shaped(
          Op::broadcast,
          shaped(Op::reshape, x, Shape(whole.begin() + static_cast<std::ptrdiff_t>(rows.size()), whole.end())), whole);
      return sum_of(add(made(Op::mul, {all, all}, whole, float32)), rows, true);
    }
    IrNode n = to_[id];
    if (n.op == Op::reshape || n.op == Op::broadcast) return repeated(n.inputs[0], rows, whole);
    if (!is_elementwise(n.op)) return shaped(Op::broadcast, shaped(Op::reshape, id, {}), rows);
    for (NodeId& input : n.inputs) input = repeated(input, rows, whole);
    n.type.shape = rows;
    n.phase = phase_;
    return add(std::move(n));
  }

  /// Returns the sum of a multiplication over the contracted axes, marked as a GEMV.
  NodeId sum_of(int products, const Shape& rows, bool scaled) {
    IrNode sum = made(Op::reduce, {products}, rows, to_[products].type.dtype);
    sum.attrs.edit().reducer = kernel::Reducer::sum;
    for (size_t axis = rows.size(); axis < to_[products].type.shape.size(); ++axis)
      sum.attrs.edit().axes.push_back(static_cast<int64_t>(axis));
    sum.gemv = true;
    sum.scaled = scaled;
    return add(std::move(sum));
  }

  /// Splits a vector of the form s · x₁ · x₂ · x₃ (one to three factors) where the scalar s depends on a sum of squares
  /// (an RMS norm). Returns nothing for other vectors. The GEMV then multiplies its result by s: each program
  /// recomputes s from what it reads anyway, and the normalized vector is not rounded to fewer bits in between.
  struct Scaled {
    std::vector<NodeId> factors, scalars;
  };
  Scaled scaled_row(int row, int64_t depth) const {
    const auto narrows = [&](NodeId id) {
      return to_[id].op == Op::cast && to_[to_[id].inputs[0]].type.dtype == float32;
    };
    while (to_[row].op == Op::reshape || narrows(row)) row = to_[row].inputs[0];
    Scaled found;
    std::vector<NodeId> pending{row};
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      const IrNode& n = to_[id];
      int sums = 0, steps = 24;
      if (n.op == Op::mul && n.type.dtype == float32) pending.insert(pending.end(), n.inputs.begin(), n.inputs.end());
      else if (n.op == Op::broadcast && repeatable(n.inputs[0], depth, sums, steps) && sums > 0)
        found.scalars.push_back(n.inputs[0]);
      else found.factors.push_back(id);
    }
    if (found.scalars.size() != 1 || found.factors.empty() || found.factors.size() > 3) return {};
    return found;
  }

  /// Returns whether a value of one element, or of as many as the vector, depends on a reduction over the vector
  /// through elementwise operators, reshapes and broadcasts alone.
  bool rests_on_sums(NodeId id, int64_t depth) {
    const IrNode& n = to_[id];
    if (n.op == Op::reduce) return !has_results(n) && is_scalar(id) && volume(to_[n.inputs[0]].type.shape) == depth;
    if (!is_elementwise(n.op) && n.op != Op::reshape && n.op != Op::broadcast) return false;
    if (const auto it = rests_.find({id, depth}); it != rests_.end()) return it->second;
    const int64_t size = volume(n.type.shape);
    const bool found = (size == 1 || size == depth) && std::any_of(n.inputs.begin(), n.inputs.end(), [&](int input) {
                         return rests_on_sums(input, depth);
                       });
    return rests_[{id, depth}] = found;
  }

  /// Counts the nodes of the norm: those that depend on its reductions. Stops one past `longest_chain`.
  size_t norm_size(NodeId id, int64_t depth, std::set<NodeId>& seen) {
    if (seen.size() <= longest_chain && rests_on_sums(id, depth) && seen.insert(id).second)
      for (NodeId input : to_[id].inputs) norm_size(input, depth, seen);
    return seen.size();
  }

  /// Returns the norm of the vector recomputed for each row of the matrix: each operator has the shape of the matrix,
  /// each reduction runs over the contracted axes. Values that depend on no reduction are broadcast; they lie in memory
  /// and are only read more often.
  NodeId normed(NodeId id, const Shape& rows, const Shape& whole) {
    if (const auto it = normed_.find(id); it != normed_.end()) return it->second;
    const int64_t depth = volume(whole) / volume(rows);
    const bool number = is_scalar(id);
    const Shape& shape = number ? rows : whole;
    NodeId result = -1;
    if (!rests_on_sums(id, depth)) {
      const Shape suffix(whole.begin() + static_cast<std::ptrdiff_t>(rows.size()), whole.end());
      result = shaped(Op::broadcast, shaped(Op::reshape, id, number ? Shape{} : suffix), shape);
    } else if (IrNode n = to_[id]; n.op == Op::reduce) {
      IrNode sum = made(Op::reduce, {normed(n.inputs[0], rows, whole)}, rows, n.type.dtype);
      sum.attrs.edit().reducer = n.attrs->reducer;
      sum.scaled = true;
      for (size_t axis = rows.size(); axis < whole.size(); ++axis)
        sum.attrs.edit().axes.push_back(static_cast<int64_t>(axis));
      result = add(std::move(sum));
    } else if (!is_elementwise(n.op)) {
      const int from = n.inputs[0];
      result = normed(from, rows, whole);
      if (is_scalar(from) && !number) {
        Shape column = rows;
        column.resize(whole.size(), Dim(1));
        result = shaped(Op::broadcast, shaped(Op::reshape, result, column), whole);
      }
    } else {
      for (NodeId& input : n.inputs) input = normed(input, rows, whole);
      n.type.shape = shape;
      n.phase = phase_;
      result = add(std::move(n));
    }
    return normed_[id] = result;
  }

  /// Returns the vector's norm recomputed for each row, or -1 if it is no norm or too costly.
  NodeId normed_row(int row, const Shape& rows, const Shape& whole) {
    const int64_t depth = volume(whole) / std::max<int64_t>(1, volume(rows));
    std::set<NodeId> seen;
    normed_.clear();
    if (depth == 1 || depth > longest_norm || volume(whole) > most_normed || rows.empty() ||
        !rests_on_sums(row, depth) || norm_size(row, depth, seen) > longest_chain)
      return -1;
    return normed(row, rows, whole);
  }

  /// Returns what a matrix that is unpacked in float32 is before it is rounded to fewer bits for a product.
  NodeId unrounded(NodeId matrix) {
    if (unpacking(to_, matrix).operations == 0) return matrix;
    const IrNode& n = to_[matrix];
    if (n.op == Op::cast && is_low_float(n.type.dtype) && to_[n.inputs[0]].type.dtype == float32) return n.inputs[0];
    if (n.op != Op::permute && n.op != Op::reshape) return matrix;
    IrNode moved = n;
    moved.inputs[0] = unrounded(n.inputs[0]);
    if (moved.inputs[0] == n.inputs[0]) return matrix;
    moved.type.dtype = to_[moved.inputs[0]].type.dtype;
    return add(std::move(moved));
  }

  /// Replaces such a dot by a GEMV for each vector, which one kernel computes, and joins their results.
  NodeId rows_of(const IrNode& dot, const SeveralVectors& several) {
    const graph::Type result = dot.type;
    const Dtype wide = result.dtype == float64 ? float64 : float32;
    const NodeId rows = dot.inputs[several.left ? 0 : 1], matrix = dot.inputs[several.left ? 1 : 0];
    const auto &axes = several.left ? dot.attrs->axes : dot.attrs->axes2,
               &matrix_axes = several.left ? dot.attrs->axes2 : dot.attrs->axes;
    const NodeId m = cast(permuted(unrounded(matrix), matrix_axes), wide), all = permuted(rows, axes);
    const Shape whole = to_[m].type.shape;
    const auto depth = static_cast<std::ptrdiff_t>(matrix_axes.size());
    const Shape suffix(whole.end() - depth, whole.end()), sums(whole.begin(), whole.end() - depth);
    const int64_t length = volume(suffix), results = volume(sums);
    const NodeId table = shaped(Op::reshape, all, {Dim(several.count), Dim(length)});
    std::vector<NodeId> parts;
    for (int64_t row = 0; row < several.count; ++row) {
      IrNode one = made(Op::slice, {table}, {Dim(1), Dim(length)}, to_[table].type.dtype);
      one.attrs.edit().shape = one.type.shape;
      one.attrs.edit().start = {row, 0}, one.attrs.edit().step = {1, 1};
      const NodeId v = cast(shaped(Op::reshape, add(std::move(one)), suffix), wide);
      const NodeId products = add(made(Op::mul, {shaped(Op::broadcast, v, whole), m}, whole, wide));
      parts.push_back(shaped(Op::reshape, sum_of(products, sums, false), {Dim(1), Dim(results)}));
    }
    IrNode joined = made(Op::concat, std::move(parts), {Dim(several.count), Dim(results)}, wide);
    joined.attrs.edit().axes = {0};
    NodeId y = add(std::move(joined));
    if (!several.left) {
      IrNode turned = made(Op::permute, {y}, {Dim(results), Dim(several.count)}, wide);
      turned.attrs.edit().axes = {1, 0};
      y = add(std::move(turned));
    }
    return cast(shaped(Op::reshape, y, result.shape), result.dtype);
  }

  /// Replaces a GEMV by a multiplication and a sum, with the norm of its vector inside where possible; adds any other
  /// dot as it is.
  NodeId dot(IrNode node) {
    const auto [left, right] = one_row(to_, node);
    if (const SeveralVectors several = several_vectors(to_, node); several.count > 0) return rows_of(node, several);
    if (!left && !right) return add(std::move(node));
    const Dtype wide = node.type.dtype == float64 ? float64 : float32;
    const graph::Type result = node.type;
    const int row = left ? node.inputs[0] : node.inputs[1], matrix = left ? node.inputs[1] : node.inputs[0];
    const auto &row_axes = left ? node.attrs->axes : node.attrs->axes2,
               &matrix_axes = left ? node.attrs->axes2 : node.attrs->axes;

    const int m = cast(permuted(unrounded(matrix), matrix_axes), wide);
    const Shape whole = to_[m].type.shape;
    const auto depth = static_cast<std::ptrdiff_t>(matrix_axes.size());
    const Shape suffix(whole.end() - depth, whole.end()), rows(whole.begin(), whole.end() - depth);
    NodeId v = permuted(row, row_axes), number = -1, norm = -1;
    if (const Scaled scaled =
            v == row && wide == float32 && rows.size() > 0 ? scaled_row(row, volume(suffix)) : Scaled{};
        !scaled.scalars.empty()) {
      v = scaled.factors[0];
      for (size_t k = 1; k < scaled.factors.size(); ++k)
        v = add(made(Op::mul, {v, scaled.factors[k]}, to_[v].type.shape, float32));
      number = repeated(scaled.scalars[0], rows, whole);
    } else if (v == row) {
      norm = normed_row(row, rows, whole);
    }
    v = norm >= 0 ? cast(norm, wide) : shaped(Op::broadcast, cast(shaped(Op::reshape, v, suffix), wide), whole);
    int y = sum_of(add(made(Op::mul, {v, m}, whole, wide)), rows, number >= 0 || norm >= 0);
    if (number >= 0) y = add(made(Op::mul, {y, number}, rows, wide));
    return shaped(Op::reshape, cast(y, result.dtype), result.shape);
  }

  static constexpr size_t longest_chain = 48;
  std::map<std::pair<NodeId, int64_t>, bool> rests_;
  std::map<NodeId, NodeId> normed_;  // by node of the current norm: its copy for each row of the matrix
};

/// Returns whether the dot multiplies a vector by a matrix whose leading axes are contracted, with few results of many
/// products each: the gradient by the weights of a layer with one output.
bool is_deep(const Ir& ir, const IrNode& dot) {
  const auto [left, right] = one_row(ir, dot);
  if (!left && !right) return false;
  const auto& axes = left ? dot.attrs->axes2 : dot.attrs->axes;
  const IrNode& matrix = ir[dot.inputs[left ? 1 : 0]];
  for (size_t k = 0; k < axes.size(); ++k)
    if (axes[k] != static_cast<int64_t>(k)) return false;
  const int64_t results = volume(dot.type.shape);
  return matrix.op != Op::permute && results >= least_depth && results <= few_sums &&
         extent(matrix.type.shape, axes) >= many_products;
}

class DeepGemvRewriter : Rewriter {
 public:
  explicit DeepGemvRewriter(Ir ir) : Rewriter(std::move(ir)) {}

  Ir run() {
    return rewrite([&](NodeId, IrNode node) -> NodeId {
      return node.op == Op::dot && is_deep(to_, node) ? sum_down(node) : add(std::move(node));
    });
  }

 private:
  /// Returns the dot as a sum down the columns of the matrix, each row of it times an element of the vector.
  NodeId sum_down(const IrNode& dot) {
    const bool left = one_row(to_, dot).left;
    const Dtype wide = dot.type.dtype == float64 ? float64 : float32;
    const auto& row_axes = left ? dot.attrs->axes : dot.attrs->axes2;
    const NodeId matrix = cast(dot.inputs[left ? 1 : 0], wide);
    const Shape whole = to_[matrix].type.shape;
    const auto depth = static_cast<std::ptrdiff_t>(row_axes.size());
    NodeId row = dot.inputs[left ? 0 : 1];
    if (!std::is_sorted(row_axes.begin(), row_axes.end())) return add(dot);
    Shape beside(whole.begin(), whole.begin() + depth);
    beside.resize(whole.size(), Dim(1));
    row = shaped(Op::broadcast, cast(shaped(Op::reshape, row, beside), wide), whole);
    IrNode sum = made(Op::reduce, {add(made(Op::mul, {row, matrix}, whole, wide))},
                      Shape(whole.begin() + depth, whole.end()), wide);
    sum.attrs.edit().reducer = kernel::Reducer::sum;
    for (int64_t axis = 0; axis < depth; ++axis) sum.attrs.edit().axes.push_back(axis);
    return shaped(Op::reshape, cast(add(std::move(sum)), dot.type.dtype), dot.type.shape);
  }
};

}  // namespace

Ir deep_gemv(Ir ir) {
  const bool any = std::any_of(ir.nodes.begin(), ir.nodes.end(), [&](const IrNode& node) { return is_deep(ir, node); });
  return any ? DeepGemvRewriter(std::move(ir)).run() : ir;
}

Ir gemv(Ir ir) {
  const bool any = std::any_of(ir.nodes.begin(), ir.nodes.end(), [&](const IrNode& node) {
    const OneRow row = one_row(ir, node);
    return row.left || row.right || several_vectors(ir, node).count > 0;
  });
  if (!any) return ir;
  return GemvRewriter(std::move(ir)).run();
}

}  // namespace weft::compiler
