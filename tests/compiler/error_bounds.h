#pragma once
// How far the elements of a compiled graph may lie from the reference evaluation: the errors that the table allows each
// operator, carried through the operators behind it. The reference computes node by node and rounds each result; a
// compiled program fuses nodes, sums in another order, and may keep what it does not store in a wider dtype.
//
// An element has a radius: a compiled one lies within it. An elementwise operator's comes from the corners of its
// arguments' intervals, a sum's from those of its terms and from their sizes, and movement moves radii as it moves
// elements. Where rounding decides (a comparison of what is nearly equal, the index of one of two extremes) the radius
// is infinite, and nothing is said about the element.
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <vector>

#include "compiler/support.h"
#include "graph/instances.h"
#include "graph/walks/inlined.h"

namespace weft::compiler::testing {

/// A tensor of the reference evaluation with the radius of each element.
struct Bounded {
  HostTensor value;
  std::vector<double> radius;
};

class BoundedEvaluation {
 public:
  /// Gives an input of the graph its elements, which are exact.
  void give(const graph::Value& parameter, HostTensor value) {
    std::vector<double> radius(value.data.size(), 0.0);
    done_[parameter.node.get()] = {{std::move(value), std::move(radius)}};
    kept_.push_back(parameter.node);
  }
  /// Returns a value of the graph; what it is computed from is computed once.
  const Bounded& operator()(const graph::Value& v) {
    for (const auto& node : graph::topological(std::span(&v, 1)))
      if (!done_.contains(node.get())) {
        done_[node.get()] = compute(*node);
        kept_.push_back(node);
      }
    return done_.at(v.node.get())[static_cast<size_t>(v.index)];
  }

 private:
  using Arguments = std::vector<const Bounded*>;
  static constexpr double unknown = std::numeric_limits<double>::infinity();

  std::vector<Bounded> compute(const graph::Node& n) {
    if (graph::is_region(n)) {
      std::vector<Bounded> results;
      for (const graph::Value& v : graph::body_of(n, n.inputs())) results.push_back((*this)(v));
      if (n.attrs().composite->attention) widen(results, n);
      return results;
    }
    Arguments in;
    std::vector<HostTensor> values;
    for (const graph::Value& v : n.inputs()) {
      in.push_back(&done_.at(v.node.get())[static_cast<size_t>(v.index)]);
      values.push_back(in.back()->value);
    }
    std::vector<HostTensor> results = graph::row(n.op()).reference(n.attrs(), values, n.types());
    std::vector<Bounded> out;
    for (size_t k = 0; k < results.size(); ++k) {
      std::vector<double> radius = radii(n, in, results[k], k);
      for (double& r : radius)
        if (std::isnan(r)) r = unknown;
      out.push_back({std::move(results[k]), std::move(radius)});
    }
    return out;
  }

  /// Attention of narrow floats rounds its weights, and what is added up with them, before they are whole: an error of
  /// some last places of the largest value.
  void widen(std::vector<Bounded>& results, const graph::Node& attention) {
    for (Bounded& b : results) {
      if (b.value.type.dtype.size() >= 4) continue;
      double largest = 0;
      for (const Number& e : b.value.data) largest = std::max(largest, std::abs(e.real()));
      if (!attention.attrs().composite->attention->derivative)
        for (const Number& e : done_.at(attention.inputs()[2].node.get())[0].value.data)
          largest = std::max(largest, std::abs(e.real()));
      for (double& r : b.radius) r += ulp_of(largest, b.value.type.dtype);
    }
  }

  /// Returns the radii of result `output` of a node, `y`.
  static std::vector<double> radii(const graph::Node& n, const Arguments& in, const HostTensor& y, size_t output) {
    using graph::Op;
    switch (n.op()) {
      case Op::parameter:
      case Op::constant:
      case Op::iota:
      case Op::random_bits: return std::vector<double>(y.data.size(), 0.0);
      case Op::select: return of_select(in);
      case Op::reshape:
      case Op::permute:
      case Op::broadcast:
      case Op::slice:
      case Op::pad:
      case Op::concat:
      case Op::window:
      case Op::assign:
      case Op::stop_gradient:
      case Op::depends:
      case Op::scheduled: return moved(n, in);
      case Op::gather: return moved_by_indices(n, n.attrs(), in, in.size());
      case Op::scatter: return of_scatter(n, in, y);
      case Op::reduce: return of_reduction(n, in, y, output);
      case Op::cumulative: return of_cumulative(n, in, y);
      case Op::dot: return of_dot(n, in, y);
      default: return n.op() == Op::cast || graph::row(n.op()).scalar >= 0 ? of_corners(n, in, y) : of_exact(n, in, y);
    }
  }

  static bool exact(const Bounded& b) {
    return std::all_of(b.radius.begin(), b.radius.end(), [](double r) { return r == 0; });
  }
  /// Returns a tensor of float64 with f(k) as element k.
  template <class F>
  static HostTensor tensor(const Shape& shape, F f) {
    HostTensor t{{shape, float64}, {}};
    for (int64_t k = 0, count = num_elements(shape); k < count; ++k)
      t.data.push_back(Number::of_real(f(static_cast<size_t>(k))));
    return t;
  }
  static HostTensor radius_tensor(const Bounded& b) {
    return tensor(b.value.type.shape, [&](size_t k) { return b.radius[k]; });
  }
  static double size(const Bounded& b, size_t k) { return std::abs(b.value.data[k].real()); }
  static HostTensor size_tensor(const Bounded& b) {
    return tensor(b.value.type.shape, [&](size_t k) { return size(b, k); });
  }
  /// Returns the first result of a node for other operands, in float64.
  static std::vector<double> applied(const graph::Node& n, graph::Attrs attrs, std::vector<HostTensor> operands) {
    const std::vector<graph::Type> types{{n.types()[0].shape, float64}};
    const HostTensor result = graph::row(n.op()).reference(attrs, operands, types)[0];
    std::vector<double> out;
    for (const Number& e : result.data) out.push_back(e.real());
    return out;
  }

  /// Returns the rounding of a result, and the table's error of an operator: `units` in the last place.
  static double local(double y, Dtype t, double units) { return is_float(t) ? (units + 1) * ulp_of(y, t) : 0; }
  /// Returns the relative error of an addition: sums of narrow floats are made in float32.
  static double epsilon(Dtype t) { return is_float(t) ? ulp_of(1, t.size() < 4 ? float32 : t) : 0; }

  static std::vector<double> moved(const graph::Node& n, const Arguments& in) {
    graph::Attrs attrs = n.attrs();
    attrs.number = Number::of_real(0);  // what pads is exact
    std::vector<HostTensor> operands;
    for (const Bounded* b : in) operands.push_back(radius_tensor(*b));
    return applied(n, attrs, operands);
  }
  /// The same where operands 1 … last - 1 are indices, for attributes of the caller's.
  static std::vector<double> moved_by_indices(const graph::Node& n, const graph::Attrs& attrs, const Arguments& in,
                                              size_t last) {
    std::vector<HostTensor> operands;
    for (size_t k = 0; k < in.size(); ++k) {
      const bool index = k >= 1 && k < last;
      if (index && !exact(*in[k]))
        return std::vector<double>(static_cast<size_t>(num_elements(n.types()[0].shape)), unknown);
      operands.push_back(index ? in[k]->value : radius_tensor(*in[k]));
    }
    return applied(n, attrs, operands);
  }

  /// Operators without a rule of their own are exact on exact operands, but for the table's error.
  static std::vector<double> of_exact(const graph::Node& n, const Arguments& in, const HostTensor& y) {
    const bool known = std::all_of(in.begin(), in.end(), [](const Bounded* b) { return exact(*b); });
    std::vector<double> out;
    for (const Number& e : y.data)
      out.push_back(known ? local(e.real(), y.type.dtype, graph::row(n.op()).ulp) : unknown);
    return out;
  }

  static std::vector<double> of_select(const Arguments& in) {
    std::vector<double> out;
    for (size_t k = 0; k < in[0]->radius.size(); ++k) {
      const double a = in[1]->radius[k], b = in[2]->radius[k];
      const double apart = std::abs(in[1]->value.data[k].real() - in[2]->value.data[k].real());
      out.push_back(in[0]->radius[k] > 0 ? apart + a + b : in[0]->value.data[k].i ? a : b);
    }
    return out;
  }

  static std::vector<double> of_corners(const graph::Node& n, const Arguments& in, const HostTensor& y) {
    std::vector<double> out = of_roundings(n, in, y);
    if (std::all_of(in.begin(), in.end(), [](const Bounded* b) { return exact(*b); })) return out;
    for (size_t corner = 0; corner < size_t{1} << in.size(); ++corner) {
      std::vector<HostTensor> operands;
      for (size_t a = 0; a < in.size(); ++a) {
        operands.push_back(in[a]->value);
        for (size_t k = 0; k < y.data.size(); ++k) {
          const double r = corner >> a & 1 ? in[a]->radius[k] : -in[a]->radius[k];
          Number& e = operands.back().data[k];
          if (std::isfinite(r))
            e = e.integral ? Number::of_int(e.i + static_cast<int64_t>(r)) : Number::of_real(e.f + r);
        }
      }
      const HostTensor at = graph::row(n.op()).reference(n.attrs(), operands, n.types())[0];
      for (size_t k = 0; k < y.data.size(); ++k) {
        if (at.data[k] == y.data[k]) continue;
        const double apart = std::abs(at.data[k].real() - y.data[k].real());
        out[k] = std::isnan(apart) ? unknown : std::max(out[k], apart + local(y.data[k].real(), y.type.dtype, 1));
      }
    }
    for (size_t k = 0; k < y.data.size(); ++k)
      if (rounding_decides(n, in, k)) out[k] = unknown;
    return out;
  }
  /// Returns an elementwise operator's own errors on exact arguments.
  static std::vector<double> of_roundings(const graph::Node& n, const Arguments& in, const HostTensor& y) {
    const Dtype t = y.type.dtype;
    const double units = std::max(0.0, graph::row(n.op()).ulp);
    const bool of_arguments = graph::testing::error_is_of_arguments(n.op());
    std::vector<double> out;
    for (size_t k = 0; k < y.data.size(); ++k) {
      double error = local(y.data[k].real(), t, of_arguments ? 0 : units), largest = 1;
      for (const Bounded* b : in) largest = std::max(largest, size(*b, k));
      if (of_arguments && is_float(t)) error += units * ulp_of(largest, t);
      out.push_back(error);
    }
    return out;
  }
  /// Returns whether nothing can be said about an element: an argument is unknown, or its interval holds a point at
  /// which the operator jumps or has a pole, which corners do not show.
  static bool rounding_decides(const graph::Node& n, const Arguments& in, size_t k) {
    using graph::Op;
    for (const Bounded* b : in)
      if (b->radius[k] == unknown) return true;
    const auto at_zero = [&](const Bounded& b) { return b.radius[k] > 0 && size(b, k) <= b.radius[k]; };
    switch (n.op()) {
      case Op::eq:
      case Op::ne: {
        const double reach = in[0]->radius[k] + in[1]->radius[k];
        return reach > 0 && std::abs(in[0]->value.data[k].real() - in[1]->value.data[k].real()) <= reach;
      }
      case Op::div:
      case Op::floordiv: return at_zero(*in[1]);
      case Op::mod: return at_zero(*in[1]) || jumps(*in[0], *in[1], k);
      case Op::recip: return at_zero(*in[0]);
      case Op::cast: return n.types()[0].dtype == bool_ && at_zero(*in[0]);
      default: return false;
    }
  }

  /// Returns whether an interval of quotients holds an integer, where the remainder jumps.
  static bool jumps(const Bounded& a, const Bounded& b, size_t k) {
    if (a.radius[k] + b.radius[k] == 0) return false;
    double low = unknown, high = -unknown;
    for (const double x : {a.value.data[k].real() - a.radius[k], a.value.data[k].real() + a.radius[k]})
      for (const double y : {b.value.data[k].real() - b.radius[k], b.value.data[k].real() + b.radius[k]})
        low = std::min(low, x / y), high = std::max(high, x / y);
    return std::ceil(low) <= high;
  }

  /// Returns for each element of a reduction's operand the element of the result that it goes to.
  static std::vector<size_t> places(const Shape& shape, const std::vector<int64_t>& axes) {
    std::vector<size_t> out;
    for (int64_t k = 0, count = num_elements(shape); k < count; ++k) {
      int64_t rest = k, place = 0, stride = 1;
      for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis].bound()) {
        if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end()) continue;
        place += rest % shape[axis].bound() * stride;
        stride *= shape[axis].bound();
      }
      out.push_back(static_cast<size_t>(place));
    }
    return out;
  }
  static std::vector<double> of_reduction(const graph::Node& n, const Arguments& in, const HostTensor& y,
                                          size_t output) {
    const Bounded& x = *in[0];
    const Dtype t = y.type.dtype;
    const std::vector<size_t> to = places(x.value.type.shape, n.attrs().axes);
    const double terms = static_cast<double>(to.size()) / std::max(1.0, static_cast<double>(y.data.size()));
    std::vector<double> radius(y.data.size()), sizes(y.data.size()), product(y.data.size(), 1), wide(product);
    for (size_t k = 0; k < to.size(); ++k) {
      const double r = x.radius[k];
      const kernel::ReducerKind kind = kernel::info(n.attrs().reducer).kind;
      sizes[to[k]] += size(x, k);
      product[to[k]] *= size(x, k), wide[to[k]] *= (size(x, k) + r) * (1 + epsilon(t));
      if (kind == kernel::ReducerKind::sum) radius[to[k]] += r;
      else if (kind == kernel::ReducerKind::extreme || (kind == kernel::ReducerKind::located && output == 0))
        radius[to[k]] = std::max(radius[to[k]], r);
      else if (r > 0 && kind != kernel::ReducerKind::product) radius[to[k]] = unknown;
    }
    switch (kernel::info(n.attrs().reducer).kind) {
      case kernel::ReducerKind::sum:
        for (size_t k = 0; k < y.data.size(); ++k)
          radius[k] += terms * epsilon(t) * sizes[k] + local(y.data[k].real(), t, 0);
        break;
      case kernel::ReducerKind::product:
        for (size_t k = 0; k < y.data.size(); ++k) radius[k] = wide[k] - product[k] + local(y.data[k].real(), t, 0);
        break;
      default: break;
    }
    return radius;
  }

  static std::vector<double> of_cumulative(const graph::Node& n, const Arguments& in, const HostTensor& y) {
    const kernel::ReducerKind kind = kernel::info(n.attrs().reducer).kind;
    const bool in_logs = n.attrs().integers[2] != 0;
    graph::Attrs attrs = n.attrs();
    if (kind == kernel::ReducerKind::sum && !in_logs) {
      std::vector<double> out = applied(n, attrs, {radius_tensor(*in[0])});
      const std::vector<double> sizes = applied(n, attrs, {size_tensor(*in[0])});
      const double terms = static_cast<double>(y.type.shape[static_cast<size_t>(attrs.axes[0])].bound());
      for (size_t k = 0; k < out.size(); ++k)
        out[k] += terms * epsilon(y.type.dtype) * sizes[k] + local(y.data[k].real(), y.type.dtype, 0);
      return out;
    }
    if (kind != kernel::ReducerKind::extreme) return of_exact(n, in, y);
    attrs.reducer = kernel::Reducer::max;
    std::vector<double> out = applied(n, attrs, {radius_tensor(*in[0])});
    for (double& r : out) r = std::max(r, 0.0);  // an exclusive one begins with the identity
    return out;
  }

  static std::vector<double> of_dot(const graph::Node& n, const Arguments& in, const HostTensor& y) {
    const auto widest = [](const Bounded& b) {
      return tensor(b.value.type.shape, [&](size_t k) { return size(b, k) + b.radius[k]; });
    };
    std::vector<double> out = applied(n, n.attrs(), {widest(*in[0]), widest(*in[1])});
    const std::vector<double> sizes = applied(n, n.attrs(), {size_tensor(*in[0]), size_tensor(*in[1])});
    double terms = 1;
    for (const int64_t axis : n.attrs().axes)
      terms *= static_cast<double>(in[0]->value.type.shape[static_cast<size_t>(axis)].bound());
    for (size_t k = 0; k < out.size(); ++k)
      out[k] += terms * epsilon(y.type.dtype) * sizes[k] - sizes[k] + local(y.data[k].real(), y.type.dtype, 0);
    return out;
  }

  static std::vector<double> of_scatter(const graph::Node& n, const Arguments& in, const HostTensor& y) {
    using graph::ScatterMode;
    graph::Attrs attrs = n.attrs();
    const ScatterMode mode = attrs.mode;
    if (mode == ScatterMode::prod) return of_exact(n, in, y);
    if (mode == ScatterMode::min) attrs.mode = ScatterMode::max;
    std::vector<double> out = moved_by_indices(n, attrs, in, in.size() - 1);
    if (mode != ScatterMode::add) return out;
    std::vector<HostTensor> operands, ones;
    for (size_t k = 0; k < in.size(); ++k) {
      const bool index = k > 0 && k + 1 < in.size();
      operands.push_back(index ? in[k]->value : size_tensor(*in[k]));
      ones.push_back(index ? in[k]->value : tensor(in[k]->value.type.shape, [&](size_t) { return k == 0 ? 0 : 1; }));
    }
    const std::vector<double> sizes = applied(n, attrs, operands), terms = applied(n, attrs, ones);
    for (size_t k = 0; k < out.size(); ++k)
      if (is_float(y.type.dtype)) out[k] += (terms[k] + 1) * ulp_of(sizes[k], y.type.dtype);
    return out;
  }

  std::unordered_map<const graph::Node*, std::vector<Bounded>> done_;
  std::vector<std::shared_ptr<graph::Node>> kept_;  // the map's keys, which no other node may take the address of
};

/// Returns an empty string, or the first element that lies further from the reference than its radius.
inline std::string outside(const HostTensor& got, const Bounded& expected) {
  if (!(got.type == expected.value.type)) return "types differ";
  for (size_t k = 0; k < got.data.size(); ++k) {
    const Number a = got.data[k], b = expected.value.data[k];
    const double radius = expected.radius[k];
    const bool same = a.integral ? a.i == b.i : a.f == b.f || (std::isnan(a.f) && std::isnan(b.f));
    if (same || std::isinf(radius)) continue;
    if (radius == 0 || !(std::abs(a.real() - b.real()) <= radius))
      return fmt::format("element {}: {} instead of {}, radius {}", k, a.real(), b.real(), radius);
  }
  return {};
}

}  // namespace weft::compiler::testing
