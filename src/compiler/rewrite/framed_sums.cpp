#include "compiler/rewrite/framed_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "compiler/ir/index_map.h"
#include "compiler/rewrite/rules.h"

namespace weft::compiler {

using graph::Op;
using kernel::Reducer;

namespace {

/// Returns whether a broadcast repeats its operand along `axes` alone.
bool repeats_rows(const Ir& ir, NodeId broadcast, const std::vector<int64_t>& axes) {
  const Shape &whole = ir[broadcast].type.shape, &own = ir[ir[broadcast].inputs[0]].type.shape;
  const size_t missing = whole.size() - own.size();
  for (size_t k = 0; k < whole.size(); ++k) {
    const Dim extent = k < missing ? Dim(1) : own[k - missing];
    if (!(extent == (has_axis(axes, static_cast<int64_t>(k)) ? Dim(1) : whole[k]))) return false;
  }
  return true;
}

/// Matches one framed sum from its node up to the frame, and records the nodes on the way.
class Matcher {
 public:
  Matcher(const Ir& ir, NodeId sum) : ir_(ir), sum_(sum) {}

  std::optional<FramedSum> match() {
    const IrNode& sum = ir_[sum_];
    if (sum.op != Op::reduce || sum.attrs->reducer != Reducer::sum || !is_float(sum.type.dtype)) return {};
    if (sum.attrs->axes.empty() || volume(ir_[sum.inputs[0]].type.shape) == 0) return {};
    found_.sum = sum_;
    const NodeId term = enter(sum.inputs[0]);
    if (ir_[term].op == Op::exp ? !match_exponential(term) : !match_square(term)) return {};
    std::erase(found_.inside, found_.frame);
    return found_;
  }

 private:
  /// Records a node between the frame and the sum.
  NodeId enter(NodeId id) {
    found_.inside.push_back(id);
    return id;
  }

  const std::vector<int64_t>& axes() const { return ir_[sum_].attrs->axes; }

  /// Returns whether a node reduces x by `reducer` as the sum does its terms.
  bool is_frame(NodeId id, Reducer reducer) const {
    const IrNode &frame = ir_[id], &sum = ir_[sum_];
    return frame.op == Op::reduce && frame.attrs->reducer == reducer && frame.inputs[0] == found_.operand &&
           frame.attrs->axes == axes() && frame.phase == sum.phase && frame.type == sum.type;
  }

  bool is_splat(NodeId id, double value) const {
    const std::optional<double> number = splat(id);
    return number && *number == value;
  }

  std::optional<double> splat(NodeId id) const {
    while (ir_[id].op == Op::broadcast || ir_[id].op == Op::reshape) id = ir_[id].inputs[0];
    return ir_[id].op == Op::constant ? std::optional(ir_[id].attrs->number.real()) : std::nullopt;
  }

  // ---------------------------------------------------------------- exp(x − m)

  bool match_exponential(NodeId exponential) {
    found_.reducer = Reducer::logsumexp;
    const NodeId below = enter(ir_[exponential].inputs[0]);
    if (ir_[below].op != Op::sub) return false;
    found_.operand = ir_[below].inputs[0];
    const NodeId rows = enter(ir_[below].inputs[1]);
    if (ir_[rows].op != Op::broadcast || !repeats_rows(ir_, rows, axes())) return false;
    return find_maximum(enter(ir_[rows].inputs[0])) && is_frame(found_.frame, Reducer::max);
  }

  /// Looks through reshapes, which keep the order of the rows.
  NodeId behind(NodeId id) {
    while (ir_[id].op == Op::reshape || ir_[id].op == Op::stop_gradient) id = enter(ir_[id].inputs[0]);
    return id;
  }

  /// Finds m behind itself or behind |m| = ∞ ? 0 : m.
  bool find_maximum(NodeId id) {
    id = behind(id);
    if (ir_[id].op == Op::reduce) {
      found_.frame = id;
      return true;
    }
    if (ir_[id].op != Op::select || !is_splat(ir_[id].inputs[1], 0)) return false;
    const NodeId test = enter(ir_[id].inputs[0]);
    if (ir_[test].op != Op::eq) return false;
    const size_t size = is_splat(ir_[test].inputs[0], INFINITY) ? 1 : 0;
    if (!is_splat(ir_[test].inputs[1 - size], INFINITY)) return false;
    const NodeId absolute = behind(enter(ir_[test].inputs[size]));
    if (ir_[absolute].op != Op::abs) return false;
    found_.frame = behind(enter(ir_[id].inputs[2]));
    found_.finite = true;
    return behind(enter(ir_[absolute].inputs[0])) == found_.frame;
  }

  // ---------------------------------------------------------------- (x − m)²

  bool match_square(NodeId square) {
    const IrNode& n = ir_[square];
    if ((n.op != Op::square && (n.op != Op::mul || n.inputs[0] != n.inputs[1])) || is_low_float(n.type.dtype))
      return false;
    found_.reducer = Reducer::welford;
    const NodeId difference = enter(n.inputs[0]);
    if (ir_[difference].op != Op::sub) return false;
    const std::vector<NodeId> nodes = found_.inside;
    for (const size_t side : {0, 1}) {
      found_.inside = nodes;
      found_.operand = ir_[difference].inputs[side];
      if (find_mean(ir_[difference].inputs[1 - side])) return true;
    }
    return false;
  }

  /// Finds Σ x behind its mean, wherever that is multiplied by 1/n and however it is repeated: at each element the sum
  /// is read at the element's own position along the other axes.
  bool find_mean(NodeId id) {
    const Shape& shape = ir_[found_.operand].type.shape;
    ix::Context cx;
    const std::vector<ix::Expr> element = domain(cx, shape, "i");
    std::vector<ix::Expr> index = element, kept;
    double factor = 1;
    for (enter(id);; enter(id)) {
      const IrNode& n = ir_[id];
      if (n.op == Op::reduce) break;
      if (is_movement(n.op) && n.op != Op::concat) {
        Access next = push(cx, ir_, id, index);
        if (next.valid) return false;
        index = std::move(next.index);
        id = n.inputs[0];
      } else if (n.op == Op::stop_gradient) {
        id = n.inputs[0];
      } else if (n.op == Op::mul || n.op == Op::div) {
        const size_t number = splat(n.inputs[1]) ? 1 : 0;
        const std::optional<double> by = splat(n.inputs[number]);
        if (!by || (n.op == Op::div && number == 0)) return false;
        factor *= n.op == Op::mul ? *by : 1 / *by;
        id = n.inputs[1 - number];
      } else {
        return false;
      }
    }
    double count = 1;
    for (size_t k = 0; k < shape.size(); ++k) {
      if (!has_axis(axes(), static_cast<int64_t>(k))) kept.push_back(element[k]);
      else if (shape[k].is_static()) count *= static_cast<double>(shape[k].bound());
      else return false;
    }
    found_.frame = id;
    constexpr double roundings = 4;  // of the number, and of what it is made of
    const double last_place = ir_[sum_].type.dtype == float64 ? std::numeric_limits<double>::epsilon()
                                                              : std::numeric_limits<float>::epsilon();
    return is_frame(id, Reducer::sum) && index == kept && std::abs(factor * count - 1) <= roundings * last_place;
  }

  const Ir& ir_;
  const NodeId sum_;
  FramedSum found_{-1, -1, -1, Reducer::logsumexp, false, {}};
};

/// Returns component `output` of the state that holds a sum and its frame; `n`: one of the two.
NodeId component(RuleGraph& g, const FramedSum& found, const IrNode& n, int output) {
  const NodeId x = g.renamed(found.operand);
  const graph::Type elements = g[x].type;
  const auto all = [&](double number) { return g.constant_like(elements, Number::of_real(number)); };
  IrNode node = n;
  node.inputs = {x, all(1)};  // the maximum and the scaled sum, or the sum and the count, of one element
  const size_t components = kernel::components_of(found.reducer);
  while (node.inputs.size() < components)
    node.inputs.push_back(all(kernel::identity(found.reducer, elements.dtype, node.inputs.size()).real()));
  node.attrs.edit().reducer = found.reducer;
  node.output = output;
  node.results.assign(components, n.type);
  return g.add(std::move(node));
}

RuleResult scaled_sum(RuleGraph& g, const IrNode& n) {
  const FramedSum* found = g.framed_sum();
  if (!found || found->reducer != Reducer::logsumexp) return {};
  if (n.attrs->reducer == Reducer::max) return component(g, *found, n, 0);
  const NodeId sum = component(g, *found, n, 1);
  if (found->finite) return sum;
  // exp(x − m) is NaN where both are infinite; m − m is NaN there, and 0 elsewhere.
  const NodeId m = g.renamed(found->frame);
  return g.make(Op::add, {sum, g.make(Op::sub, {m, m}, n.type)}, n.type);
}

/// The state's differences r and squares q are about the sum over n, rounded; about the exact mean the squares are
/// q - r² / n.
RuleResult squares_about_mean(RuleGraph& g, const IrNode& n) {
  const FramedSum* found = g.framed_sum();
  if (!found || found->reducer != Reducer::welford) return {};
  if (n.inputs[0] == g.renamed(found->operand)) return component(g, *found, n, 0);
  const NodeId differences = component(g, *found, n, 2), squares = component(g, *found, n, 3);
  const double count =
      static_cast<double>(volume(g[n.inputs[0]].type.shape)) / static_cast<double>(volume(n.type.shape));
  const auto all = [&](double number) { return g.constant_like(n.type, Number::of_real(number)); };
  const NodeId lost = g.make(Op::mul, {g.make(Op::square, {differences}, n.type), all(1 / count)}, n.type);
  return g.make(Op::max, {g.make(Op::sub, {squares, lost}, n.type), all(0)}, n.type);
}

constexpr Rule framed_sum_table[] = {
    {"scaled_sum", "m = max x, Σ exp(x − m) → one reduction of (x, 1)",
     "along the last axes; the cost model finds that reading x again takes longer than bringing sums to new maxima "
     "(schedule/single_pass.h)",
     one_of<Op::reduce>, scaled_sum},
    {"squares_about_mean", "m = Σ x / n, Σ (x − m)² → one reduction of (x, 1, 0, 0)",
     "of float32 or float64 along static axes; the cost model finds that reading x again takes longer than bringing "
     "squares to new means (schedule/single_pass.h)",
     one_of<Op::reduce>, squares_about_mean},
};

}  // namespace

std::span<const Rule> framed_sum_rules() { return framed_sum_table; }

bool is_below_maximum(const Ir& ir, NodeId difference) {
  if (ir[difference].op != Op::sub) return false;
  const NodeId x = ir[difference].inputs[0], rows = ir[difference].inputs[1];
  if (ir[rows].op != Op::broadcast) return false;
  NodeId maximum = ir[rows].inputs[0];
  while (ir[maximum].op == Op::reshape || ir[maximum].op == Op::stop_gradient) maximum = ir[maximum].inputs[0];
  const IrNode& m = ir[maximum];
  return m.op == Op::reduce && !has_results(m) && m.attrs->reducer == Reducer::max && m.inputs[0] == x &&
         repeats_rows(ir, rows, m.attrs->axes);
}

std::vector<FramedSum> framed_sums(const Ir& ir) {
  std::vector<FramedSum> all;
  for (NodeId id = 0; id < ir.size(); ++id)
    if (std::optional<FramedSum> found = Matcher(ir, id).match()) all.push_back(std::move(*found));
  return all;
}

Ir join_framed_sums(Ir ir, const std::function<bool(const Ir&, const FramedSum&)>& pays) {
  static const RuleIndex rules = index_rules({framed_sum_rules()});
  RuleFacts facts;
  for (const FramedSum& found : framed_sums(ir)) {
    const auto frame = facts.framed.find(found.frame);
    const bool taken = frame != facts.framed.end() && frame->second.sum == found.frame;  // a sum in another frame
    if (!taken && pays(ir, found)) facts.framed[found.sum] = facts.framed[found.frame] = found;
  }
  if (facts.framed.empty()) return ir;
  return RuleGraph(std::move(ir), rules, std::move(facts)).run();
}

}  // namespace weft::compiler
