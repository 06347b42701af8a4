// The row of composites: everything follows from the body. Reads attrs.composite.
#include <array>

#include "base/error.h"
#include "graph/rows.h"

namespace weft::graph {

namespace {

Graph body_of(const Attrs& attrs, TypeSpan in) {
  if (!attrs.composite || !attrs.composite->body) throw_invalid("composite", "has no body");
  Graph graph;
  for (size_t k = 0; k < in.size(); ++k) graph.inputs.push_back(parameter(in[k], static_cast<int64_t>(k)));
  graph.outputs = attrs.composite->body(graph.inputs);
  return graph;
}

std::vector<Shape> composite_shape(const Attrs& attrs, TypeSpan in) {
  std::vector<Shape> out;
  for (const Type& t : composite_types(attrs, in)) out.push_back(t.shape);
  return out;
}

std::vector<Dtype> composite_dtype(const Attrs& attrs, TypeSpan in) {
  std::vector<Dtype> out;
  for (const Type& t : composite_types(attrs, in)) out.push_back(t.dtype);
  return out;
}

std::vector<HostTensor> composite_reference(const Attrs& attrs, std::span<const HostTensor> in, TypeSpan) {
  std::vector<Type> types;
  for (const HostTensor& t : in) types.push_back(t.type);
  return evaluate_reference(body_of(attrs, types), in);
}

constexpr auto composite_table = std::to_array<Row>({
    {Op::composite, "composite", 0, -1, composite_shape, composite_dtype, None::by_body, None::by_body, None::by_body,
     None::by_body, None::by_body, -1, composite_reference, 16,
     "a named region with a body in other operators, and derivatives of its own where it gives them", "composite"},
});
static_assert(complete(composite_table, Op::composite));

}  // namespace

std::vector<Type> composite_types(const Attrs& attrs, TypeSpan in) {
  std::vector<Type> out;
  for (const Value& v : body_of(attrs, in).outputs) out.push_back(v.type());
  return out;
}

std::span<const Row> composite_rows() { return composite_table; }

}  // namespace weft::graph
