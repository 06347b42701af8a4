// Attention (kernels/attention/attention.h): causal, of bfloat16, on arrays [batch, heads, length, width].
#include <cmath>
#include <utility>

#include "kernels/attention/attention.h"
#include "tools/weft/kernel/library.h"

namespace weft::tool {

namespace {

using kernels::Attention;
using kernels::AttentionKernel;
using kernels::AttentionLimits;

struct AttentionExtents {
  int64_t batch, heads, length, width;
};

/// Attention with all of its arrays, and the type of each buffer.
struct TypedAttention {
  Attention a;
  std::vector<graph::Type> types;

  /// Adds a row-major array of the batch axes and these.
  kernels::AttentionArray array(Dtype t, const std::vector<int64_t>& rows) {
    Shape shape(a.batch.begin(), a.batch.end());
    shape.insert(shape.end(), rows.begin(), rows.end());
    const int64_t columns = rows.size() > 1 ? rows[1] : 1, matrix = rows[0] * columns;
    types.push_back({shape, t});
    return {static_cast<int>(types.size()) - 1, t, 0, {a.batch[1] * matrix, matrix}, columns, rows.size() > 1 ? 1 : 0};
  }
};

TypedAttention typed_attention(const AttentionExtents& e, double dropout, const target::Machine& machine) {
  TypedAttention out;
  Attention& a = out.a;
  a.widened = !machine.simt;
  a.batch = {e.batch, e.heads};
  a.queries = a.keys = e.length, a.width = a.value_width = e.width;
  a.scale = 1 / std::sqrt(static_cast<double>(e.width));
  a.after = 0;
  for (kernels::AttentionArray* x : {&a.q, &a.k, &a.v, &a.o, &a.g, &a.dq, &a.dk, &a.dv})
    *x = out.array(a.dtype, {e.length, e.width});
  for (kernels::AttentionArray* x : {&a.lse, &a.delta}) *x = out.array(float32, {e.length});
  a.dropout = dropout;
  if (dropout == 0) return out;
  out.types.push_back({{2}, uint32});
  a.key = {static_cast<int>(out.types.size()) - 1, uint32, 0, {0, 0}, 1, 0};
  return out;
}

AttentionKernel forward(const Attention& a, const AttentionLimits& limits) {
  return kernels::attention_forward(a, kernels::forward_blocks(a, limits));
}
AttentionKernel delta(const Attention& a, const AttentionLimits&) { return kernels::attention_delta(a); }
AttentionKernel queries(const Attention& a, const AttentionLimits& limits) {
  return kernels::attention_queries(a, kernels::queries_blocks(a, limits));
}
AttentionKernel keys(const Attention& a, const AttentionLimits& limits) {
  const kernels::AttentionBlocks both = kernels::keys_blocks(a, limits, true, true);
  if (both.queries > 0) return kernels::attention_keys(a, both);
  Attention of_keys = a;  // a program has registers for one of the two sums
  of_keys.dv = {};
  return kernels::attention_keys(of_keys, kernels::keys_blocks(a, limits, true, false));
}
AttentionKernel together(const Attention& a, const AttentionLimits& limits) {
  return kernels::attention_together(a, kernels::keys_blocks(a, limits, true, true));
}

/// A kernel that makes so many products of each query and key.
struct AttentionForm {
  int products;
  AttentionKernel (*make)(const Attention& a, const AttentionLimits& limits);
  double dropout = 0;
  LibraryKernel::MadeFor made_for = LibraryKernel::MadeFor::all;
};

LibraryKernel attention_kernel(const std::string& name, const std::string& summary, const AttentionForm& form) {
  constexpr AttentionExtents usual{4, 16, 2048, 64}, few{1, 2, 150, 32};
  return {name, summary, form.made_for, [=](const target::Machine& machine, bool small) {
            const AttentionExtents e = small ? few : usual;
            const TypedAttention typed = typed_attention(e, form.dropout, machine);
            const AttentionKernel made = form.make(typed.a, kernels::attention_limits(machine));
            std::vector<graph::Type> types;
            for (const int buffer : made.buffers) types.push_back(typed.types[static_cast<size_t>(buffer)]);
            const auto seen = static_cast<double>(e.batch * e.heads * (e.length * (e.length + 1) / 2));
            return on_arrays(made.program.data().kernel, made.program.programs(), types,
                             2.0 * form.products * static_cast<double>(e.width) * seen);
          }};
}

}  // namespace

std::vector<LibraryKernel> attention_kernels() {
  return {
      attention_kernel("attention_forward", "causal attention: o, and the logarithms of the sums of rows",
                       {2, forward}),
      attention_kernel("attention_delta", "the sums of rows of g o, which attention's derivative needs", {0, delta}),
      attention_kernel("attention_queries", "causal attention's derivative: dq", {3, queries}),
      attention_kernel("attention_keys", "causal attention's derivative: dk and dv", {4, keys}),
      attention_kernel("attention_together", "causal attention's derivative on a CPU: dq, dk and dv",
                       {5, together, 0, LibraryKernel::MadeFor::cpus}),
      attention_kernel("attention_dropout", "causal attention with dropout of 0.1", {2, forward, 0.1}),
      attention_kernel("attention_dropout_queries", "its derivative: dq", {3, queries, 0.1}),
      attention_kernel("attention_dropout_keys", "its derivative: dk and dv", {4, keys, 0.1})};
}

}  // namespace weft::tool
