#include "compiler/rewrite/reduction_algebra.h"

#include <algorithm>

#include "compiler/ir/index_map.h"
#include "compiler/rewrite/rules.h"
#include "kernel/interval.h"

namespace weft::compiler {

using graph::Attrs;
using graph::Op;

namespace {

// ---------------------------------------------------------------- Σ_i Σ_j x → Σ_ij x

/// Returns the axes longer than 1, in order, and their extents.
std::pair<std::vector<int64_t>, Shape> long_axes(const Shape& shape) {
  std::pair<std::vector<int64_t>, Shape> found;
  for (size_t k = 0; k < shape.size(); ++k)
    if (!(shape[k] == 1)) {
      found.first.push_back(static_cast<int64_t>(k));
      found.second.push_back(shape[k]);
    }
  return found;
}

RuleResult join_nested(RuleGraph& g, const IrNode& n) {
  NodeId inner = n.inputs[0];
  while (g[inner].op == Op::reshape && g.read_once(inner)) inner = g[inner].inputs[0];
  const IrNode& first = g[inner];
  if (first.op != Op::reduce || has_results(first) || !g.read_once(inner) || first.attrs->reducer != n.attrs->reducer ||
      first.type.dtype != n.type.dtype || is_low_float(n.type.dtype))
    return {};
  const auto [left, extents] = long_axes(first.type.shape);
  const auto [read, seen] = long_axes(g[n.inputs[0]].type.shape);
  if (extents != seen) return {};
  const Shape& operand = g[first.inputs[0]].type.shape;
  const auto rank = static_cast<int64_t>(operand.size());
  std::vector<int64_t> kept;  // by axis of the inner reduction's result: the operand's axis
  for (int64_t axis = 0; axis < rank; ++axis)
    if (!has_axis(first.attrs->axes, axis)) kept.push_back(axis);
  Attrs attrs;
  attrs.reducer = n.attrs->reducer;
  attrs.axes = first.attrs->axes;
  for (size_t k = 0; k < read.size(); ++k)
    if (has_axis(n.attrs->axes, read[k])) attrs.axes.push_back(kept[static_cast<size_t>(left[k])]);
  std::sort(attrs.axes.begin(), attrs.axes.end());
  if (attrs.axes.back() - attrs.axes.front() + 1 != static_cast<int64_t>(attrs.axes.size()) ||
      attrs.axes.back() + 1 == rank)
    return {};
  for (size_t k = 1; k < attrs.axes.size(); ++k)  // as reduce_symbolic has it
    if (!operand[static_cast<size_t>(attrs.axes[k])].is_static()) return {};
  graph::Type whole{{}, n.type.dtype};
  for (int64_t axis = 0; axis < rank; ++axis)
    if (!has_axis(attrs.axes, axis)) whole.shape.push_back(operand[static_cast<size_t>(axis)]);
  return g.reshape_to(g.make(Op::reduce, {first.inputs[0]}, std::move(whole), std::move(attrs)), n.type.shape);
}

constexpr Rule nested_table[] = {
    {"join_nested", "Σ_i Σ_j x → Σ_ij x",
     "also of other reducers; adjacent axes, not the last one; nothing else reads Σ_j x, which is not rounded to 16 "
     "bits",
     one_of<Op::reduce>, join_nested},
};

// ---------------------------------------------------------------- Σ (i = t ? x[i] : 0) → x[t]

constexpr int64_t shortest_row = 1024;  // a shorter row's sum costs little

/// The array before casts and reshapes, the index to read for each result, and the reduced axis.
struct OneHot {
  NodeId source, target;
  std::vector<Dtype> casts;  // from the source to the sum, the last one first
  int64_t length = 1;        // of the reduced axis
  int64_t after = 1;         // elements behind that axis
};

/// Returns whether a node's elements are their positions along the axis.
bool counts_along(const RuleGraph& g, NodeId id, int64_t axis, Dim length) {
  while (g[id].op == Op::broadcast) {
    const NodeId inner = g[id].inputs[0];
    axis -= g[id].type.rank() - g[inner].type.rank();
    id = inner;
  }
  return g[id].op == Op::iota && axis >= 0 && g[id].attrs->axes[0] == axis &&
         g[id].type.shape[static_cast<size_t>(axis)] == length;
}

/// Returns the operand of a broadcast along one axis alone: a node with one element for each result of the reduction;
/// -1 for other nodes.
NodeId same_along(const RuleGraph& g, NodeId id, size_t axis) {
  if (g[id].op != Op::broadcast) return -1;
  const NodeId inner = g[id].inputs[0];
  const Shape &whole = g[id].type.shape, &own = g[inner].type.shape;
  const size_t missing = whole.size() - own.size();
  for (size_t k = 0; k < whole.size(); ++k) {
    const Dim extent = k < missing ? Dim(1) : own[k - missing];
    if (!(extent == (k == axis ? Dim(1) : whole[k]))) return -1;
  }
  return inner;
}

std::optional<OneHot> find_one_hot(const RuleGraph& g, const IrNode& n) {
  if (n.attrs->reducer != kernel::Reducer::sum || n.attrs->axes.size() != 1) return {};
  const IrNode& choice = g[n.inputs[0]];
  const Shape& shape = choice.type.shape;
  const auto axis = static_cast<size_t>(n.attrs->axes[0]);
  const auto is_static = [](const Dim& d) { return d.is_static(); };
  if (choice.op != Op::select || !std::all_of(shape.begin(), shape.end(), is_static) ||
      shape[axis].bound() < shortest_row)
    return {};
  const std::optional<Number> otherwise = g.splat(choice.inputs[2]);
  const IrNode& test = g[choice.inputs[0]];
  if (test.op != Op::eq || !otherwise || otherwise->real() != 0) return {};
  OneHot found{choice.inputs[1], -1, {}, shape[axis].bound(), 1};
  for (const size_t k : {0, 1})
    if (counts_along(g, test.inputs[k], n.attrs->axes[0], shape[axis]))
      found.target = same_along(g, test.inputs[1 - k], axis);
  // Positions that wrap around, or that a float rounds, are equal to a target more than once.
  if (found.target < 0 || !is_integer(g[found.target].type.dtype) ||
      kernel::range_of(g[found.target].type.dtype).max < found.length - 1)
    return {};
  for (size_t k = axis + 1; k < shape.size(); ++k) found.after *= shape[k].bound();
  for (; g[found.source].op == Op::cast || g[found.source].op == Op::reshape; found.source = g[found.source].inputs[0])
    if (g[found.source].op == Op::cast) found.casts.push_back(g[found.source].type.dtype);
  const IrNode& source = g[found.source];
  const bool in_memory = source.op == Op::parameter || source.op == Op::dot;
  return in_memory && volume(source.type.shape) == volume(shape) ? std::optional(found) : std::nullopt;
}

/// Reads one element for each result, and 0 where the target lies outside the axis.
RuleResult one_hot_sum(RuleGraph& g, const IrNode& n) {
  const std::optional<OneHot> found = find_one_hot(g, n);
  if (!found) return {};
  // Another phase keeps the gather out of its reader's group: a kernel that overwrites the source then waits for this
  // read alone.
  g.set_phase(n.phase - 1);
  const int64_t count = volume(n.type.shape);
  const graph::Type numbers{{count}, int64}, flags{{count}, bool_};
  const auto all = [&](int64_t number) { return g.constant_like(numbers, Number::of_int(number)); };
  const NodeId target = g.cast_to(g.reshape_to(found->target, {count}), int64);
  const NodeId inside =
      g.make(Op::bit_and,
             {g.make(Op::le, {all(0), target}, flags), g.make(Op::lt, {target, all(found->length)}, flags)}, flags);
  Attrs counting;
  counting.axes = {0}, counting.shape = {count}, counting.dtype = int64;
  NodeId start = g.make(Op::iota, {}, numbers, counting);  // becomes the position of each result's element 0
  NodeId index = g.make(Op::select, {inside, target, all(0)}, numbers);
  if (found->after > 1) {
    const NodeId behind = g.make(Op::mod, {start, all(found->after)}, numbers);
    const NodeId before = g.make(Op::sub, {start, behind}, numbers);
    start = g.make(Op::add, {g.make(Op::mul, {before, all(found->length)}, numbers), behind}, numbers);
    index = g.make(Op::mul, {index, all(found->after)}, numbers);
  } else {
    start = g.make(Op::mul, {start, all(found->length)}, numbers);
  }
  Attrs slices;
  slices.axes = {0}, slices.shape = {1};
  NodeId value = g.make(
      Op::gather, {g.reshape_to(found->source, {count * found->length}), g.make(Op::add, {start, index}, numbers)},
      {{count, 1}, g[found->source].type.dtype}, slices);
  value = g.reshape_to(value, {count});
  for (size_t k = found->casts.size(); k-- > 0;) value = g.cast_to(value, found->casts[k]);
  const graph::Type values{{count}, n.type.dtype};
  const NodeId zero = g.constant_like(values, is_float(n.type.dtype) ? Number::of_real(0) : Number::of_int(0));
  return g.reshape_to(g.make(Op::select, {inside, value, zero}, values), n.type.shape);
}

// ---------------------------------------------------------------- Σ (a·x + b·y) → a·Σx + b·Σy

/// Returns the sum of the product of `values`; without values, the number of rows.
NodeId sum_of(RuleGraph& g, const std::vector<NodeId>& values, const IrNode& sum) {
  const graph::Type positions = g[sum.inputs[0]].type;
  if (values.empty()) {
    const int64_t rows = volume(positions.shape) / volume(sum.type.shape);
    return g.constant_like(sum.type, Number::of_real(static_cast<double>(rows)));
  }
  NodeId product = g.renamed(values[0]);
  for (size_t k = 1; k < values.size(); ++k) product = g.make(Op::mul, {product, g.renamed(values[k])}, positions);
  IrNode part = sum;
  part.inputs = {product};
  return g.add(std::move(part));
}

/// Returns what a factor is for each result of the sum.
NodeId factor_of(RuleGraph& g, NodeId factor, const Shape& shape) {
  if (volume(g[factor].type.shape) == volume(shape)) return g.reshape_to(factor, shape);
  return g.broadcast_to(g.reshape_to(factor, {1}), shape);
}

RuleResult distribute_sum(RuleGraph& g, const IrNode& n) {
  const SumTerms* terms = g.terms();
  if (!terms) return {};
  NodeId total = -1;
  for (const SumTerm& term : *terms) {
    NodeId v = sum_of(g, term.values, n);
    for (const NodeId factor : term.factors)
      v = g.make(Op::mul, {v, factor_of(g, g.renamed(factor), n.type.shape)}, n.type);
    if (total >= 0) total = g.make(term.negative ? Op::sub : Op::add, {total, v}, n.type);
    else total = term.negative ? g.make(Op::neg, {v}, n.type) : v;
  }
  return total;
}

constexpr Rule table[] = {
    {"one_hot_sum", "Σ (i = t ? x[i] : 0) → x[t]",
     "over one axis of at least 1024 elements, all in t's dtype; x, before casts, an input or a dot: it lies in "
     "memory; "
     "0 for t outside",
     one_of<Op::reduce>, one_hot_sum},
    {"distribute_sum", "Σ (a·x + b·y) → a·Σx + b·Σy",
     "down columns of at least 4096; a, b linear in such sums, which then need no pass before this one (sum_terms.h)",
     one_of<Op::reduce>, distribute_sum},
};

}  // namespace

std::span<const Rule> nested_reduction_rules() { return nested_table; }
std::span<const Rule> reduction_algebra_rules() { return table; }

Ir join_reductions(Ir ir) {
  static const RuleIndex rules = index_rules({nested_reduction_rules()});
  const auto nested = [&](const IrNode& n) {
    if (n.op != Op::reduce) return false;
    NodeId inner = n.inputs[0];
    while (ir[inner].op == Op::reshape) inner = ir[inner].inputs[0];
    return ir[inner].op == Op::reduce;
  };
  if (std::none_of(ir.nodes.begin(), ir.nodes.end(), nested)) return ir;  // no rule would fire
  RuleFacts facts;
  facts.readers.resize(ir.nodes.size());
  for (const IrNode& n : ir.nodes)
    for (const NodeId input : n.inputs) ++facts.readers[input];
  for (const NodeId output : ir.outputs) ++facts.readers[output];
  return RuleGraph(std::move(ir), rules, std::move(facts)).run();
}

Ir reduction_algebra(Ir ir) {
  static const RuleIndex rules = index_rules({reduction_algebra_rules()});
  DistributedSums sums = sums_to_distribute(ir);
  const auto selects = [&](const IrNode& n) { return n.op == Op::reduce && ir[n.inputs[0]].op == Op::select; };
  if (sums.empty() && std::none_of(ir.nodes.begin(), ir.nodes.end(), selects)) return ir;  // no rule would fire
  return RuleGraph(std::move(ir), rules, {std::move(sums), {}, {}}).run();
}

}  // namespace weft::compiler
