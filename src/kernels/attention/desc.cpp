#include "kernels/attention/desc.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>

#include "kernel/language/trace.h"

namespace weft::kernels {

using kernel::AttentionDesc;

namespace {

/// The operands of a descriptor in their order, and scratch.
enum Buffer : int { of_q, of_k, of_v, of_o, of_lse, of_g, of_dq, of_dk, of_dv, of_delta };

bool lies_in_rows(const AttentionDesc::Strides& s, int64_t size) {
  constexpr int64_t aligned_bytes = 16;
  return s[3] == 1 && std::all_of(s.begin(), s.begin() + 3,
                                  [&](int64_t stride) { return stride >= 0 && stride * size % aligned_bytes == 0; });
}

/// Returns whether no two elements of a result are one.
bool is_distinct(const AttentionDesc::Strides& s, std::initializer_list<int64_t> extents) {
  return std::equal(extents.begin(), extents.end(), s.begin(),
                    [](int64_t extent, int64_t stride) { return extent == 1 || stride != 0; });
}

bool takes_extents(const AttentionDesc& d) {
  for (const int64_t n : {d.batch, d.heads, d.kv_heads, d.queries, d.keys, d.width, d.value_width})
    if (n < 1 || n > std::numeric_limits<int32_t>::max()) return false;
  return d.heads % d.kv_heads == 0 && (!d.causal || d.keys >= d.queries);
}

bool takes_strides(const AttentionDesc& d) {
  std::vector<const AttentionDesc::Strides*> all{&d.q, &d.k, &d.v, &d.o};
  if (d.derivative) all.insert(all.end(), {&d.g, &d.dq, &d.dk, &d.dv});
  const int64_t size = d.dtype.size();
  if (!std::all_of(all.begin(), all.end(), [&](const auto* s) { return lies_in_rows(*s, size); })) return false;
  if (!d.derivative) return is_distinct(d.o, {d.batch, d.heads, d.queries});
  return is_distinct(d.dq, {d.batch, d.heads, d.queries}) && is_distinct(d.dk, {d.batch, d.kv_heads, d.keys}) &&
         is_distinct(d.dv, {d.batch, d.kv_heads, d.keys});
}

bool takes_attention(const AttentionDesc& d, const target::Machine& machine) {
  return (d.dtype == bfloat16 || d.dtype == float16) && machine.simt && machine.tensor_core_bytes(d.dtype) > 0 &&
         takes_extents(d) && takes_strides(d);
}

int64_t rows_of(const AttentionDesc& d) { return d.batch * d.heads * d.queries; }

}  // namespace

Attention attention_of(const AttentionDesc& d) {
  const int64_t group = d.heads / d.kv_heads;  // heads that share keys and values
  using Strides = std::vector<int64_t>;        // of batch, key head, and head of the group
  const auto batch_axes = [group](Strides s) {
    if (group == 1) s.pop_back();
    return s;
  };
  const auto of_heads = [&](Buffer buffer, const AttentionDesc::Strides& s) {
    return AttentionArray{buffer, d.dtype, 0, batch_axes({s[0], group * s[1], s[1]}), s[2], s[3]};
  };
  const auto of_key_heads = [&](Buffer buffer, const AttentionDesc::Strides& s) {
    return AttentionArray{buffer, d.dtype, 0, batch_axes({s[0], s[1], 0}), s[2], s[3]};
  };
  const auto entries = [&](Buffer buffer) {
    const Strides rows = batch_axes({d.heads * d.queries, group * d.queries, d.queries});
    return AttentionArray{buffer, float32, 0, rows, 1, 0};
  };
  Attention a;
  a.dtype = d.dtype, a.batch = batch_axes({d.batch, d.kv_heads, group});
  a.queries = d.queries, a.keys = d.keys, a.width = d.width, a.value_width = d.value_width;
  a.scale = d.scale;
  if (d.causal) a.after = d.keys - d.queries;
  a.q = of_heads(of_q, d.q), a.k = of_key_heads(of_k, d.k), a.v = of_key_heads(of_v, d.v), a.o = of_heads(of_o, d.o);
  a.lse = entries(of_lse);
  if (!d.derivative) return a;
  a.g = of_heads(of_g, d.g), a.delta = entries(of_delta);
  a.dq = of_heads(of_dq, d.dq), a.dk = of_key_heads(of_dk, d.dk), a.dv = of_key_heads(of_dv, d.dv);
  return a;
}

std::optional<kernel::Routine> attention_routine(const AttentionDesc& d, const target::Machine& machine) {
  if (!takes_attention(d, machine)) return {};
  const AttentionLimits limits = attention_limits(machine);
  const Attention a = attention_of(d);
  std::vector<AttentionKernel> made;
  kernel::Routine out;
  if (d.derivative) {
    if (!backward_fits(a, limits)) return {};
    made = attention_backward(a, limits);
    out.scratch = {rows_of(d) * static_cast<int64_t>(float32.size())};
  } else {
    const AttentionBlocks blocks = forward_blocks(a, limits);
    if (!forward_fits(a, blocks, limits)) return {};
    made.push_back(attention_forward(a, blocks));
  }
  for (AttentionKernel& each : made) {
    out.launches.push_back({out.kernels.size(), std::move(each.buffers), {}, each.program.programs()});
    out.kernels.push_back(each.program.data().kernel);
  }
  return out;
}

bool attention_may_win(const AttentionDesc& desc) {
  constexpr double least_flops = 2e9;  // some microseconds of a large GPU
  return desc.flops() >= least_flops;
}

}  // namespace weft::kernels
