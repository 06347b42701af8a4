// Vectors that a loop of products reads beside its tiles, as entries of their rows: the producer copies them with the
// tiles of an iteration, into the same stage, since the latency of memory would stand between two products.
#include <fmt/format.h>

#include <algorithm>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Inst;
using kernel::Op;
using kernel::Value;

namespace {

constexpr int64_t unit = 16;  // bytes, of copies in bulk

}  // namespace

/// Returns whether a load is of a whole vector of memory that no program writes, in the registers of rows or columns.
bool Renderer::is_vector(const Inst& i) const {
  if (i.op != Op::load || i.type.rank() != 1 || is_local(i.ref) || i.args[1] != kernel::no_value) return false;
  const auto held = held_.find(i.results[0]);
  const bool beside = held != held_.end() && (held->second.held == Held::rows || held->second.held == Held::columns);
  const int64_t size = i.type.dtype.size();
  return beside && (size == 4 || size == 2) && !kernel_.params[static_cast<size_t>(i.ref)].written &&
         variant_.aligned && i.strides[0] == 1 && i.type.size() * size % unit == 0 &&
         divisor(i.args[0]) * size % unit == 0;
}

/// Finds the vectors of all loops that copy ahead.
void Renderer::find_vectors(const Uses& uses) {
  if (!features_.warpgroups || sets_ > 1 || rings_of_loops_.empty()) return;
  for (auto& [loop, ring] : rings_of_loops_)
    for (const Inst& i : loop->blocks[0].insts) {
      std::set<const Inst*> needed;
      if (!is_vector(i) || early_loads_.contains(i.results[0]) || !known_ahead(uses, *loop, i.args[0], needed))
        continue;
      ring.vectors.push_back({&i});
      add_scalars(*loop, needed, ring);
    }
  // All loops have stages of one kind: one that reads others, as at the end of an array, leaves them to all programs.
  const Ring& first = rings_of_loops_.begin()->second;
  const auto alike = [&](const auto& x) {
    return std::equal(x.second.vectors.begin(), x.second.vectors.end(), first.vectors.begin(), first.vectors.end(),
                      [](const RingVector& v, const RingVector& w) { return v.bytes() == w.bytes(); });
  };
  if (std::all_of(rings_of_loops_.begin(), rings_of_loops_.end(), alike)) return;
  for (auto& [loop, ring] : rings_of_loops_) ring.vectors.clear();
}

/// Gives the vectors of a loop their space behind the tiles of a stage, whose bytes stay a multiple of swizzled lines'.
void Renderer::lay_out_vectors(Ring& ring) const {
  constexpr int64_t alignment = 128, of_stages = 1024;
  if (ring.vectors.empty()) return;
  for (RingVector& v : ring.vectors) {
    v.offset = ring.stage_bytes;
    ring.stage_bytes += (v.bytes() + alignment - 1) / alignment * alignment;
  }
  ring.stage_bytes = (ring.stage_bytes + of_stages - 1) / of_stages * of_stages;
}

/// Renders the copies of an iteration's vectors.
void Renderer::produce_vectors(const Ring& ring) {
  for (const RingVector& v : ring.vectors) {
    const Inst& load = *v.load;
    add(fmt::format("barrier_wait({}, phase ^ 1u);", ring_barrier(v.barrier, false, "slot")));
    add(fmt::format("barrier_expect({}, {});", ring_barrier(v.barrier, true, "slot"), v.bytes()));
    add(fmt::format("copy_bulk(shared_address(stages) + {} + slot * {}, {} + {}, {}, {});", ring.offset + v.offset,
                    ring.stage_bytes, buffer(load.ref), at(load.args[0]), v.bytes(),
                    ring_barrier(v.barrier, true, "slot")));
  }
}

/// Renders the load of a vector that the producer has copied. False: it has not.
bool Renderer::load_vector(const Inst& i) {
  if (!producer_) return false;
  for (const auto& [loop, ring] : rings_of_loops_)
    for (const RingVector& v : ring.vectors) {
      if (v.load != &i) continue;
      const Layout s = layout_of(i.results[0]);
      add(fmt::format("barrier_wait({}, phase);", ring_barrier(v.barrier, true, "slot")));
      each(i.results[0],
           fmt::format("((const {}*)(stages + {} + slot * {}))[{}]", type_name(i.type.dtype), ring.offset + v.offset,
                       ring.stage_bytes, s.held == Held::rows ? s.row("r") : s.column("r")));
      add("__syncwarp();");
      add(fmt::format("if ((t & 31) == 0) barrier_arrive({});", ring_barrier(v.barrier, false, "slot")));
      return true;
    }
  return false;
}

}  // namespace weft::target::cuda
