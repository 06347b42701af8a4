// depends: returns its first input unchanged. What is computed from the result runs after the other inputs and is not
// shared with what is computed from the first input itself, so that a backward pass can recompute it. No attributes.
#include <array>

#include "graph/rows.h"

namespace weft::graph {
namespace {

std::vector<Shape> first_shape(const Attrs&, TypeSpan in) { return {in[0].shape}; }

Values depends_vjp(const Node&, ValueSpan x, ValueSpan, ValueSpan g) {
  Values out(x.size());
  out[0] = g[0];
  return out;
}

Values depends_jvp(const Node&, ValueSpan, ValueSpan, ValueSpan t) { return {t[0]}; }

/// Other inputs that are batched do not make the value a batch.
Values depends_vmap(const Node&, ValueSpan x, std::span<const int> axes) {
  Values inputs(x.begin(), x.end());
  if (axes[0] >= 0) inputs[0] = to_front(x[0], axes[0]);
  return {make(Op::depends, std::move(inputs))};
}

Factors depends_factors(const Attrs&, TypeSpan in, TypeSpan out) {
  const std::vector<int> axes = factors_from(0, out[0].rank());
  Factors f{{axes}, {axes}};
  for (size_t k = 1; k < in.size(); ++k) f.inputs.push_back(std::vector<int>(in[k].shape.size(), -1));
  return f;
}

std::vector<HostTensor> depends_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan) { return {in[0]}; }

constexpr auto depends_table = std::to_array<Row>({
    {Op::depends, "depends", 1, -1, first_shape, first_dtype, first_interval, depends_vjp, depends_jvp, depends_vmap,
     depends_factors, -1, depends_reference, 0, "the first input, computed after the others"},
});
static_assert(complete(depends_table, Op::depends));

}  // namespace

std::span<const Row> depends_rows() { return depends_table; }

}  // namespace weft::graph
