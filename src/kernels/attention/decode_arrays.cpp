#include "kernels/attention/decode_arrays.h"

#include <algorithm>
#include <functional>
#include <span>

#include <fmt/format.h>

#include "base/error.h"

namespace weft::kernels {

void check_decode(const Decode& d) {
  const Attention& a = d.a;
  const auto refuse = [](const std::string& what) { throw_invalid("attention_decode", what); };
  if (!(a.queries == 1) || a.keys.bound() < 1 || a.width < 1 || a.value_width < 1)
    refuse(
        fmt::format("takes one query, keys and columns, not q [{}, {}] and v [{}, {}]: attention_forward takes more "
                    "queries",
                    a.queries.bound(), a.width, a.keys.bound(), a.value_width));
  if (a.score.value || a.before != Attention::all || a.after != Attention::all)
    refuse("the query sees all keys up to a number: attention_forward has windows and functions of scores");
  if (a.mask && !is_integer(a.mask.dtype))
    refuse(fmt::format("a mask is the number of keys that are seen, an integer, not {}: attention_forward takes others",
                       dtype_name(a.mask.dtype)));
  if (d.append && (!a.mask || d.splits > 0 || !a.keys.is_static()))
    refuse(
        "the newest position is appended where a mask says how many keys are seen, of a fixed number, by programs "
        "that have all keys of a head: give the mask, and no splits");
  if (d.splits > 0 && (d.split_keys < 1 || !d.part_o || !d.part_lse || d.splits * d.split_keys < a.keys.bound()))
    refuse(
        fmt::format("{} splits of {} keys leave their results in part_o and part_lse, and have all {} keys: give "
                    "both arrays, and enough keys",
                    d.splits, d.split_keys, a.keys.bound()));
  if (d.blocks.rows < 1 || d.blocks.sharers < 1 || (d.splits > 0 && d.blocks.sharers > 1))
    refuse(fmt::format("tiles of {} rows and {} iterations: give 1 or more, and one iteration to splits", d.blocks.rows,
                       d.blocks.sharers));
}

std::vector<AttentionParams::Use> decode_arrays(const Decode& d, bool joins) {
  const Attention& a = d.a;
  using Uses = std::vector<AttentionParams::Use>;
  const Uses results{{&a.o, 1, a.value_width, true}, {&a.lse, 1, 0, true}},
      parts{{&d.part_o, d.splits, a.value_width, !joins}, {&d.part_lse, d.splits, 0, !joins}};
  Uses out = d.splits > 0 && !joins ? parts : results;
  const bool appends = d.append != nullptr;
  const Uses read = joins ? parts
                          : Uses{{&a.k, a.keys, a.width, appends},
                                 {&a.v, a.keys, a.value_width, appends},
                                 {&a.q, 1, a.width},
                                 {&a.mask, 1, 1}};
  out.insert(out.end(), read.begin(), read.end());
  return out;
}

k::Grid decode_grid(const Decode& d) {
  k::Grid out(d.a.batch.begin(), d.a.batch.end());
  out.emplace_back(std::max<int64_t>(1, d.splits));
  return out;
}
k::Grid decode_join_grid(const Decode& d) {
  k::Grid out(d.a.batch.begin(), d.a.batch.end());
  out.emplace_back(1);
  return out;
}

namespace {

/// Traces a kernel of arrays of its own.
AttentionKernel traced_decode(const Decode& d, bool joins) {
  const AttentionParams params(d.a, decode_arrays(d, joins));
  const auto body = [&](std::span<const k::AnyRef> refs) {
    std::vector<k::AnyRef> memory;  // by the numbers of buffers
    for (size_t i = 0; i < refs.size(); ++i) {
      const auto number = static_cast<size_t>(params.buffers()[i]);
      memory.resize(std::max(memory.size(), number + 1));
      memory[number] = refs[i];
    }
    if (joins) decode_join(d, memory);
    else decode(d, memory, k::extent(d.a.keys));
  };
  return {k::trace("attention_decode", params.params(), joins ? decode_join_grid(d) : decode_grid(d), body),
          params.buffers()};
}

}  // namespace

std::vector<AttentionKernel> attention_decode(const Decode& d) {
  check_decode(d);
  std::vector<AttentionKernel> out{traced_decode(d, false)};
  if (d.splits > 0) out.push_back(traced_decode(d, true));
  return out;
}

}  // namespace weft::kernels
