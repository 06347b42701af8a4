// Batching: walks from the mapped values to the outputs and adds a batch axis to every node that depends on them.
//
// A region with rules of its own stays a region: its body and its rules are batched in turn when they are needed. So a
// softmax, or a function with a user's derivative, keeps its derivative.
#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/derive/derive.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

/// Which inputs of a batched region carry the batch axis (always in front), and its extent.
struct Mapped {
  std::shared_ptr<const Composite> inner;
  std::vector<bool> inputs;
  Dim extent;

  std::string key() const {
    std::string mask;
    for (bool b : inputs) mask += b ? '1' : '0';
    return fmt::format("{} batched({} {} {})", inner->key, mask, extent.bound(),
                       extent.symbol() ? extent.symbol()->name : "");
  }
};

Value element(const Value& v, bool is_batched) {
  if (!is_batched) return parameter(v.type());
  return parameter({Shape(v.shape().begin() + 1, v.shape().end()), v.dtype()});
}

/// Placeholders for one element of each value, and the values that they represent; empty values stay empty.
struct Elements {
  Values inputs;  // one a value
  Values from;    // those that are not empty
  std::vector<Batched> to;

  void add(const Value& v, bool is_batched) {
    inputs.push_back(v ? element(v, is_batched) : Value{});
    if (!v) return;
    from.push_back(inputs.back());
    to.push_back({v, is_batched ? 0 : -1});
  }
};

/// Returns the results with a leading batch axis each; empty ones stay empty.
Values with_axis(const Values& results, const Elements& elements, const Dim& extent) {
  Values present, out;
  for (const Value& v : results)
    if (v) present.push_back(v);
  const std::vector<Batched> all = batch(present, elements.from, elements.to);
  size_t next = 0;
  for (const Value& v : results) {
    out.push_back(v ? batched(all[next].value, all[next].axis, extent) : Value{});
    next += v ? 1 : 0;
  }
  return out;
}

std::span<const Value> part(const Values& all, size_t from, size_t count) {
  return std::span(all).subspan(from, count);
}

Composite mapped_region(const Mapped& m) {
  Composite region;
  region.name = m.inner->name;
  region.key = m.key();
  region.body = [m](std::span<const Value> in) {
    Elements e;
    for (size_t k = 0; k < in.size(); ++k) e.add(in[k], m.inputs[k]);
    return with_axis(m.inner->body(e.inputs), e, m.extent);
  };
  const auto all = [m](std::span<const Value> in, std::span<const Value> out, std::span<const Value> third,
                       bool third_like_inputs) {
    Elements e;
    for (size_t k = 0; k < in.size(); ++k) e.add(in[k], m.inputs[k]);
    for (const Value& v : out) e.add(v, true);
    for (size_t k = 0; k < third.size(); ++k) e.add(third[k], !third_like_inputs || m.inputs[k]);
    return e;
  };
  if (m.inner->vjp)
    region.vjp = [m, all](std::span<const Value> in, std::span<const Value> out, std::span<const Value> cotangents) {
      const Elements e = all(in, out, cotangents, false);
      const size_t n = in.size(), o = out.size();
      Values result =
          with_axis(m.inner->vjp(part(e.inputs, 0, n), part(e.inputs, n, o), part(e.inputs, n + o, o)), e, m.extent);
      for (size_t k = 0; k < n; ++k)
        if (result[k] && !m.inputs[k]) result[k] = sum(result[k], {0});
      return result;
    };
  if (m.inner->jvp)
    region.jvp = [m, all](std::span<const Value> in, std::span<const Value> out, std::span<const Value> tangents) {
      const Elements e = all(in, out, tangents, true);
      const size_t n = in.size(), o = out.size();
      return with_axis(m.inner->jvp(part(e.inputs, 0, n), part(e.inputs, n, o), part(e.inputs, n + o, n)), e, m.extent);
    };
  return region;
}

Values batch_region(const Node& node, std::span<const Value> inputs, std::span<const int> axes) {
  const auto& region = node.attrs().composite;
  if (region->vmap)  // may return nothing and leave a case to the body
    if (Values results = region->vmap(inputs, axes); !results.empty()) return results;
  Mapped m{region, {}, batch_extent(inputs, axes)};
  Values fronted;
  for (size_t k = 0; k < inputs.size(); ++k) {
    m.inputs.push_back(axes[k] >= 0);
    fronted.push_back(axes[k] >= 0 ? to_front(inputs[k], axes[k]) : inputs[k]);
  }
  const Composite whole = mapped_region(m);
  if (!region->vjp && !region->jvp) return whole.body(fronted);
  return composite(std::make_shared<Composite>(whole), std::move(fronted));
}

/// Returns the node with other inputs of the same types.
Values on_inputs(const Node& node, Values inputs) {
  const Step rebuilt{std::make_shared<Node>(node.op(), std::move(inputs), node.shared_attrs(), node.shared_types()),
                     {}};
  return rebuilt.outputs();
}

Values batch_node(const Step& step, std::span<const Value> inputs, std::span<const int> axes) {
  const Node& node = *step.node;
  if (node.op() == Op::composite) return batch_region(node, inputs, axes);
  const auto& rule = row(node.op()).vmap;
  check(rule.rule != nullptr, "vmap", std::string(row(node.op()).name) + " has no rule for batches");
  return rule.rule(node, inputs, axes);
}

}  // namespace

std::vector<Batched> batch(std::span<const Value> outputs, std::span<const Value> from, std::span<const Batched> to) {
  std::unordered_map<const Node*, std::vector<Batched>> known;
  for (size_t k = 0; k < from.size(); ++k) {
    auto& slots = known[from[k].node.get()];
    slots.resize(static_cast<size_t>(from[k].node->outputs()));
    slots[static_cast<size_t>(from[k].index)] = to[k];
  }
  const auto of = [&](const Value& v) {
    const auto found = known.find(v.node.get());
    return found == known.end() || !found->second[static_cast<size_t>(v.index)].value
               ? Batched{v, -1}
               : found->second[static_cast<size_t>(v.index)];
  };
  for (const Step& step : history(outputs, from)) {
    if (!step.depends || step.inputs.empty() || known.contains(step.node.get())) continue;
    Values inputs;
    std::vector<int> axes;
    for (const Value& input : step.inputs) {
      const Batched b = of(input);
      inputs.push_back(b.value);
      axes.push_back(b.axis);
    }
    const bool any = std::any_of(axes.begin(), axes.end(), [](int axis) { return axis >= 0; });
    std::vector<Batched>& slots = known[step.node.get()];
    const Values results = any ? batch_node(step, inputs, axes) : on_inputs(*step.node, std::move(inputs));
    check(results.size() == static_cast<size_t>(step.node->outputs()), "vmap",
          std::string(row(step.node->op()).name) + " gave another number of results");
    for (size_t k = 0; k < results.size(); ++k)
      slots.push_back({results[k], results[k].type() == step.node->types()[k] ? -1 : 0});
  }
  std::vector<Batched> result;
  for (const Value& v : outputs) result.push_back(of(v));
  return result;
}

}  // namespace weft::graph
