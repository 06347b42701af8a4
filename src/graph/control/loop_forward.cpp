// Loops in forward mode and in batches. In both, parts of the carry get a companion (a tangent, a batch axis). Walking
// the step until nothing is added finds these parts.
#include <algorithm>

#include "base/error.h"
#include "graph/control/control.h"
#include "graph/derive/derive.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

/// A loop's inputs in three parts, by position.
struct Parts {
  size_t constants, carry, end;
  explicit Parts(const Control& c, size_t inputs)
      : constants(static_cast<size_t>(c.constants)), carry(static_cast<size_t>(c.carry)), end(inputs) {}
  size_t fixed() const { return constants + carry; }
  bool in_carry(size_t k) const { return k >= constants && k < fixed(); }
};

template <class T>
void append(T& to, const T& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// ---- tangents ----

/// Returns which inputs of the step have a tangent: the floats among those given, and float carry that depends on them.
std::vector<bool> moving_inputs(const Graph& step, const Parts& p, ValueSpan tangents) {
  std::vector<bool> moving;
  for (size_t k = 0; k < tangents.size(); ++k) moving.push_back(tangents[k] && is_float(step.inputs[k].dtype()));
  for (bool again = true; again;) {
    again = false;
    Values seeds;
    for (size_t k = 0; k < moving.size(); ++k) seeds.push_back(moving[k] ? parameter(step.inputs[k].type()) : Value{});
    const Values out = push_forward(step.outputs, step.inputs, seeds);
    for (size_t k = 0; k < p.carry; ++k)
      if (out[k] && is_float(step.outputs[k].dtype()) && !moving[p.constants + k])
        moving[p.constants + k] = again = true;
  }
  return moving;
}

/// Returns the inputs, each part followed by its tangents.
Values with_tangents(const Parts& p, ValueSpan x, ValueSpan t, const std::vector<bool>& moving) {
  Values all;
  for (const auto& [from, to] :
       {std::pair(size_t{0}, p.constants), std::pair(p.constants, p.fixed()), std::pair(p.fixed(), p.end)}) {
    for (size_t k = from; k < to; ++k) all.push_back(x[k]);
    for (size_t k = from; k < to; ++k)
      if (moving[k]) all.push_back(t[k] ? t[k] : zeros_like(x[k]));
  }
  return all;
}

/// The inputs separated from their tangents.
struct Pairs {
  Values values, tangents;
};

Pairs pairs(const Parts& p, ValueSpan all, const std::vector<bool>& moving) {
  Pairs out{Values(p.end), Values(p.end)};
  size_t next = 0;
  for (const auto& [from, to] :
       {std::pair(size_t{0}, p.constants), std::pair(p.constants, p.fixed()), std::pair(p.fixed(), p.end)}) {
    for (size_t k = from; k < to; ++k) out.values[k] = all[next++];
    for (size_t k = from; k < to; ++k)
      if (moving[k]) out.tangents[k] = all[next++];
  }
  return out;
}

/// Returns a step's results with tangents: carry and its tangents; for a scan also the stacked results and the tangents
/// of the floats among them.
Values moving_step(const Graph& step, const Parts& p, ValueSpan all, const std::vector<bool>& moving) {
  const Pairs in = pairs(p, all, moving);
  const Values values = instantiate(step, in.values), tangents = push_forward(values, in.values, in.tangents);
  const auto filled = [&](size_t k) { return tangents[k] ? tangents[k] : zeros_like(values[k]); };
  Values out(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(p.carry));
  for (size_t k = 0; k < p.carry; ++k)
    if (moving[p.constants + k]) out.push_back(filled(k));
  out.insert(out.end(), values.begin() + static_cast<std::ptrdiff_t>(p.carry), values.end());
  for (size_t k = p.carry; k < values.size(); ++k)
    if (is_float(values[k].dtype())) out.push_back(filled(k));
  return out;
}

int64_t count(const std::vector<bool>& flags, size_t from, size_t to) {
  return std::count(flags.begin() + static_cast<std::ptrdiff_t>(from), flags.begin() + static_cast<std::ptrdiff_t>(to),
                    true);
}

std::vector<Type> step_types(const Graph& step, const Parts& p, const std::vector<bool>& moving) {
  return types_of(with_tangents(p, step.inputs, step.inputs, moving));
}

Values part(const Values& all, size_t from, size_t to) {
  return Values(all.begin() + static_cast<std::ptrdiff_t>(from), all.begin() + static_cast<std::ptrdiff_t>(to));
}

/// Makes a loop over other inputs of the same three parts.
Values loop(const Node& node, const Values& all, size_t constants, size_t carry, Graph step, Graph condition) {
  const Control& c = *node.attrs().control;
  const Values fixed = part(all, 0, constants), state = part(all, constants, constants + carry);
  if (node.op() == Op::while_loop) return while_loop(fixed, state, std::move(condition), std::move(step), c.max_steps);
  return scan(fixed, state, part(all, constants + carry, all.size()), std::move(step), c.length, c.reverse);
}

Values loop_jvp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan t) {
  const Control& c = *node.attrs().control;
  const Graph& step = c.bodies.back();
  const Parts p(c, x.size());
  const std::vector<bool> moving = moving_inputs(step, p, t);
  const std::vector<Type> types = step_types(step, p, moving);
  Graph condition;
  if (node.op() == Op::while_loop)
    condition = graph_over(types, [&](ValueSpan in) { return instantiate(c.bodies[0], pairs(p, in, moving).values); });
  const size_t constants = p.constants + static_cast<size_t>(count(moving, 0, p.constants));
  const size_t carry = p.carry + static_cast<size_t>(count(moving, p.constants, p.fixed()));
  const Values out =
      loop(node, with_tangents(p, x, t, moving), constants, carry,
           graph_over(types, [&](ValueSpan in) { return moving_step(step, p, in, moving); }), std::move(condition));
  Values tangents(y.size());
  size_t next = p.carry;
  for (size_t k = 0; k < p.carry; ++k)
    if (moving[p.constants + k]) tangents[k] = out[next++];
  next += y.size() - p.carry;
  for (size_t k = p.carry; k < y.size(); ++k)
    if (is_float(y[k].dtype())) tangents[k] = out[next++];
  return tangents;
}

// ---- batches ----

std::vector<Batched> stand_ins(const Graph& graph, ValueSpan in, const std::vector<bool>& mapped) {
  std::vector<Batched> to;
  for (size_t k = 0; k < graph.inputs.size(); ++k) to.push_back({in[k], mapped[k] ? 0 : -1});
  return to;
}

std::vector<Type> mapped_types(const Graph& graph, const std::vector<bool>& mapped, const Dim& extent) {
  std::vector<Type> types = types_of(graph.inputs);
  for (size_t k = 0; k < types.size(); ++k)
    if (mapped[k]) types[k].shape = prepend(extent, types[k].shape);
  return types;
}

std::vector<Batched> on_batch(const Graph& graph, ValueSpan in, const std::vector<bool>& mapped) {
  return batch(graph.outputs, graph.inputs, stand_ins(graph, in, mapped));
}

/// Returns which inputs of the step are mapped eventually; `choose`: the condition is mapped, so all of the carry is.
std::vector<bool> mapped_inputs(const Control& c, const Parts& p, std::vector<bool> mapped, const Dim& extent,
                                bool is_while, bool& choose) {
  choose = false;
  for (bool again = true; again;) {
    again = false;
    const auto results_of = [&](const Graph& graph) {
      Values in;
      for (const Type& t : mapped_types(graph, mapped, extent)) in.push_back(parameter(t));
      return on_batch(graph, in, mapped);
    };
    const std::vector<Batched> out = results_of(c.bodies.back());
    choose = choose || (is_while && results_of(c.bodies[0])[0].axis >= 0);
    for (size_t k = 0; k < p.carry; ++k)
      if ((choose || out[k].axis >= 0) && !mapped[p.constants + k]) mapped[p.constants + k] = again = true;
  }
  return mapped;
}

Value broadcast_over(const Value& condition, const Value& like) {
  Shape shape(like.shape().size(), Dim(1));
  shape[0] = condition.shape()[0];
  return broadcast(reshape(condition, shape), like.shape());
}

Values loop_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  const Control& c = *node.attrs().control;
  const Graph& step = c.bodies.back();
  const Parts p(c, x.size());
  const Dim extent = batch_extent(x, axes);
  const bool is_while = node.op() == Op::while_loop;
  std::vector<bool> mapped;
  for (int axis : axes) mapped.push_back(axis >= 0);
  bool choose = false;
  mapped = mapped_inputs(c, p, mapped, extent, is_while, choose);
  Values all;
  for (size_t k = 0; k < x.size(); ++k) {
    Value v = !mapped[k] ? x[k] : batched(x[k], axes[k], extent);
    if (mapped[k] && k >= p.fixed()) {  // steps first, then the batch
      std::vector<int64_t> order{1, 0};
      for (int64_t axis = 2; axis < v.type().rank(); ++axis) order.push_back(axis);
      v = permute(v, order);
    }
    all.push_back(v);
  }
  const std::vector<Type> types = mapped_types(step, mapped, extent);
  Graph condition;
  if (is_while)
    condition = graph_over(types, [&](ValueSpan in) -> Values {
      const Batched b = on_batch(c.bodies[0], in, mapped)[0];
      return {choose ? reduce(kernel::Reducer::any, b.value, {0}) : b.value};
    });
  Graph whole = graph_over(types, [&](ValueSpan in) {
    const std::vector<Batched> out = on_batch(step, in, mapped);
    Values results;
    for (size_t k = 0; k < out.size(); ++k) {
      const bool with_axis = k >= p.carry || mapped[p.constants + k];
      results.push_back(with_axis ? batched(out[k].value, out[k].axis, extent) : out[k].value);
    }
    if (!choose) return results;
    const Value goes_on =
        on_batch(c.bodies[0], in, mapped)[0].value;  // elements whose condition is false keep their carry
    for (size_t k = 0; k < results.size(); ++k)
      results[k] = select(broadcast_over(goes_on, results[k]), results[k], in[p.constants + k]);
    return results;
  });
  Values out = loop(node, all, p.constants, p.carry, std::move(whole), std::move(condition));
  for (size_t k = p.carry; k < out.size(); ++k) out[k] = to_front(out[k], 1);
  return out;
}

}  // namespace

Values while_jvp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan t) { return loop_jvp(node, x, y, t); }
Values scan_jvp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan t) { return loop_jvp(node, x, y, t); }
Values while_vmap(const Node& node, ValueSpan x, std::span<const int> axes) { return loop_vmap(node, x, axes); }
Values scan_vmap(const Node& node, ValueSpan x, std::span<const int> axes) { return loop_vmap(node, x, axes); }

}  // namespace weft::graph
