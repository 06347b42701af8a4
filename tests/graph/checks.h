#pragma once
// One checker for each column of the operator table. Each takes a row, so that a corrupted copy can be handed in, and
// an instance, and says what is wrong or returns an empty string. Values come from the reference rules of the true
// table.
#include <fmt/format.h>

#include "naive.h"

namespace weft::graph::testing {

inline std::string describe(const Instance& in) {
  std::string text = fmt::format("{}(", row(in.op).name);
  for (const HostTensor& t : in.inputs) text.append(text.back() == '(' ? "" : ", ").append(to_string(t.type));
  return text.append(")\n").append(print(graph_of(in)));
}
inline std::string fail(const Instance& in, const std::string& what) {
  return fmt::format("{}\n{}", what, describe(in));
}

inline bool close(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::fabs(a - b) <= tolerance * std::max({1.0, std::fabs(a), std::fabs(b)});
}

inline std::vector<HostTensor> reference(const Instance& in) { return evaluate_reference(graph_of(in), in.inputs); }

inline std::vector<Type> types_of(std::span<const HostTensor> tensors) {
  std::vector<Type> out;
  for (const HostTensor& t : tensors) out.push_back(t.type);
  return out;
}

// ---- shape and dtype ----

inline std::string check_types(const Row& r, const Instance& in) {
  const std::vector<Type> types = types_of(in.inputs);
  const Graph graph = graph_of(in);
  const std::vector<Shape> shapes = r.shape(in.attrs, types);
  const std::vector<Dtype> dtypes = r.dtype(in.attrs, types);
  if (shapes.size() != graph.outputs.size() || dtypes.size() != shapes.size())
    return fail(in, "another number of outputs");
  const std::vector<HostTensor> computed = reference(in);
  for (size_t k = 0; k < shapes.size(); ++k) {
    if (Type{shapes[k], dtypes[k]} != graph.outputs[k].type()) return fail(in, "the rules disagree with the node");
    if (static_cast<int64_t>(computed[k].data.size()) != num_elements(shapes[k]))
      return fail(in, "the value has another number of elements");
    for (const Number& n : computed[k].data)
      if (!(kernel::round_to(n, dtypes[k]) == n) && !std::isnan(n.real()))
        return fail(in, "the value is not of the dtype");
  }
  return "";
}

// ---- reference ----

/// Against the second formulation, where there is one for the dtypes of this instance (`compared` counts those).
inline std::string check_reference(const Row& r, const Instance& in, int* compared = nullptr) {
  std::vector<Type> types;
  for (const Value& v : graph_of(in).outputs) types.push_back(v.type());
  std::vector<double> expected;
  if (types[0].dtype != float64 && types[0].dtype != int32 && types[0].dtype != uint32 && types[0].dtype != bool_)
    return "";
  if (!naive(in, types[0], expected)) return "";
  if (compared) ++*compared;
  const std::vector<HostTensor> computed = r.reference(in.attrs, in.inputs, types);
  if (computed.size() != types.size() || computed[0].data.size() != expected.size())
    return fail(in, "another number of elements");
  for (size_t k = 0; k < expected.size(); ++k) {
    const double given = computed[0].data[k].real();
    const double wanted = types[0].dtype == int32
                              ? static_cast<double>(static_cast<int32_t>(static_cast<int64_t>(expected[k])))
                              : expected[k];
    if (is_float(types[0].dtype) ? !close(given, wanted, 1e-9) : given != wanted)
      return fail(in, fmt::format("element {} is {}, expected {}", k, given, wanted));
  }
  return "";
}

// ---- derivatives ----

/// The derivative of the graph's first output along `direction`, a vector for each float64 input, by central
/// differences of fourth order.
inline std::vector<double> differences(const Graph& graph, const std::vector<HostTensor>& inputs,
                                       const std::vector<std::vector<double>>& direction) {
  const double h = 1e-4;
  std::vector<HostTensor> shifted = inputs;
  const auto moved = [&](double by) {
    for (size_t k = 0; k < inputs.size(); ++k)
      for (size_t j = 0; j < direction[k].size(); ++j)
        if (direction[k][j] != 0) shifted[k].data[j] = Number::of_real(inputs[k].data[j].real() + by * direction[k][j]);
    return reals(evaluate_reference(graph, shifted)[0]);
  };
  const auto a = moved(h), b = moved(-h), c = moved(2 * h), d = moved(-2 * h);
  std::vector<double> out(a.size());
  for (size_t k = 0; k < a.size(); ++k) out[k] = (8 * (a[k] - b[k]) - (c[k] - d[k])) / (12 * h);
  return out;
}

struct Linear {
  Values inputs;  // parameters
  Values outputs;
  std::vector<HostTensor> tensors;
};

inline std::vector<std::vector<double>> zero_directions(const Instance& in) {
  std::vector<std::vector<double>> out;
  for (const HostTensor& t : in.inputs)
    out.push_back(t.type.dtype == float64 ? std::vector<double>(t.data.size(), 0.0) : std::vector<double>{});
  return out;
}

/// With a derivative to compare: floats in and out, and no infinities (a max over nothing).
inline bool differentiable(const Instance& in) {
  const Value out = graph_of(in).outputs[0];
  if (out.dtype() != float64) return false;
  for (double v : reals(reference(in)[0]))
    if (!std::isfinite(v)) return false;
  return std::any_of(in.inputs.begin(), in.inputs.end(), [](const HostTensor& t) { return t.type.dtype == float64; });
}

inline double inner(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// A cotangent for the first output, none for the others (which are integers).
inline Values cotangents_of(const Graph& graph, const Value& first) {
  Values out(graph.outputs.size());
  out[0] = first;
  return out;
}

/// Every element of every cotangent against finite differences.
inline std::string check_vjp(const Row& r, const Instance& in) {
  if (!differentiable(in)) return "";
  const Graph graph = graph_of(in);
  Random random(7);
  const HostTensor cotangent = random_tensor(random, graph.outputs[0].type());
  std::vector<HostTensor> gradients;
  std::vector<int> position(in.inputs.size(), -1);
  if (r.vjp.rule) {
    Graph backward{graph.inputs, {}};
    backward.inputs.push_back(parameter(cotangent.type));
    const Values rules =
        r.vjp.rule(*graph.outputs[0].node, graph.inputs, graph.outputs, cotangents_of(graph, backward.inputs.back()));
    if (rules.size() != in.inputs.size()) return fail(in, "vjp: not one cotangent for each input");
    for (size_t k = 0; k < rules.size(); ++k) {
      if (!rules[k]) continue;
      if (rules[k].type() != in.inputs[k].type)
        return fail(in, fmt::format("vjp: the cotangent of input {} has type {}", k, to_string(rules[k].type())));
      position[k] = static_cast<int>(backward.outputs.size());
      backward.outputs.push_back(rules[k]);
    }
    std::vector<HostTensor> values = in.inputs;
    values.push_back(cotangent);
    verify(backward);
    gradients = evaluate_reference(backward, values);
  }
  const std::vector<double> weights = reals(cotangent);
  auto direction = zero_directions(in);
  for (size_t k = 0; k < in.inputs.size(); ++k) {
    if (in.inputs[k].type.dtype != float64) continue;
    for (size_t j = 0; j < in.inputs[k].data.size(); ++j) {
      direction[k][j] = 1;
      const double expected = inner(weights, differences(graph, in.inputs, direction));
      direction[k][j] = 0;
      const double given = position[k] < 0 ? 0 : gradients[static_cast<size_t>(position[k])].data[j].real();
      if (!close(given, expected, 1e-6))
        return fail(in, fmt::format("vjp: input {} element {}: {}, by differences {}", k, j, given, expected));
    }
  }
  return "";
}

/// Along random directions: all float inputs at once, and each by itself (the others' tangents empty).
inline std::string check_jvp(const Row& r, const Instance& in) {
  if (!differentiable(in)) return "";
  Random random(11);
  for (int only = -1; only < static_cast<int>(in.inputs.size()); ++only) {
    const Graph graph = graph_of(in);
    auto direction = zero_directions(in);
    Graph forward{graph.inputs, {}};
    std::vector<HostTensor> values = in.inputs;
    Values tangents(in.inputs.size());
    for (size_t k = 0; k < in.inputs.size(); ++k) {
      if (in.inputs[k].type.dtype != float64 || (only >= 0 && static_cast<size_t>(only) != k)) continue;
      values.push_back(random_tensor(random, in.inputs[k].type));
      direction[k] = reals(values.back());
      tangents[k] = parameter(in.inputs[k].type);
      forward.inputs.push_back(tangents[k]);
    }
    if (forward.inputs.size() == graph.inputs.size()) continue;
    const std::vector<double> expected = differences(graph, in.inputs, direction);
    std::vector<double> given(expected.size(), 0.0);
    if (r.jvp.rule) {
      const Values rules = r.jvp.rule(*graph.outputs[0].node, graph.inputs, graph.outputs, tangents);
      if (rules.size() != graph.outputs.size()) return fail(in, "jvp: not one tangent for each output");
      if (rules[0]) {
        if (rules[0].type() != graph.outputs[0].type())
          return fail(in, fmt::format("jvp: the tangent has type {}", to_string(rules[0].type())));
        forward.outputs = {rules[0]};
        verify(forward);
        given = reals(evaluate_reference(forward, values)[0]);
      }
    }
    for (size_t k = 0; k < expected.size(); ++k)
      if (!close(given[k], expected[k], 1e-6))
        return fail(in, fmt::format("jvp: element {}: {}, by differences {}", k, given[k], expected[k]));
  }
  return "";
}

// ---- batching ----

/// The parts stacked along `axis`.
inline HostTensor stacked(const std::vector<HostTensor>& parts, const Type& type, int axis) {
  Type whole = type;
  whole.shape.insert(whole.shape.begin() + axis, Dim(static_cast<int64_t>(parts.size())));
  HostTensor out{whole, std::vector<Number>(static_cast<size_t>(num_elements(whole.shape)))};
  for (size_t at = 0; at < out.data.size(); ++at) {
    std::vector<int64_t> c = coordinates(whole.shape, static_cast<int64_t>(at));
    const size_t part = static_cast<size_t>(c[static_cast<size_t>(axis)]);
    c.erase(c.begin() + axis);
    out.data[at] = parts[part].data[static_cast<size_t>(flat(type.shape, c))];
  }
  return out;
}

/// Against the stack of unbatched evaluations, for one choice of batched inputs (bits of `subset`) and random axes.
inline std::string check_vmap(const Row& r, const Instance& in, uint64_t subset, int64_t extent) {
  Random random(subset * 17 + static_cast<uint64_t>(extent));
  std::vector<Instance> members(static_cast<size_t>(extent), in);
  for (Instance& m : members) refill(random, m);
  Graph graph = graph_of(in), batched;
  std::vector<int> axes;
  std::vector<HostTensor> values;
  for (size_t k = 0; k < in.inputs.size(); ++k) {
    const bool has_axis = (subset >> k) & 1;
    axes.push_back(has_axis ? static_cast<int>(random.between(0, in.inputs[k].type.rank())) : -1);
    std::vector<HostTensor> parts;
    for (Instance& m : members) {
      if (!has_axis) m.inputs[k] = members[0].inputs[k];
      parts.push_back(m.inputs[k]);
    }
    values.push_back(has_axis ? stacked(parts, in.inputs[k].type, axes.back()) : parts[0]);
    batched.inputs.push_back(parameter(values.back().type));
  }
  batched.outputs = r.vmap.rule(*graph.outputs[0].node, batched.inputs, axes);
  verify(batched);
  if (batched.outputs.size() != graph.outputs.size()) return fail(in, "vmap: not one result for each output");
  const std::vector<HostTensor> results = evaluate_reference(batched, values);
  for (size_t output = 0; output < results.size(); ++output) {
    std::vector<HostTensor> parts;
    for (const Instance& m : members) parts.push_back(reference(m)[output]);
    const HostTensor expected = stacked(parts, graph.outputs[output].type(), 0);
    HostTensor given = results[output];
    if (given.type == graph.outputs[output].type())
      given = stacked(std::vector<HostTensor>(members.size(), given), given.type, 0);  // the same for the whole batch
    if (given.type != expected.type)
      return fail(in, fmt::format("vmap: type {}, expected {}", to_string(given.type), to_string(expected.type)));
    const Dtype t = expected.type.dtype;
    const double tolerance = !is_float(t) ? 0 : is_float8(t) ? 0.3 : is_low_float(t) ? 1e-2 : 1e-6;
    for (size_t k = 0; k < expected.data.size(); ++k)
      if (tolerance == 0 ? given.data[k].i != expected.data[k].i
                         : !close(given.data[k].real(), expected.data[k].real(), tolerance))
        return fail(in, fmt::format("vmap: batched inputs {:b}, element {}: {}, expected {}", subset, k,
                                    given.data[k].real(), expected.data[k].real()));
  }
  return "";
}

/// Every subset of the inputs (of the first four), a batch of one and a larger one.
inline std::string check_vmap(const Row& r, const Instance& in) {
  for (uint64_t subset = 1; subset < (uint64_t{1} << std::min<size_t>(in.inputs.size(), 4)); ++subset)
    for (int64_t extent : {1, 3})
      if (std::string error = check_vmap(r, in, subset, extent); !error.empty()) return error;
  return "";
}

// ---- factors ----

/// Half number `part` of t along every axis that carries `factor`.
inline HostTensor half_of(const HostTensor& t, const std::vector<int>& factors, int factor, int64_t part) {
  HostTensor out{t.type, {}};
  for (size_t k = 0; k < factors.size(); ++k)
    if (factors[k] == factor) out.type.shape[k] = t.type.shape[k].bound() / 2;
  for (int64_t at = 0; at < num_elements(out.type.shape); ++at) {
    std::vector<int64_t> c = coordinates(out.type.shape, at);
    for (size_t k = 0; k < factors.size(); ++k)
      if (factors[k] == factor) c[k] += part * out.type.shape[k].bound();
    out.data.push_back(t.data[static_cast<size_t>(flat(t.type.shape, c))]);
  }
  return out;
}

/// Well-formed, and each factor whose extents are even is really split in two: the halves, computed apart, are the
/// halves of the result (or add up to it).
inline std::string check_factors(const Row& r, const Instance& in) {
  const Graph graph = graph_of(in);
  const Type type = graph.outputs[0].type();
  const Factors f = r.factors.rule(in.attrs, types_of(in.inputs), graph.outputs[0].node->types());
  if (f.inputs.size() != in.inputs.size() || f.outputs.size() != graph.outputs.size())
    return fail(in, "factors: not one list for each input and output");
  int top = -1;
  bool even[64], used[64] = {};
  std::fill(std::begin(even), std::end(even), true);
  const auto scan = [&](const std::vector<int>& list, const Shape& shape) {
    if (list.size() != shape.size()) return false;
    for (size_t k = 0; k < list.size(); ++k) {
      if (list[k] < -1 || list[k] >= 64) return false;
      if (list[k] < 0) continue;
      top = std::max(top, list[k]);
      used[list[k]] = true;
      if (shape[k].bound() % 2 != 0 || shape[k] == 0) even[list[k]] = false;
    }
    return true;
  };
  bool well_formed = scan(f.outputs[0], type.shape);
  for (size_t k = 0; k < in.inputs.size(); ++k) well_formed = scan(f.inputs[k], in.inputs[k].type.shape) && well_formed;
  if (!well_formed) return fail(in, "factors: lists do not fit the shapes");

  const HostTensor whole = reference(in)[0];
  for (int factor = 0; factor <= top; ++factor) {
    if (!even[factor] || !used[factor]) continue;
    const bool in_output = std::count(f.outputs[0].begin(), f.outputs[0].end(), factor) > 0;
    std::vector<double> total(whole.data.size(), 0.0);
    for (int64_t part = 0; part < 2; ++part) {
      Instance piece = in;
      for (size_t k = 0; k < in.inputs.size(); ++k) piece.inputs[k] = half_of(in.inputs[k], f.inputs[k], factor, part);
      Shape& written = piece.attrs.shape;  // aligned with the last axes of the result
      for (size_t k = 0; k < written.size() && k < type.shape.size(); ++k)
        if (f.outputs[0][type.shape.size() - 1 - k] == factor)
          written[written.size() - 1 - k] = written[written.size() - 1 - k].bound() / 2;
      HostTensor computed;
      try {
        computed = reference(piece)[0];
      } catch (const std::invalid_argument& e) {
        return fail(in, fmt::format("factors: half of factor {} is no instance: {}", factor, e.what()));
      }
      if (in_output) {
        const HostTensor expected = half_of(whole, f.outputs[0], factor, part);
        if (computed.type != expected.type)
          return fail(in, fmt::format("factors: half of factor {} has type {}", factor, to_string(computed.type)));
        for (size_t k = 0; k < expected.data.size(); ++k)
          if (!close(computed.data[k].real(), expected.data[k].real(), 1e-2))
            return fail(in, fmt::format("factors: half of factor {} differs", factor));
      } else {
        if (computed.type != type)
          return fail(in, fmt::format("factors: half of factor {} has type {}", factor, to_string(computed.type)));
        for (size_t k = 0; k < total.size(); ++k) total[k] += computed.data[k].real();
      }
    }
    if (in_output || !is_float(type.dtype) || is_float8(type.dtype))
      continue;  // with so few digits the halves are rounded too far
    for (size_t k = 0; k < total.size(); ++k)
      if (!close(total[k], whole.data[k].real(), 5e-2))
        return fail(in, fmt::format("factors: the halves of factor {} do not add up", factor));
  }
  return "";
}

// ---- intervals ----

inline Interval interval_of(const HostTensor& t) {
  if (is_float(t.type.dtype) || t.data.empty()) return {};
  Interval out{INT64_MAX, INT64_MIN};
  for (const Number& n : t.data) out = {std::min(out.min, n.i), std::max(out.max, n.i)};
  return out;
}

inline std::string check_interval(const Row& r, const Instance& in) {
  std::vector<Interval> given;
  for (const HostTensor& t : in.inputs) given.push_back(interval_of(t));
  const HostTensor value = reference(in)[0];
  const Interval bound = r.interval.rule(in.attrs, given, value.type);
  if (is_float(value.type.dtype))
    return bound.min == INT64_MIN && bound.max == INT64_MAX ? "" : fail(in, "interval: floats are not bounded");
  for (const Number& n : value.data)
    if (n.i < bound.min || n.i > bound.max)
      return fail(in, fmt::format("interval: {} is outside [{}, {}]", n.i, bound.min, bound.max));
  return "";
}

}  // namespace weft::graph::testing
