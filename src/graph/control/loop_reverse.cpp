// Loops in reverse. Steps are taken back one by one, so each needs the carry that it started from.
//
// scan: the forward scan is replaced by one that also stacks each step's carry and those results of products,
// reductions and regions that the derivative reads. It extends the first scan, which then does not run
// (share_extended). Everything else in a step is recomputed from these.
//
// while_loop with max_steps: the same, with buffers of max_steps elements and a count of the steps.
//
// while_loop without a bound: only the count is kept. On the way back, a carry is recomputed from the nearest of a few
// snapshots. These are taken at the middle of the remaining steps, then at the middle of the rest, and so on: n steps
// cost n/2 · log2(n) additional ones.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "graph/control/control.h"
#include "graph/derive/derive.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

/// The derivative of one step on the step's own parameters, with placeholders for the cotangents of its results.
/// Counters and flags of a loop have none.
struct Backward {
  Values seeds;      // by result of the step; empty where no cotangent comes
  Values gradients;  // by input of the step; empty where none flows

  Backward(const Graph& step, const std::vector<bool>& arriving) {
    for (size_t k = 0; k < step.outputs.size(); ++k)
      seeds.push_back(arriving[k] ? parameter(step.outputs[k].type()) : Value{});
    gradients = pull_back(step.outputs, seeds, step.inputs);
    for (size_t k = 0; k < gradients.size(); ++k)
      if (!is_float(step.inputs[k].dtype())) gradients[k] = {};
  }
};

/// Collects graph inputs or outputs by name, with their positions.
struct List {
  Values values;
  size_t add(const Value& v) {
    values.push_back(v);
    return values.size() - 1;
  }
};

bool worth_keeping(Op op) {
  return op == Op::dot || op == Op::reduce || op == Op::scatter || op == Op::composite || is_control(op);
}

/// What the gradients read of the step: its inputs (by index), and intermediate results worth keeping.
struct Reads {
  std::vector<bool> inputs;
  Values kept;

  Reads(const Graph& step, size_t constants, const Values& gradients, bool keep) : inputs(step.inputs.size()) {
    std::unordered_map<const Node*, size_t> numbers;
    for (size_t k = 0; k < step.inputs.size(); ++k) numbers[step.inputs[k].node.get()] = k;
    std::unordered_set<const Node*> changing;  // nodes of the step that differ between steps
    if (keep)
      for (const Step& s : history(step.outputs, std::span(step.inputs).subspan(constants)))
        if (s.depends) changing.insert(s.node.get());
    std::unordered_map<const Node*, std::unordered_set<int>> seen;
    Values stack;
    for (const Value& v : gradients)
      if (v) stack.push_back(v);
    while (!stack.empty()) {
      const Value v = stack.back();
      stack.pop_back();
      auto& indices = seen[v.node.get()];
      const bool first = indices.empty();
      if (!indices.insert(v.index).second) continue;
      if (const auto at = numbers.find(v.node.get()); at != numbers.end()) inputs[at->second] = true;
      else if (changing.contains(v.node.get()) && worth_keeping(v.node->op())) kept.push_back(v);
      else if (first) stack.insert(stack.end(), v.node->inputs().begin(), v.node->inputs().end());
    }
  }
};

Value or_zeros(const Value& v, const Value& like) { return v ? v : zeros_like(like); }

/// Replaces values while a graph is built: pairs of old values and the new graph's parameters.
struct Renaming {
  Values from, to;
  void add(const Value& old_value, const Value& parameter) {
    from.push_back(old_value);
    to.push_back(parameter);
  }
  Values apply(const Values& values) const { return substitute(values, from, to); }
};

}  // namespace

Values scan_vjp(const Node& node, ValueSpan x, ValueSpan, ValueSpan g) {
  const Control& c = *node.attrs().control;
  const Graph& step = c.bodies[0];
  const auto constants = static_cast<size_t>(c.constants), carry = static_cast<size_t>(c.carry),
             fixed = constants + carry;
  std::vector<bool> arriving;
  for (size_t k = 0; k < step.outputs.size(); ++k)
    arriving.push_back(is_float(step.outputs[k].dtype()) && (k < carry || g[k]));
  const Backward back(step, arriving);
  const Reads reads(step, constants, back.gradients, true);

  // The forward loop, run again with additional results.
  Graph extended = step;
  for (size_t k = constants; k < fixed; ++k)
    if (reads.inputs[k]) extended.outputs.push_back(step.inputs[k]);
  extended.outputs.insert(extended.outputs.end(), reads.kept.begin(), reads.kept.end());
  Values stacked;
  if (extended.outputs.size() > step.outputs.size()) {
    const Values all(x.begin(), x.end());
    stacked = scan(Values(all.begin(), all.begin() + c.constants),
                   Values(all.begin() + c.constants, all.begin() + static_cast<std::ptrdiff_t>(fixed)),
                   Values(all.begin() + static_cast<std::ptrdiff_t>(fixed), all.end()), extended, c.length, c.reverse,
                   node.attrs().control);
    stacked.erase(stacked.begin(), stacked.begin() + static_cast<std::ptrdiff_t>(step.outputs.size()));
  }

  // The backward loop: constants; cotangents of the carry and sums for the constants; stacked arrays.
  Values in_constants, in_carry, in_xs;
  Graph backward;
  Renaming names;
  const auto input = [&](Values& list, const Value& given, const Value& old_value) {
    list.push_back(given);
    backward.inputs.push_back(parameter(old_value.type()));
    names.add(old_value, backward.inputs.back());
  };
  for (size_t k = 0; k < constants; ++k)
    if (reads.inputs[k]) input(in_constants, x[k], step.inputs[k]);
  for (size_t k = 0; k < carry; ++k)
    if (back.seeds[k]) input(in_carry, or_zeros(g[k], x[constants + k]), back.seeds[k]);
  Values sums;
  for (size_t k = 0; k < constants; ++k) {
    if (!back.gradients[k]) continue;
    in_carry.push_back(zeros_like(x[k]));
    sums.push_back(parameter(x[k].type()));
    backward.inputs.push_back(sums.back());
  }
  size_t next = 0;
  for (size_t k = constants; k < fixed; ++k)
    if (reads.inputs[k]) input(in_xs, stacked[next++], step.inputs[k]);
  for (const Value& v : reads.kept) input(in_xs, stacked[next++], v);
  for (size_t k = fixed; k < x.size(); ++k)
    if (reads.inputs[k]) input(in_xs, x[k], step.inputs[k]);
  for (size_t k = carry; k < g.size(); ++k)
    if (g[k]) input(in_xs, g[k], back.seeds[k]);

  Values results;
  std::vector<std::pair<size_t, size_t>> positions;  // input of the node, result of the backward scan
  const auto result = [&](size_t k, const Value& v) {
    positions.emplace_back(k, results.size());
    results.push_back(v);
  };
  for (size_t k = 0; k < carry; ++k)
    if (back.seeds[k]) result(constants + k, or_zeros(back.gradients[constants + k], back.seeds[k]));
  size_t sum = 0;
  for (size_t k = 0; k < constants; ++k)
    if (back.gradients[k]) result(k, sums[sum++] + back.gradients[k]);
  for (size_t k = fixed; k < x.size(); ++k)
    if (back.gradients[k]) result(k, back.gradients[k]);
  Values out(x.size());
  if (results.empty()) return out;
  backward.outputs = names.apply(results);
  const Values flowing = scan(in_constants, in_carry, in_xs, std::move(backward), c.length, !c.reverse);
  for (const auto& [k, r] : positions) out[k] = flowing[r];
  return out;
}

namespace {

Value number(int64_t n) { return constant(int64, Number::of_int(n)); }

/// Returns row `at` of a buffer, and the buffer with that row replaced.
Value row_of(const Value& buffer, const Value& at) {
  Shape sizes = buffer.shape();
  sizes[0] = 1;
  return squeeze(gather(buffer, {at}, {0}, sizes), {0});
}
Value with_row(const Value& buffer, const Value& at, const Value& v) {
  return scatter(ScatterMode::set, buffer, {at}, expand_dims(v, {0}), {0});
}

/// A while loop that counts its steps, and stores the carry of each step in buffers if it is bounded.
struct Recorded {
  Values carry;  // inputs
  Graph condition, step;
};

Recorded recorded(const Control& c, ValueSpan x, const std::vector<bool>& kept) {
  const Graph& step = c.bodies[1];
  const auto constants = static_cast<size_t>(c.constants);
  Recorded r;
  r.carry.assign(x.begin() + c.constants, x.end());
  r.carry.push_back(number(0));
  if (c.max_steps >= 0)
    for (size_t k = constants; k < x.size(); ++k)
      if (kept[k]) r.carry.push_back(full(prepend(Dim(c.max_steps), x[k].shape()), x[k].dtype(), Number::of_int(0)));
  Values all(x.begin(), x.begin() + c.constants);
  all.insert(all.end(), r.carry.begin(), r.carry.end());
  r.condition = graph_over(types_of(all), [&](ValueSpan in) { return instantiate(c.bodies[0], in.first(x.size())); });
  r.step = graph_over(types_of(all), [&](ValueSpan in) {
    Values out = instantiate(step, in.first(x.size()));
    const Value count = in[x.size()];
    out.push_back(count + number(1));
    size_t next = x.size() + 1;
    for (size_t k = constants; k < x.size() && next < in.size(); ++k)
      if (kept[k]) out.push_back(with_row(in[next++], count, in[k]));
    return out;
  });
  return r;
}

/// The number of snapshots: bisection resolves 2^(snapshots - 1) steps to single ones.
constexpr int64_t snapshots = 24;

/// A stack of carries: an array for each part of the carry, the steps that they belong to, and the top's index. The
/// first one is the start.
struct Snapshots {
  Values carries;   // [snapshots, …]
  Value positions;  // int64 [snapshots]
  Value top;        // int64

  static Snapshots beginning(ValueSpan start) {
    Snapshots s{{}, full({snapshots}, int64, Number::of_int(0)), number(0)};
    for (const Value& v : start)
      s.carries.push_back(
          with_row(full(prepend(Dim(snapshots), v.shape()), v.dtype(), Number::of_int(0)), number(0), v));
    return s;
  }
  static Snapshots taken_from(ValueSpan list) {
    return {Values(list.begin(), list.end() - 2), list[list.size() - 2], list.back()};
  }
  Values list() const {
    Values all = carries;
    all.push_back(positions);
    all.push_back(top);
    return all;
  }
};

/// Returns the step between two steps where the next snapshot is taken.
Value middle(const Value& from, const Value& to) {
  return from + binary(Op::max, binary(Op::floordiv, to - from, number(2)), number(1));
}

/// Returns the carry before step `at`, computed from the latest snapshot that is not later, and updates the snapshots.
/// Each call asks for one step less than the call before.
Values carry_before(const Control& c, ValueSpan constants, Snapshots& s, const Value& at) {
  const Value late = binary(Op::lt, at, row_of(s.positions, s.top));
  const Value top = s.top - cast(late, int64), from = row_of(s.positions, top);
  const size_t n = constants.size(), parts = s.carries.size();
  Values fixed(constants.begin(), constants.end()), moving;
  fixed.push_back(at);
  for (const Value& all : s.carries) moving.push_back(row_of(all, top));
  moving.push_back(from);
  moving.push_back(middle(from, at));
  const Snapshots first{s.carries, s.positions, top};
  for (const Value& v : first.list()) moving.push_back(v);
  Values all = fixed;
  all.insert(all.end(), moving.begin(), moving.end());
  Graph condition =
      graph_over(types_of(all), [&](ValueSpan in) { return Values{binary(Op::lt, in[n + 1 + parts], in[n])}; });
  Graph step = graph_over(types_of(all), [&](ValueSpan in) {
    Values own(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n));
    own.insert(own.end(), in.begin() + static_cast<std::ptrdiff_t>(n) + 1,
               in.begin() + static_cast<std::ptrdiff_t>(n + 1 + parts));
    Values out = instantiate(c.bodies[1], own);
    const Value position = in[n + 1 + parts] + number(1), planned = in[n + 2 + parts], end = in[n];
    const Snapshots before = Snapshots::taken_from(in.subspan(n + 3 + parts));
    const Value room =
        binary(Op::bit_and, binary(Op::lt, position, end), binary(Op::lt, before.top, number(snapshots - 1)));
    const Value takes = binary(Op::bit_and, binary(Op::eq, position, planned), room), next = before.top + number(1);
    const Value slot = select(takes, next, number(snapshots));  // past the end: nothing is stored
    Snapshots after{{}, with_row(before.positions, slot, position), select(takes, next, before.top)};
    for (size_t k = 0; k < parts; ++k) after.carries.push_back(with_row(before.carries[k], slot, out[k]));
    out.push_back(position);
    out.push_back(select(takes, middle(position, end), planned));
    for (const Value& v : after.list()) out.push_back(v);
    return out;
  });
  const Values out = while_loop(fixed, moving, std::move(condition), std::move(step));
  s = Snapshots::taken_from(std::span(out).subspan(parts + 2));
  return Values(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(parts));
}

}  // namespace

Values while_vjp(const Node& node, ValueSpan x, ValueSpan, ValueSpan g) {
  const Control& c = *node.attrs().control;
  const Graph& step = c.bodies[1];
  const auto constants = static_cast<size_t>(c.constants), carry = static_cast<size_t>(c.carry);
  Values out(x.size());
  if (c.max_steps == 0) {  // the carry is unchanged
    std::copy(g.begin(), g.end(), out.begin() + c.constants);
    return out;
  }
  std::vector<bool> arriving;
  for (const Value& v : step.outputs) arriving.push_back(is_float(v.dtype()));
  const Backward back(step, arriving);
  const Reads reads(step, constants, back.gradients, false);
  const bool bounded = c.max_steps >= 0;

  const Recorded forward = recorded(c, x, reads.inputs);
  const Values fixed(x.begin(), x.begin() + c.constants);
  const Values kept =
      while_loop(fixed, forward.carry, forward.condition, forward.step, c.max_steps, node.attrs().control);
  const Value steps = kept[carry];

  // The backward loop. Constants: the step's constants, then buffers. Carry: the steps left, cotangents of the carry,
  // sums for the constants, then the snapshots.
  Values in_constants = fixed, in_carry{steps};
  if (bounded)
    in_constants.insert(in_constants.end(), kept.begin() + static_cast<std::ptrdiff_t>(carry) + 1, kept.end());
  std::vector<size_t> targets;
  for (size_t k = 0; k < carry; ++k)
    if (back.seeds[k]) {
      targets.push_back(constants + k);
      in_carry.push_back(or_zeros(g[k], x[constants + k]));
    }
  const size_t cotangents = targets.size();
  for (size_t k = 0; k < constants; ++k)
    if (back.gradients[k]) {
      targets.push_back(k);
      in_carry.push_back(zeros_like(x[k]));
    }
  if (targets.empty()) return out;
  const size_t behind = in_carry.size();
  if (!bounded)
    for (const Value& v : Snapshots::beginning(x.subspan(constants)).list()) in_carry.push_back(v);
  Values all = in_constants;
  all.insert(all.end(), in_carry.begin(), in_carry.end());
  const size_t left = in_constants.size();
  Graph condition =
      graph_over(types_of(all), [&](ValueSpan in) { return Values{binary(Op::lt, number(0), in[left])}; });
  Graph backward = graph_over(types_of(all), [&](ValueSpan in) {
    const Value at = in[left] - number(1);
    Renaming names;
    Snapshots stack;
    for (size_t k = 0; k < constants; ++k) names.add(step.inputs[k], in[k]);
    if (bounded) {
      size_t next = constants;
      for (size_t k = constants; k < x.size(); ++k)
        if (reads.inputs[k]) names.add(step.inputs[k], row_of(in[next++], at));
    } else {
      stack = Snapshots::taken_from(in.subspan(left + behind));
      const Values before = carry_before(c, in.first(constants), stack, at);
      for (size_t k = 0; k < carry; ++k) names.add(step.inputs[constants + k], before[k]);
    }
    for (size_t k = 0, next = left + 1; k < carry; ++k)
      if (back.seeds[k]) names.add(back.seeds[k], in[next++]);
    Values results{at};
    for (size_t t = 0; t < targets.size(); ++t) {
      const Value& gradient = back.gradients[targets[t]];
      const Value own = in[left + 1 + t];
      const Value flowing = gradient ? names.apply({gradient})[0] : zeros_like(own);
      results.push_back(t < cotangents ? flowing : own + flowing);
    }
    if (!bounded)
      for (const Value& v : stack.list()) results.push_back(v);
    return results;
  });
  const Values flowing = while_loop(in_constants, in_carry, std::move(condition), std::move(backward));
  for (size_t t = 0; t < targets.size(); ++t) out[targets[t]] = flowing[t + 1];
  return out;
}

}  // namespace weft::graph
