#include "compiler/rewrite/scaled_sums.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "compiler/ir/index_map.h"
#include "compiler/rewrite/rules.h"

namespace weft::compiler {

using graph::Op;

namespace {

/// Matches one sum of exponentials from its node up to the maximum, and records the nodes on the way.
class Matcher {
 public:
  Matcher(const Ir& ir, NodeId sum) : ir_(ir), sum_(sum) {}

  std::optional<ScaledSum> match() {
    const IrNode& sum = ir_[sum_];
    if (sum.op != Op::reduce || sum.attrs->reducer != kernel::Reducer::sum || !is_float(sum.type.dtype)) return {};
    const Shape& shape = ir_[sum.inputs[0]].type.shape;
    if (!along_rows(sum.attrs->axes, shape) || volume(shape) == 0) return {};
    const NodeId exponential = enter(sum.inputs[0]);
    if (ir_[exponential].op != Op::exp) return {};
    const NodeId below = enter(ir_[exponential].inputs[0]);
    if (ir_[below].op != Op::sub) return {};
    found_.operand = ir_[below].inputs[0];
    const NodeId rows = enter(ir_[below].inputs[1]);
    if (ir_[rows].op != Op::broadcast || !repeats_rows(rows, sum.attrs->axes)) return {};
    if (!find_maximum(enter(ir_[rows].inputs[0]))) return {};
    const IrNode& maximum = ir_[found_.maximum];
    if (maximum.op != Op::reduce || maximum.attrs->reducer != kernel::Reducer::max ||
        maximum.inputs[0] != found_.operand || maximum.attrs->axes != sum.attrs->axes || maximum.phase != sum.phase ||
        maximum.type != sum.type)
      return {};
    found_.sum = sum_;
    return found_;
  }

 private:
  static bool along_rows(const std::vector<int64_t>& axes, const Shape& shape) {
    const auto count = static_cast<int64_t>(axes.size());
    return count > 0 && axes.back() + 1 == static_cast<int64_t>(shape.size()) &&
           axes.back() - axes.front() + 1 == count;
  }

  /// Records a node between the maximum and the sum.
  NodeId enter(NodeId id) {
    found_.inside.push_back(id);
    return id;
  }

  /// Returns whether a broadcast repeats its operand along `axes` alone.
  bool repeats_rows(NodeId broadcast, const std::vector<int64_t>& axes) const {
    const Shape &whole = ir_[broadcast].type.shape, &own = ir_[ir_[broadcast].inputs[0]].type.shape;
    const size_t missing = whole.size() - own.size();
    for (size_t k = 0; k < whole.size(); ++k) {
      const Dim extent = k < missing ? Dim(1) : own[k - missing];
      const bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(k)) != axes.end();
      if (!(extent == (reduced ? Dim(1) : whole[k]))) return false;
    }
    return true;
  }

  /// Looks through reshapes, which keep the order of the rows.
  NodeId behind(NodeId id) {
    while (ir_[id].op == Op::reshape || ir_[id].op == Op::stop_gradient) id = enter(ir_[id].inputs[0]);
    return id;
  }

  bool is_splat(NodeId id, double value) const {
    while (ir_[id].op == Op::broadcast || ir_[id].op == Op::reshape) id = ir_[id].inputs[0];
    return ir_[id].op == Op::constant && ir_[id].attrs->number.real() == value;
  }

  /// Finds m behind itself or behind |m| = ∞ ? 0 : m.
  bool find_maximum(NodeId id) {
    id = behind(id);
    if (ir_[id].op == Op::reduce) {
      found_.maximum = id;
      return true;
    }
    if (ir_[id].op != Op::select || !is_splat(ir_[id].inputs[1], 0)) return false;
    const NodeId test = enter(ir_[id].inputs[0]);
    if (ir_[test].op != Op::eq) return false;
    const size_t size = is_splat(ir_[test].inputs[0], INFINITY) ? 1 : 0;
    if (!is_splat(ir_[test].inputs[1 - size], INFINITY)) return false;
    const NodeId absolute = behind(enter(ir_[test].inputs[size]));
    if (ir_[absolute].op != Op::abs) return false;
    found_.maximum = behind(enter(ir_[id].inputs[2]));
    found_.finite = true;
    return behind(enter(ir_[absolute].inputs[0])) == found_.maximum;
  }

  const Ir& ir_;
  const NodeId sum_;
  ScaledSum found_{-1, -1, -1, false, {}};
};

/// Returns component `output` of the state of (x, 1) along the axes of a sum or a maximum.
NodeId component(RuleGraph& g, const ScaledSum& found, const IrNode& n, int output) {
  const NodeId x = g.renamed(found.operand);
  const graph::Type elements = g[x].type;
  IrNode node = n;
  node.inputs = {x, g.constant_like(elements, Number::of_real(1))};
  node.attrs.edit().reducer = kernel::Reducer::logsumexp;
  node.output = output;
  node.results = {n.type, n.type};
  return g.add(std::move(node));
}

RuleResult scaled_sum(RuleGraph& g, const IrNode& n) {
  const ScaledSum* found = g.scaled_sum();
  if (!found) return {};
  if (n.attrs->reducer == kernel::Reducer::max) return component(g, *found, n, 0);
  const NodeId sum = component(g, *found, n, 1);
  if (found->finite) return sum;
  // exp(x − m) is NaN where both are infinite; m − m is NaN there, and 0 elsewhere.
  const NodeId m = g.renamed(found->maximum);
  return g.make(Op::add, {sum, g.make(Op::sub, {m, m}, n.type)}, n.type);
}

constexpr Rule scaled_sum_table[] = {
    {"scaled_sum", "m = max x, Σ exp(x − m) → one reduction of (x, 1)",
     "along the last axes; the cost model finds that reading x again takes longer than bringing sums to new maxima "
     "(schedule/online_softmax.h)",
     one_of<Op::reduce>, scaled_sum},
};

}  // namespace

std::span<const Rule> scaled_sum_rules() { return scaled_sum_table; }

std::vector<ScaledSum> scaled_sums(const Ir& ir) {
  std::vector<ScaledSum> all;
  for (NodeId id = 0; id < ir.size(); ++id)
    if (std::optional<ScaledSum> found = Matcher(ir, id).match()) {
      std::erase(found->inside, found->maximum);
      all.push_back(std::move(*found));
    }
  return all;
}

Ir join_scaled_sums(Ir ir, const std::function<bool(const Ir&, const ScaledSum&)>& pays) {
  static const RuleIndex rules = index_rules({scaled_sum_rules()});
  RuleFacts facts;
  for (const ScaledSum& found : scaled_sums(ir))
    if (pays(ir, found)) facts.scaled[found.sum] = facts.scaled[found.maximum] = found;
  if (facts.scaled.empty()) return ir;
  return RuleGraph(std::move(ir), rules, std::move(facts)).run();
}

}  // namespace weft::compiler
