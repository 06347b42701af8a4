// Sums over time: a carry that each step only adds to is computed behind the scan.
//
//     s' = s + f(step)   becomes   s + Σ_t f_t
//
// The sum moves through what is linear: Σ_t (a_t · b_t), a product in each step, is one product that contracts time as
// well. An LSTM's weight gradient is such a sum: a step would read and write all of it.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/build.h"
#include "graph/control/scan_form.h"
#include "graph/derive/derive.h"

namespace weft::graph {
namespace {

std::vector<int64_t> behind_time(const std::vector<int64_t>& axes) {
  std::vector<int64_t> out;
  for (const int64_t axis : axes) out.push_back(axis + 1);
  return out;
}

std::vector<int64_t> with_time(const std::vector<int64_t>& axes) {
  std::vector<int64_t> out = behind_time(axes);
  out.insert(out.begin(), 0);
  return out;
}

/// The sum of one value of the step over all steps.
class SumOverTime {
 public:
  explicit SumOverTime(ScanForm& scan) : scan_(scan) {
    Values changing = scan.carry_parameters();
    for (const ScanForm::Input& x : scan.xs) changing.push_back(x.parameter);
    for (const Step& s : history(scan.roots(), changing))
      if (s.depends) varying_.insert(s.node.get());
  }

  /// Returns whether the sum is better computed behind the scan: no value is stacked only to be added up, and the
  /// operands of products that have to be stacked fit.
  bool pays(const Value& v) {
    new_stacks_.clear();
    if (!plan(v)) return false;
    int64_t bytes = 0;
    for (const Value& s : new_stacks_) bytes += scan_.length() * bytes_of(s.type());
    return bytes <= most_growth * scan_.stacked_bytes();
  }

  Value make(const Value& v) {
    if (!varies(v)) return scan_.outside(v) * static_cast<double>(scan_.length());
    const Node& n = *v.node;
    if (n.op() == Op::add) return make(n.inputs()[0]) + make(n.inputs()[1]);
    if (n.op() == Op::sub) return make(n.inputs()[0]) - make(n.inputs()[1]);
    if (is_linear(n)) return graph::make(n.op(), {make(n.inputs()[0])}, n.shared_attrs());
    if (const int fixed = fixed_factor(n); fixed >= 0)
      return make(n.inputs()[1 - static_cast<size_t>(fixed)]) * scan_.outside(n.inputs()[static_cast<size_t>(fixed)]);
    if (n.op() == Op::dot) return product(n);
    if (const Value of = summed(n); of && scan_.known_stack(of))
      return sum(scan_.known_stack(of), with_time(n.attrs().axes));
    return sum(scan_.stack(v), {0});
  }

 private:
  bool varies(const Value& v) const { return varying_.contains(v.node.get()) || is_changing(v); }
  bool is_changing(const Value& v) const {
    const auto is = [&](const auto& list) {
      return std::any_of(list.begin(), list.end(), [&](const auto& i) { return i.parameter == v; });
    };
    return is(scan_.carry) || is(scan_.xs);
  }
  static bool is_linear(const Node& n) { return n.op() == Op::permute || n.op() == Op::reshape || n.op() == Op::neg; }
  /// Returns which factor of an elementwise product is the same in all steps, or -1.
  int fixed_factor(const Node& n) const {
    if (n.op() != Op::mul) return -1;
    return !varies(n.inputs()[0]) ? 0 : !varies(n.inputs()[1]) ? 1 : -1;
  }
  /// Returns what a sum over axes adds up; empty for other operators.
  static Value summed(const Node& n) {
    return n.op() == Op::reduce && n.attrs().reducer == kernel::Reducer::sum ? n.inputs()[0] : Value{};
  }

  /// Returns whether make(v) stacks nothing new but operands of products, which it collects.
  bool plan(const Value& v) {
    if (!varies(v)) return true;
    const Node& n = *v.node;
    if (n.op() == Op::add || n.op() == Op::sub) return plan(n.inputs()[0]) && plan(n.inputs()[1]);
    if (is_linear(n)) return plan(n.inputs()[0]);
    if (const int fixed = fixed_factor(n); fixed >= 0) return plan(n.inputs()[1 - static_cast<size_t>(fixed)]);
    if (n.op() == Op::dot) {
      const Value &a = n.inputs()[0], &b = n.inputs()[1];
      if (!varies(a) || !varies(b)) return plan(varies(a) ? a : b);
      need(a);
      need(b);
      return true;
    }
    if (const Value of = summed(n); of && available(of)) return true;
    return available(v);
  }

  bool available(const Value& v) const { return bool(scan_.known_stack(v)); }

  static bool only_moves(const Node& n) { return n.op() == Op::permute || n.op() == Op::reshape; }

  /// Notes what has to be stacked for an operand.
  void need(const Value& v) {
    if (available(v)) return;
    if (only_moves(*v.node)) return need(v.node->inputs()[0]);
    if (std::find(new_stacks_.begin(), new_stacks_.end(), v) == new_stacks_.end()) new_stacks_.push_back(v);
  }

  /// Returns an operand in all steps. Movements are done to the stack, where they are views.
  Value stacked(const Value& v) {
    if (available(v) || !only_moves(*v.node)) return scan_.stack(v);
    const Value of = v.node->inputs()[0];
    const Batched all{stacked(of), 0};
    return batch(std::span(&v, 1), std::span(&of, 1), std::span(&all, 1))[0].value;
  }

  Value product(const Node& n) {
    const Value &a = n.inputs()[0], &b = n.inputs()[1];
    const Attrs& attrs = n.attrs();
    if (!varies(a)) return graph::make(Op::dot, {scan_.outside(a), make(b)}, n.shared_attrs());
    if (!varies(b)) return graph::make(Op::dot, {make(a), scan_.outside(b)}, n.shared_attrs());
    Attrs whole = attrs;
    whole.axes = with_time(attrs.axes);
    whole.axes2 = with_time(attrs.axes2);
    whole.batch = behind_time(attrs.batch);
    whole.batch2 = behind_time(attrs.batch2);
    return graph::make(Op::dot, {stacked(a), stacked(b)}, std::move(whole));
  }

  ScanForm& scan_;
  std::unordered_set<const Node*> varying_;
  Values new_stacks_;
};

/// Returns the terms that the step adds to part k of the carry, if it does nothing else with it and nobody reads the
/// sum of some steps; else nothing.
Values terms(const ScanForm& scan, size_t k) {
  const ScanForm::Carry& carry = scan.carry[k];
  std::unordered_map<const Node*, int> uses;
  for (const Value& root : scan.roots()) ++uses[root.node.get()];
  for (const auto& node : topological(scan.roots()))
    for (const Value& input : node->inputs()) ++uses[input.node.get()];
  Values out;
  Value sum = carry.next;
  while (!(sum == carry.parameter)) {
    if (sum.node->op() != Op::add || uses[sum.node.get()] != 1) return {};
    const Value &a = sum.node->inputs()[0], &b = sum.node->inputs()[1];
    const auto holds = [&](const Value& v) {
      const auto nodes = topological(std::span(&v, 1));
      return std::find(nodes.begin(), nodes.end(), carry.parameter.node) != nodes.end();
    };
    if (holds(a) == holds(b)) return {};
    out.push_back(holds(a) ? b : a);
    sum = holds(a) ? a : b;
  }
  return uses[carry.parameter.node.get()] == 1 ? out : Values{};
}

bool is_zero(const Value& v) {
  const Node& n = *v.node;
  if (n.op() == Op::broadcast) return is_zero(n.inputs()[0]);
  return n.op() == Op::constant && n.attrs().number.real() == 0;
}

/// Computes part k of the carry behind the scan, if that pays.
bool move_sum(ScanForm& scan, size_t k) {
  const Values added = terms(scan, k);
  if (added.empty() || !is_float(scan.carry[k].given.dtype())) return false;
  SumOverTime over_time(scan);
  if (!std::all_of(added.begin(), added.end(), [&](const Value& v) { return over_time.pays(v); })) return false;
  const ScanForm::Carry carry = scan.carry[k];
  Value total;
  for (const Value& v : added) {
    const Value part = over_time.make(v);
    total = total ? total + part : part;
  }
  scan.carry.erase(scan.carry.begin() + static_cast<std::ptrdiff_t>(k));
  scan.replace_outside(carry.last, is_zero(carry.given) ? total : carry.given + total);
  return true;
}

}  // namespace

bool sum_behind(ScanForm& scan) {
  bool changed = false;
  for (bool again = true; again;) {  // a sum may use what an earlier one has stacked
    again = false;
    for (size_t k = scan.carry.size(); k-- > 0;) again = move_sum(scan, k) || again;
    changed = changed || again;
  }
  return changed;
}

}  // namespace weft::graph
