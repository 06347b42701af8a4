// The rows of control flow: types, reference evaluation, and cond's rules. Reads attrs.control.
#include "graph/control/control.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/derive/derive.h"
#include "graph/rows.h"

namespace weft::graph {

std::vector<Type> types_of(std::span<const Value> values) {
  std::vector<Type> types;
  for (const Value& v : values) types.push_back(v.type());
  return types;
}

Values instantiate(const Graph& graph, std::span<const Value> inputs) {
  return substitute(graph.outputs, graph.inputs, inputs);
}

bool is_control(Op op) { return op == Op::cond || op == Op::while_loop || op == Op::scan; }

std::shared_ptr<const Control> make_control(Control control) {
  Hasher h;
  for (const Graph& body : control.bodies) h.digest(digest(body));
  h.number(control.constants)
      .number(control.carry)
      .number(control.length.bound())
      .text(control.length.symbol() ? control.length.symbol()->name : "");
  h.number(control.reverse).number(control.max_steps);
  control.key = h.finish();
  return std::make_shared<const Control>(std::move(control));
}

namespace {

Values node(Op op, Values inputs, Control control) {
  Attrs attrs;
  attrs.control = make_control(std::move(control));
  return make_all(op, std::move(inputs), std::move(attrs));
}

Values joined(std::initializer_list<std::span<const Value>> parts) {
  Values all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

Values cond(const Value& pred, const Values& operands, Graph where_true, Graph where_false) {
  return node(Op::cond, joined({std::span(&pred, 1), operands}), {{std::move(where_true), std::move(where_false)}});
}

Values while_loop(const Values& constants, const Values& carry, Graph condition, Graph step, int64_t max_steps,
                  std::shared_ptr<const Control> extends) {
  Control control{{std::move(condition), std::move(step)},
                  static_cast<int64_t>(constants.size()),
                  static_cast<int64_t>(carry.size())};
  control.max_steps = max_steps;
  control.extends = std::move(extends);
  return node(Op::while_loop, joined({constants, carry}), std::move(control));
}

Values scan(const Values& constants, const Values& carry, const Values& xs, Graph step, const Dim& length, bool reverse,
            std::shared_ptr<const Control> extends) {
  Control control{
      {std::move(step)}, static_cast<int64_t>(constants.size()), static_cast<int64_t>(carry.size()), length, reverse};
  control.extends = std::move(extends);
  return node(Op::scan, joined({constants, carry, xs}), std::move(control));
}

namespace {

// ---- types ----

const Control& control_of(const char* op, const Attrs& attrs, size_t bodies) {
  if (!attrs.control || attrs.control->bodies.size() != bodies) throw_invalid(op, "has no body");
  return *attrs.control;
}

void require_types(const char* op, const char* what, const std::vector<Type>& given,
                   const std::vector<Type>& expected) {
  if (given != expected)
    throw_invalid(op, fmt::format("{} {} where {} are needed: convert with astype and reshape", what, list(given),
                                  list(expected)));
}

void require_predicate(const char* op, const Type& type) {
  if (type != Type{{}, bool_}) throw_invalid(op, "the condition must be a bool of shape (), got " + to_string(type));
}

std::vector<Type> cond_types(const Attrs& attrs, TypeSpan in) {
  const Control& c = control_of("cond", attrs, 2);
  require_predicate("cond", in[0]);
  for (const Graph& body : c.bodies)
    require_types("cond", "the operands are", std::vector<Type>(in.begin() + 1, in.end()), types_of(body.inputs));
  require_types("cond", "the branch for false returns", types_of(c.bodies[1].outputs), types_of(c.bodies[0].outputs));
  return types_of(c.bodies[0].outputs);
}

std::vector<Type> while_types(const Attrs& attrs, TypeSpan in) {
  const Control& c = control_of("while_loop", attrs, 2);
  for (const Graph& body : c.bodies)
    require_types("while_loop", "the arguments are", std::vector<Type>(in.begin(), in.end()), types_of(body.inputs));
  if (c.bodies[0].outputs.size() != 1) throw_invalid("while_loop", "the condition must return one bool");
  require_predicate("while_loop", c.bodies[0].outputs[0].type());
  const std::vector<Type> carry(in.begin() + c.constants, in.end());
  require_types("while_loop", "the body returns", types_of(c.bodies[1].outputs), carry);
  return carry;
}

std::vector<Type> scan_types(const Attrs& attrs, TypeSpan in) {
  const Control& c = control_of("scan", attrs, 1);
  std::vector<Type> arguments(in.begin(), in.end());
  for (size_t k = static_cast<size_t>(c.constants + c.carry); k < arguments.size(); ++k) {
    Shape& shape = arguments[k].shape;
    if (shape.empty() || !(shape[0] == c.length))
      throw_invalid("scan", fmt::format("{0} steps need arrays with {0} elements along their first axis, got {1}",
                                        weft::to_string(Shape{c.length}), to_string(in[k])));
    shape.erase(shape.begin());
  }
  require_types("scan", "the arguments are", arguments, types_of(c.bodies[0].inputs));
  std::vector<Type> results = types_of(c.bodies[0].outputs);
  if (static_cast<int64_t>(results.size()) < c.carry) throw_invalid("scan", "the step must return the whole carry");
  require_types("scan", "the step returns the carry", std::vector<Type>(results.begin(), results.begin() + c.carry),
                std::vector<Type>(in.begin() + c.constants, in.begin() + c.constants + c.carry));
  for (size_t k = static_cast<size_t>(c.carry); k < results.size(); ++k)
    results[k].shape = prepend(c.length, results[k].shape);
  return results;
}

template <auto types>
std::vector<Shape> shapes(const Attrs& attrs, TypeSpan in) {
  std::vector<Shape> out;
  for (const Type& t : types(attrs, in)) out.push_back(t.shape);
  return out;
}
template <auto types>
std::vector<Dtype> dtypes(const Attrs& attrs, TypeSpan in) {
  std::vector<Dtype> out;
  for (const Type& t : types(attrs, in)) out.push_back(t.dtype);
  return out;
}

// ---- reference ----

using Tensors = std::vector<HostTensor>;

Tensors cond_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan) {
  return evaluate_reference(attrs.control->bodies[in[0].data[0].i ? 0 : 1], in.subspan(1));
}

Tensors while_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan) {
  const Control& c = *attrs.control;
  Tensors state(in.begin(), in.end());
  for (int64_t step = 0; step != c.max_steps && evaluate_reference(c.bodies[0], state)[0].data[0].i; ++step) {
    Tensors next = evaluate_reference(c.bodies[1], state);
    std::move(next.begin(), next.end(), state.begin() + c.constants);
  }
  return Tensors(state.begin() + c.constants, state.end());
}

Tensors scan_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  const Control& c = *attrs.control;
  const auto fixed = static_cast<size_t>(c.constants + c.carry), carry = static_cast<size_t>(c.carry);
  Tensors state(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(fixed)), results;
  for (const Type& t : out) results.push_back(host(t));
  const int64_t length = c.length.bound();
  for (int64_t k = 0; k < length; ++k) {
    const int64_t at = c.reverse ? length - 1 - k : k;
    state.resize(fixed);
    for (size_t x = fixed; x < in.size(); ++x) {
      HostTensor element = host(c.bodies[0].inputs[x].type());
      const auto n = static_cast<std::ptrdiff_t>(element.data.size());
      std::copy_n(in[x].data.begin() + at * n, n, element.data.begin());
      state.push_back(std::move(element));
    }
    Tensors next = evaluate_reference(c.bodies[0], state);
    for (size_t r = carry; r < next.size(); ++r)
      std::copy(next[r].data.begin(), next[r].data.end(),
                results[r].data.begin() + at * static_cast<std::ptrdiff_t>(next[r].data.size()));
    std::move(next.begin(), next.begin() + c.carry, state.begin() + c.constants);
  }
  std::copy_n(state.begin() + c.constants, carry, results.begin());
  return results;
}

}  // namespace

// ---- cond ----

/// Differentiates the branch that is taken, from its operands.
Values cond_vjp(const Node& node, ValueSpan x, ValueSpan, ValueSpan g) {
  const Control& c = *node.attrs().control;
  Values operands(x.begin() + 1, x.end()), all = operands;
  const size_t count = operands.size();
  for (const Value& v : g)
    if (v) all.push_back(v);
  const auto backward = [&](const Graph& body) {
    return graph_over(types_of(all), [&](ValueSpan in) {
      Values cotangents;
      size_t next = count;
      for (const Value& v : g) cotangents.push_back(v ? in[next++] : Value{});
      const ValueSpan targets = in.first(count);
      const Values flowing = pull_back(instantiate(body, targets), cotangents, targets);
      Values out;
      for (size_t k = 0; k < count; ++k)
        if (is_float(in[k].dtype())) out.push_back(flowing[k] ? flowing[k] : zeros_like(in[k]));
      return out;
    });
  };
  Values result(x.size());
  if (std::none_of(operands.begin(), operands.end(), [](const Value& v) { return is_float(v.dtype()); })) return result;
  const Values gradients = cond(x[0], all, backward(c.bodies[0]), backward(c.bodies[1]));
  size_t next = 0;
  for (size_t k = 0; k < count; ++k)
    if (is_float(operands[k].dtype())) result[k + 1] = gradients[next++];
  return result;
}

Values cond_jvp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan t) {
  const Control& c = *node.attrs().control;
  const size_t count = x.size() - 1;
  Values all(x.begin() + 1, x.end());
  for (size_t k = 1; k < t.size(); ++k)
    if (t[k]) all.push_back(t[k]);
  Values result(y.size());
  if (all.size() == count) return result;
  const auto forward = [&](const Graph& body) {
    return graph_over(types_of(all), [&](ValueSpan in) {
      Values tangents;
      size_t next = count;
      for (size_t k = 1; k < t.size(); ++k) tangents.push_back(t[k] ? in[next++] : Value{});
      const Values values = instantiate(body, in.first(count)),
                   moving = push_forward(values, in.first(count), tangents);
      Values out;
      for (size_t k = 0; k < values.size(); ++k)
        if (is_float(values[k].dtype())) out.push_back(moving[k] ? moving[k] : zeros_like(values[k]));
      return out;
    });
  };
  if (std::none_of(y.begin(), y.end(), [](const Value& v) { return is_float(v.dtype()); })) return result;
  const Values moving = cond(x[0], all, forward(c.bodies[0]), forward(c.bodies[1]));
  size_t next = 0;
  for (size_t k = 0; k < y.size(); ++k)
    if (is_float(y[k].dtype())) result[k] = moving[next++];
  return result;
}

/// With a mapped predicate, computes both branches for all elements and selects; else it maps the branches.
Values cond_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  const Control& c = *node.attrs().control;
  const Dim extent = batch_extent(x, axes);
  Values operands;
  for (size_t k = 1; k < x.size(); ++k) operands.push_back(axes[k] >= 0 ? to_front(x[k], axes[k]) : x[k]);
  const auto mapped = [&](const Graph& body, ValueSpan in) {
    std::vector<Batched> to;
    for (size_t k = 0; k < in.size(); ++k) to.push_back({in[k], axes[k + 1] >= 0 ? 0 : -1});
    Values out;
    for (const Batched& b : batch(body.outputs, body.inputs, to)) out.push_back(batched(b.value, b.axis, extent));
    return out;
  };
  if (axes[0] < 0) {
    const auto whole = [&](const Graph& body) {
      return graph_over(types_of(operands), [&](ValueSpan in) { return mapped(body, in); });
    };
    return cond(x[0], operands, whole(c.bodies[0]), whole(c.bodies[1]));
  }
  const Values a = mapped(c.bodies[0], operands), b = mapped(c.bodies[1], operands);
  Values out;
  for (size_t k = 0; k < a.size(); ++k) {
    Shape shape(a[k].shape().size(), Dim(1));
    shape[0] = extent;
    out.push_back(select(broadcast(reshape(to_front(x[0], axes[0]), shape), a[k].shape()), a[k], b[k]));
  }
  return out;
}

namespace {

constexpr auto rows = std::to_array<Row>({
    {Op::cond, "cond", 1, -1, shapes<cond_types>, dtypes<cond_types>, None::by_body, cond_vjp, cond_jvp, cond_vmap,
     None::by_body, -1, cond_reference, 16, "one of two bodies", "control", "any; the choice: bool"},
    {Op::while_loop, "while_loop", 0, -1, shapes<while_types>, dtypes<while_types>, None::by_body, while_vjp, while_jvp,
     while_vmap, None::by_body, -1, while_reference, 16, "a body repeated while a condition holds", "control"},
    {Op::scan, "scan", 0, -1, shapes<scan_types>, dtypes<scan_types>, None::by_body, scan_vjp, scan_jvp, scan_vmap,
     None::by_body, -1, scan_reference, 16, "a body over the elements of an axis, with a carry", "control"},
});
static_assert(complete(rows, Op::cond));

}  // namespace

std::span<const Row> control_rows() { return rows; }

}  // namespace weft::graph
