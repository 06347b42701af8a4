// Decompositions of complex matrices as targets have them. A complex number is a pair along one more axis, as it is in
// memory; the call and its results are otherwise those of the family (call_linalg.cpp, call_orthogonal.cpp,
// call_eig.cpp of graph/calls), whose rules these are. They are made where a graph is split into real numbers.
//
// complex_NAME   NAME of complex matrices
// real_eig       eig of real matrices, whose results are pairs
#include <array>
#include <numeric>

#include "base/error.h"
#include "graph/calls/linalg_rules.h"
#include "graph/complex/complex.h"

namespace weft::graph {
namespace {

constexpr std::string_view of_complex = "complex_", of_real = "real_";

bool takes_pairs(const Attrs& attrs) { return attrs.call.starts_with(of_complex); }

/// Returns the attributes of the call on complex numbers.
Attrs whole_attrs(const Attrs& attrs) {
  Attrs out = attrs;
  out.call = attrs.call.substr((takes_pairs(attrs) ? of_complex : of_real).size());
  return out;
}

/// Returns the type whose memory_type is `t`.
Type whole_type(const Attrs& attrs, Type t) {
  if (t.shape.empty() || t.shape.back() != Dim(2) || (t.dtype != float32 && t.dtype != float64))
    throw_invalid(attrs.call, "needs pairs of float32 or float64 along the last axis, got " + to_string(t));
  t.shape.pop_back();
  t.dtype = complex_of(t.dtype);
  return t;
}

std::vector<Type> whole_inputs(const Attrs& attrs, TypeSpan in) {
  std::vector<Type> out(in.begin(), in.end());
  if (takes_pairs(attrs))
    for (Type& t : out) t = whole_type(attrs, t);
  return out;
}

std::vector<Type> whole_results(const Attrs& attrs, TypeSpan in) {
  const Attrs whole = whole_attrs(attrs);
  return call_rule(whole.call).types(whole, whole_inputs(attrs, in));
}

std::vector<Type> pair_types(const Attrs& attrs, TypeSpan in) {
  std::vector<Type> out;
  for (const Type& t : whole_results(attrs, in)) out.push_back(memory_type(t));
  return out;
}

// ---- derivatives: those of the call on complex numbers, which pair cotangents with tangents as pairs do ----

Value from_pairs(const Value& pairs) {
  const int last = pairs.type().rank() - 1;
  const auto part = [&](int64_t k) { return squeeze(slice_axis(pairs, last, k, 1), {last}); };
  return complex(part(0), part(1));
}
Value to_pairs(const Value& z) {
  if (!z || !is_complex(z.dtype())) return z;
  const int axis = z.type().rank();
  return concat({expand_dims(unary(Op::real, z), {axis}), expand_dims(unary(Op::imag, z), {axis})}, axis);
}

/// Returns complex numbers for the pairs among `values`; `like` are the types on complex numbers.
Values wholes(ValueSpan values, TypeSpan like) {
  Values out;
  for (size_t k = 0; k < values.size(); ++k)
    out.push_back(values[k] && is_complex(like[k].dtype) ? from_pairs(values[k]) : values[k]);
  return out;
}

/// The node on complex numbers and its values.
struct Whole {
  std::shared_ptr<Node> node;
  std::vector<Type> in, out;
  Values x, y;
};

Whole whole_of(const Node& node, ValueSpan x, ValueSpan y) {
  std::vector<Type> types;
  for (const Value& v : x) types.push_back(v.type());
  Whole w;
  w.in = whole_inputs(node.attrs(), types);
  w.out = whole_results(node.attrs(), types);
  w.x = wholes(x, w.in);
  w.y = wholes(y, w.out);
  w.node = call(whole_attrs(node.attrs()).call, w.x, node.attrs().integers)[0].node;
  return w;
}

Values to_pairs(Values values) {
  for (Value& v : values) v = to_pairs(v);
  return values;
}

Values pair_vjp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan g) {
  const Whole w = whole_of(node, x, y);
  return to_pairs(call_rule(w.node->attrs().call).vjp.rule(*w.node, w.x, w.y, wholes(g, w.out)));
}

Values pair_jvp(const Node& node, ValueSpan x, ValueSpan y, ValueSpan t) {
  const Whole w = whole_of(node, x, y);
  return to_pairs(call_rule(w.node->attrs().call).jvp.rule(*w.node, w.x, w.y, wholes(t, w.in)));
}

/// All axes before those of a matrix are batch axes, in all inputs and results.
Factors pair_factors(const Attrs& attrs, TypeSpan in, TypeSpan out) {
  const int batch = in[0].rank() - (takes_pairs(attrs) ? 3 : 2);
  const auto of = [batch](TypeSpan types) {
    std::vector<std::vector<int>> all;
    for (const Type& t : types) {
      std::vector<int> f(t.shape.size(), -1);
      std::iota(f.begin(), f.begin() + batch, 0);
      all.push_back(std::move(f));
    }
    return all;
  };
  return {of(in), of(out)};
}

/// Tensors of complex numbers hold both parts of an element, as pairs do.
std::vector<HostTensor> pair_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan out) {
  std::vector<Type> types;
  for (const HostTensor& t : in) types.push_back(t.type);
  std::vector<HostTensor> whole(in.begin(), in.end());
  const std::vector<Type> inputs = whole_inputs(attrs, types);
  for (size_t k = 0; k < whole.size(); ++k) whole[k].type = inputs[k];
  const Attrs own = whole_attrs(attrs);
  std::vector<HostTensor> results = call_rule(own.call).reference(own, whole, whole_results(attrs, types));
  for (size_t k = 0; k < results.size(); ++k) results[k].type = out[k];
  return results;
}

constexpr CallRule on_pairs(std::string_view name, int inputs, int integers) {
  return {name,         inputs,         inputs,
          integers,     pair_types,     None::unbounded,
          pair_vjp,     pair_jvp,       linalg::batched_call,
          pair_factors, pair_reference, 16};
}

constexpr auto pair_rules = std::to_array<CallRule>({
    on_pairs("complex_cholesky", 1, 0),
    on_pairs("complex_solve_triangular", 2, 2),
    on_pairs("complex_lu", 1, 0),
    on_pairs("complex_qr", 1, 1),
    on_pairs("complex_svd", 1, 0),
    on_pairs("complex_eigh", 1, 0),
    on_pairs("complex_eig", 1, 0),
    on_pairs("real_eig", 1, 0),
});
static_assert(complete_calls(pair_rules));

}  // namespace

std::span<const CallRule> pair_calls() { return pair_rules; }

std::string name_on_pairs(const Node& node) {
  const bool pairs = is_complex(node.inputs()[0].dtype());
  return std::string(pairs ? of_complex : of_real) + node.attrs().call;
}

}  // namespace weft::graph
