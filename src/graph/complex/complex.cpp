// real, imag and complex, and the rewriting of a graph into one without complex numbers.
#include "graph/complex/complex.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/error.h"
#include "graph/calls/call.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

// ---- rows ----

std::vector<Shape> first_shape(const Attrs&, TypeSpan in) { return {in[0].shape}; }
std::vector<Dtype> part_dtype(const Attrs&, TypeSpan in) {
  if (!is_complex(in[0].dtype)) throw_invalid("real", "expected a complex array, got " + to_string(in[0]));
  return {real_of(in[0].dtype)};
}
std::vector<Shape> complex_shape(const Attrs&, TypeSpan in) {
  if (in[0].shape != in[1].shape)
    throw_invalid("complex", "both parts must have one shape, got " + list(in) + ": broadcast them first");
  return {in[0].shape};
}
std::vector<Dtype> complex_dtype(const Attrs&, TypeSpan in) {
  if (in[0].dtype != in[1].dtype || (in[0].dtype != float32 && in[0].dtype != float64))
    throw_invalid("complex", "both parts must be float32, or both float64, got " + list(in) + ": cast them first");
  return {complex_of(in[0].dtype)};
}

Values real_vjp(const Node&, ValueSpan, ValueSpan, ValueSpan g) { return {complex(g[0], zeros_like(g[0]))}; }
Values imag_vjp(const Node&, ValueSpan, ValueSpan, ValueSpan g) { return {complex(zeros_like(g[0]), g[0])}; }
Values complex_vjp(const Node&, ValueSpan, ValueSpan, ValueSpan g) {
  return {unary(Op::real, g[0]), unary(Op::imag, g[0])};
}
Values part_jvp(const Node& node, ValueSpan, ValueSpan, ValueSpan t) { return {unary(node.op(), t[0])}; }
Values complex_jvp(const Node&, ValueSpan x, ValueSpan, ValueSpan t) {
  return {complex(t[0] ? t[0] : zeros_like(x[0]), t[1] ? t[1] : zeros_like(x[1]))};
}
Values batch_all(const Node& node, ValueSpan x, std::span<const int> axes) {
  return {make(node.op(), all_batched(x, axes), node.attrs())};
}
Factors same_factors(const Attrs&, TypeSpan in, TypeSpan out) {
  const std::vector<int> axes = factors_from(0, out[0].rank());
  return {std::vector<std::vector<int>>(in.size(), axes), {axes}};
}
std::vector<HostTensor> never(const Attrs&, std::span<const HostTensor>, TypeSpan) {
  throw_internal("complex", "complex graphs are split before they are evaluated");
}

constexpr auto rows = std::to_array<Row>({
    {Op::real, "real", 1, 1, first_shape, part_dtype, None::unbounded, real_vjp, part_jvp, batch_all, same_factors, -1,
     never, 0, "the real part", "", "complex"},
    {Op::imag, "imag", 1, 1, first_shape, part_dtype, None::unbounded, imag_vjp, part_jvp, batch_all, same_factors, -1,
     never, 0, "the imaginary part", "", "complex"},
    {Op::complex, "complex", 2, 2, complex_shape, complex_dtype, None::unbounded, complex_vjp, complex_jvp, batch_all,
     same_factors, -1, never, 0, "the complex number a + bi", "", "float32, float64"},
});
static_assert(complete(rows, Op::real));

// ---- splitting ----

bool is_complex(const Value& v) { return is_complex(v.dtype()); }

/// Returns one part of an array of memory_type.
Value part_of(const Value& memory, int64_t k) {
  const int last = memory.type().rank() - 1;
  return squeeze(slice_axis(memory, last, k, 1), {last});
}
Value joined(const Parts& z) {
  const int64_t axis = z.re.type().rank();
  return concat({expand_dims(z.re, {axis}), expand_dims(z.im, {axis})}, static_cast<int>(axis));
}

class Splitter {
 public:
  explicit Splitter(const Graph& graph) : source_(inline_composites(graph)) {}

  Graph run() {
    Graph out;
    for (const Value& v : source_.inputs) {
      const Value memory = is_complex(v) ? parameter(memory_type(v.type()), v.node->attrs().slot) : v;
      out.inputs.push_back(memory);
      done_[v.node.get()] = {is_complex(v) ? Parts{part_of(memory, 0), part_of(memory, 1)} : Parts{v, {}}};
    }
    for (const auto& node : topological(source_.outputs))
      if (!done_.contains(node.get())) done_[node.get()] = split(node);
    for (const Value& v : source_.outputs) out.outputs.push_back(is_complex(v) ? joined(parts(v)) : parts(v).re);
    return out;
  }

 private:
  Parts parts(const Value& v) const { return done_.at(v.node.get())[static_cast<size_t>(v.index)]; }

  std::vector<Parts> split(const std::shared_ptr<Node>& node) const {
    if (node->storage(0)) return stored(node);
    bool complex_inside = false, changed = false;
    for (const Value& v : node->inputs()) {
      complex_inside = complex_inside || is_complex(v);
      changed = changed || !(parts(v).re == v);
    }
    for (const Type& t : node->types()) complex_inside = complex_inside || is_complex(t.dtype);
    if (complex_inside && node->op() == Op::call) return call_on_complex(*node);
    if (complex_inside) return {primitive(*node)};
    std::vector<Parts> out;
    if (!changed) {
      for (int k = 0; k < node->outputs(); ++k) out.push_back({{node, k}, {}});
      return out;
    }
    Values inputs;
    for (const Value& v : node->inputs()) inputs.push_back(parts(v).re);
    for (const Value& v : make_all(node->op(), inputs, node->attrs())) out.push_back({v, {}});
    return out;
  }

  /// A leaf with data uses the same memory as pairs of floats.
  static std::vector<Parts> stored(const std::shared_ptr<Node>& node) {
    std::vector<Parts> out;
    for (int k = 0; k < node->outputs(); ++k) {
      const Value v{node, k};
      if (!is_complex(v)) {
        out.push_back({v, {}});
        continue;
      }
      Storage storage = *node->storage(k);
      storage.offset *= 2;
      for (int64_t& stride : storage.strides) stride *= 2;
      storage.strides.push_back(1);
      const Value memory = data(memory_type(v.type()), std::move(storage));
      out.push_back({part_of(memory, 0), part_of(memory, 1)});
    }
    return out;
  }

  Parts primitive(const Node& node) const {
    const Op op = node.op();
    std::vector<Parts> x;
    for (const Value& v : node.inputs()) x.push_back(parts(v));
    switch (op) {
      case Op::constant: {
        const Dtype part = real_of(node.attrs().dtype);
        return {constant(part, node.attrs().number), constant(part, Number::of_real(0))};
      }
      case Op::real: return {x[0].re, {}};
      case Op::imag: return {x[0].im, {}};
      case Op::complex: return {x[0].re, x[1].re};
      case Op::cast: return converted(x[0], node.inputs()[0].dtype(), node.attrs().dtype);
      case Op::dot: return product(node, x);
      default: break;
    }
    if (acts_on_parts(node)) return by_part(node, x);
    if (op == Op::reduce) return complex_reduce(node, x[0]);
    if (op == Op::cumulative) return complex_cumulative(node, x[0]);
    if (takes_complex(op)) return complex_elementwise(op, x);
    throw_invalid(row(op).name, "is not defined on complex numbers");
  }

  /// Applies the node to each part; index arrays and conditions are real and serve both.
  static Parts by_part(const Node& node, const std::vector<Parts>& x) {
    Values re, im;
    for (const Parts& p : x) {
      re.push_back(p.re);
      im.push_back(p.im ? p.im : p.re);
    }
    Attrs attrs = node.attrs();
    const Value first = make(node.op(), re, attrs);
    if (node.op() == Op::pad) attrs.number = Number::of_real(0);  // a pad's number is real
    return {first, make(node.op(), im, attrs)};
  }

  static Parts converted(const Parts& z, Dtype from, Dtype to) {
    if (from == to) return z;
    if (is_complex(to)) {
      const Value re = cast(z.re, real_of(to));
      return {re, is_complex(from) ? cast(z.im, real_of(to)) : zeros_like(re)};
    }
    if (!is_complex(from)) throw_internal("complex", "a cast between real numbers has no complex side");
    if (to == bool_) return {binary(Op::bit_or, cast(z.re, bool_), cast(z.im, bool_)), {}};
    return {cast(z.re, to), {}};
  }

  static Parts product(const Node& node, const std::vector<Parts>& x) {
    Attrs attrs = node.attrs();
    attrs.dtype = real_of(attrs.dtype);
    const auto dot = [&](const Value& a, const Value& b) { return make(Op::dot, {a, b}, attrs); };
    const Parts &a = x[0], &b = x[1];
    return {dot(a.re, b.re) - dot(a.im, b.im), dot(a.re, b.im) + dot(a.im, b.re)};
  }

  /// Splits a call: a sort into sorts of parts, a decomposition into one of pairs (graph/complex/complex_calls.cpp).
  std::vector<Parts> call_on_complex(const Node& node) const {
    if (node.attrs().call == "sort") {
      const SortedParts s = complex_sort(node, parts(node.inputs()[0]));
      return {s.values, {s.order, {}}};
    }
    Values inputs;
    for (const Value& v : node.inputs()) inputs.push_back(is_complex(v) ? joined(parts(v)) : parts(v).re);
    const Values results = call(name_on_pairs(node), inputs, node.attrs().integers);
    std::vector<Parts> out;
    for (size_t k = 0; k < results.size(); ++k)
      out.push_back(is_complex(node.types()[k].dtype) ? Parts{part_of(results[k], 0), part_of(results[k], 1)}
                                                      : Parts{results[k], {}});
    return out;
  }

  Graph source_;
  std::unordered_map<const Node*, std::vector<Parts>> done_;
};

}  // namespace

std::span<const Row> complex_rows() { return rows; }

bool acts_on_parts(const Node& node) {
  switch (node.op()) {
    case Op::reduce:
    case Op::cumulative:
      return kernel::info(node.attrs().reducer).kind == kernel::ReducerKind::sum &&
             !(node.op() == Op::cumulative && node.attrs().integers[2] != 0);
    case Op::scatter: return node.attrs().mode == ScatterMode::set || node.attrs().mode == ScatterMode::add;
    case Op::select:
    case Op::stop_gradient:
    case Op::gather:
    case Op::assign:
    case Op::depends:
    case Op::scheduled:
    case Op::neg:
    case Op::add:
    case Op::sub: return true;
    default: return rearranges(node.op());
  }
}

bool multiplies_complex(const Node& node) {
  const auto complex_type = [](const Type& t) { return is_complex(t.dtype); };
  if (std::none_of(node.types().begin(), node.types().end(), complex_type) || acts_on_parts(node)) return false;
  return takes_complex(node.op()) || node.op() == Op::dot || node.op() == Op::reduce || node.op() == Op::cumulative;
}

bool has_complex(const Graph& graph) {
  Values all = graph.inputs;
  all.insert(all.end(), graph.outputs.begin(), graph.outputs.end());
  return std::ranges::any_of(reachable(all), [](const std::shared_ptr<Node>* node) {
    return std::ranges::any_of((*node)->types(), [](const Type& t) { return is_complex(t.dtype); });
  });
}

Type memory_type(const Type& type) {
  if (!is_complex(type.dtype)) return type;
  Type out{type.shape, real_of(type.dtype)};
  out.shape.push_back(2);
  return out;
}

Graph split_complex(const Graph& graph) { return Splitter(graph).run(); }

}  // namespace weft::graph
