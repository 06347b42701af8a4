// Work that libraries add to a matmul or attention: longer epilogues, and results stored as parts of other arrays.
#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "compiler/fusion/grouper.h"
#include "compiler/region/dot_prologue.h"
#include "compiler/region/matmul_work.h"
#include "compiler/schedule/work.h"
#include "target/target.h"

namespace weft::compiler {

namespace {

/// The speed of generated matmuls of 16-bit floats that fill the machine, of a library's: on an H200 0.95 to 1.0 alone,
/// and 0.74 to 0.91 with an epilogue after a depth of 768 (`weft bench gpu-products`).
constexpr double generated_share = 0.92;
/// Bytes that programs read of the L2 in the time of an instruction of the vector units' lanes: an SM with 128 lanes
/// gets some 32 bytes a clock.
constexpr double cache_bytes = 0.25;
/// Traffic that takes as long as a launch, where the machine's rates are not known: 3 µs at 30 GB/s.
constexpr double default_launch_bytes = 1e5;

/// A dot as products of matrices.
struct MatmulExtents {
  int64_t batches = 1, rows = 1, columns = 1, depth = 1;
  double flops = 0;
};

MatmulExtents extents_of(const kernel::DotDesc& desc) {
  const int64_t batches = std::accumulate(desc.batch.begin(), desc.batch.end(), int64_t{1}, std::multiplies<>());
  return {batches, desc.m, desc.n, desc.k, desc.flops()};
}

MatmulExtents extents_of(const Ir& ir, NodeId dot) {
  const graph::Attrs& at = *ir[dot].attrs;
  const Shape &a = ir[ir[dot].inputs[0]].type.shape, &b = ir[ir[dot].inputs[1]].type.shape;
  const auto extent = [](const Shape& shape, const std::vector<int64_t>& axes) {
    int64_t out = 1;
    for (const int64_t axis : axes) out *= shape[static_cast<size_t>(axis)].bound();
    return out;
  };
  const int64_t batches = extent(a, at.batch), depth = std::max<int64_t>(1, extent(a, at.axes)),
                shared = std::max<int64_t>(1, batches * depth);
  const int64_t rows = volume(a) / shared, columns = volume(b) / shared;
  return {batches, rows, columns, depth,
          2.0 * static_cast<double>(batches * depth) * static_cast<double>(rows * columns)};
}

/// Returns whether an operand's elements are unpacked from integers that several share.
bool is_packed(const std::optional<ComputedOperand>& x) { return x && x->packed; }

}  // namespace

/// Returns the region of a dot: of those that a library takes the one with the least traffic, or the one that generated
/// code computes with the least, whichever is predicted to be faster. Generated code also computes operands as it loads
/// them, where that is faster than to store them first, and always where there is no library to choose, or where an
/// operand is unpacked from integers that several of its elements share. A sum of an
/// operand rides on the matmul where the machine has it at little cost; sums of the result are computed in the
/// epilogue.
DotRegion Grouper::region_of(NodeId dot, const NodeCounts& outputs) {
  const double launch = target_ ? target_->machine().launch_seconds * target_->machine().bandwidth : 0;
  const RegionContext cx{ir_, users_, outputs, strides_, base_root_, launch > 0 ? launch : default_launch_bytes};
  std::vector<DotRegion> all = dot_regions(cx, dot);
  const auto less = [](const DotRegion& x, const DotRegion& y) { return x.bytes < y.bytes; };
  DotRegion generated = *std::min_element(all.begin(), all.end(), less);
  if (!target_ || target_->machine().sums_operands()) add_operand_sum(cx, generated);
  if (!target_ || generated.sum >= 0) return generated;
  const DotRegion* const asked = library_region(all);
  const ComputedOperands computed{computed_operand(cx, dot, 0), computed_operand(cx, dot, 1)};
  if (is_packed(computed[0]) || is_packed(computed[1])) return with_prologues(computed, std::move(generated));
  const std::optional<DotTimes> times = on_tensor_cores(dot) ? dot_times(generated, asked, computed) : std::nullopt;
  if (times ? times->computed < std::min(times->stored, times->library) : !asked)
    return with_prologues(computed, std::move(generated));
  if (!asked || (times && times->stored < times->library)) return generated;
  if (auto summed = with_row_sums(cx, *asked); summed && library_takes(*summed)) return *summed;
  return *asked;
}

/// Returns the region with the least traffic that a library takes, of equal ones the longest; null if there is none.
/// Sorts the regions.
const DotRegion* Grouper::library_region(std::vector<DotRegion>& all) {
  std::reverse(all.begin(), all.end());
  std::stable_sort(all.begin(), all.end(), [](const DotRegion& x, const DotRegion& y) { return x.bytes < y.bytes; });
  const auto asked = std::find_if(all.begin(), all.end(), [&](DotRegion& r) { return library_takes(r); });
  return asked == all.end() ? nullptr : &*asked;
}

/// Returns the region with the operands that generated code computes as it loads them.
DotRegion Grouper::with_prologues(const ComputedOperands& computed, DotRegion region) const {
  for (size_t side = 0; side < region.prologue.size(); ++side) {
    if (!computed[side]) continue;
    region.prologue[side] = true;
    region.made.insert(region.made.end(), computed[side]->made.begin(), computed[side]->made.end());
  }
  return region;
}

bool Grouper::on_tensor_cores(NodeId dot) const {
  const Dtype dtype = ir_[ir_[dot].inputs[0]].type.dtype;
  return (dtype != float32 || policy_.numerics.tf32) && target_->machine().tensor_core_bytes(dtype) > 0;
}

/// Predicts the times of a dot's region on tensor cores; nothing where a rate is not known. `asked`: what a library
/// takes, if it does. A library hides its epilogue behind the multiplications of other tiles, and a kernel of its own
/// computes the rest. Generated code multiplies, then computes the epilogue, then stores: its three times add up. So
/// does the time that it takes to compute an element of an operand in each program that multiplies it. A library also
/// divides a long contraction over the SMs that a small result leaves idle; generated code does not.
std::optional<DotTimes> Grouper::dot_times(const DotRegion& generated, const DotRegion* asked,
                                           const ComputedOperands& computed) const {
  const target::Machine& machine = target_->machine();
  const MatmulExtents n = asked ? extents_of(*asked->asked) : extents_of(ir_, generated.dot);
  const Dtype dtype = ir_[ir_[generated.dot].inputs[0]].type.dtype;
  const double peak = machine.matmul_flops(dtype, policy_.numerics.tf32), vector = machine.peak.f32 / 2;
  kernels::GemmWork work{dtype, n.batches, n.rows, n.columns, n.depth};
  work.b_across = b_lies_across(ir_, strides_, base_root_, generated.dot);
  const double share = kernels::gemm_tiling(machine, work).share;
  if (machine.bandwidth <= 0 || peak <= 0 || vector <= 0 || share <= 0 || (asked && dtype.size() != 2)) return {};
  const double products = n.flops / peak, rest = generated.bytes / machine.bandwidth + epilogue_seconds(generated);
  double making = 0, read = 0;
  for (size_t side = 0; side < computed.size(); ++side) {
    if (!computed[side]) continue;
    // A kernel that makes the array of an operand can store the operand as well. Readers share the time.
    const ComputedOperand& c = *computed[side];
    making += (c.of_leaf ? c.read + c.stored : c.stored) / c.readers / machine.bandwidth;
    read += c.read;
    (side == 0 ? work.loaded.a : work.loaded.b) = c.read / c.elements;
    (side == 0 ? work.operations.a : work.operations.b) = c.operations;
    (side == 0 ? work.a_shared : work.b_shared) = c.packed;
  }
  DotTimes out;
  out.stored = products / (generated_share * share) + rest + making;
  if (asked)
    out.library = std::max(products, asked->own_bytes / machine.bandwidth) +
                  (asked->bytes - asked->own_bytes) / machine.bandwidth + making;
  const bool exchanged = kernels::exchanges_operands(machine, work);
  kernels::GemmTiling tiling = kernels::gemm_tiling(machine, exchanged ? kernels::exchanged(work) : work);
  if (exchanged) std::swap(tiling.tile.rows, tiling.tile.columns);
  if (read == 0 || tiling.tile.rows == 0) return out;
  const auto parts = [](int64_t extent, int64_t part) { return static_cast<double>((extent + part - 1) / part); };
  const double programs[] = {parts(n.columns, tiling.tile.columns), parts(n.rows, tiling.tile.rows)};
  double operations = 0, from_cache = 0;
  for (size_t side = 0; side < computed.size(); ++side) {
    if (!computed[side]) continue;
    operations += computed[side]->operations * computed[side]->elements * programs[side];
    from_cache += computed[side]->read * programs[side];
  }
  const double multiplied = products / (generated_share * tiling.share) + operations / vector;
  out.computed = std::max({multiplied, read / machine.bandwidth, from_cache / (vector * cache_bytes)}) + rest;
  return out;
}

/// Returns the seconds that the arithmetic of a region's values takes on the machine's vector units, with what they
/// compute from arrays that they read.
double Grouper::epilogue_seconds(const DotRegion& region) const {
  const double rate = target_->machine().peak.f32 / 2;  // instructions: the peak counts a multiply-add as two
  const Shape& shape = ir_[region.dot].type.shape;
  const std::set<NodeId> stored(region.made.begin(), region.made.end());
  std::set<NodeId> counted;
  std::vector<NodeId> pending(region.values.begin(), region.values.end());
  double operations = 0;
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    const bool computed = is_elementwise(ir_[id].op) && ir_[id].type.shape == shape && !stored.contains(id);
    const bool inside = std::find(region.values.begin(), region.values.end(), id) != region.values.end();
    if (!computed || (base_root_[id] && !inside) || !counted.insert(id).second) continue;
    operations += operations_of(ir_[id]);
    pending.insert(pending.end(), ir_[id].inputs.begin(), ir_[id].inputs.end());
  }
  return rate > 0 ? operations * static_cast<double>(volume(shape)) / rate : 0;
}

/// Returns the layout that the results of a region share: one that is given, that of an array which is read beside them
/// element by element, or what their readers prefer.
Strides Grouper::layout_of(const DotRegion& region) const {
  const Strides row_major = row_major_strides(ir_[region.result].type.shape);
  std::vector<NodeId> results = region.stored;
  results.push_back(region.result);
  for (const NodeId id : results)
    if (!strides_[id].empty()) return strides_[id];
  if (std::any_of(results.begin(), results.end(), [&](NodeId id) { return read_whole(id); })) return row_major;
  if (region.like >= 0) return strides_[region.like].empty() ? row_major : strides_[region.like];
  return region.stored.empty() ? preferred_strides(ir_, users_, region.result) : row_major;
}

/// Asks the target's library for the matmul with its whole region, given the layouts that its arrays would have. Keeps
/// the answer in the region, and returns whether there is one.
bool Grouper::library_takes(DotRegion& region) {
  std::vector<NodeId> tried, marked;  // set for this question alone; copying all of them would be quadratic
  const auto set = [&](NodeId node, Strides s) {
    if (node < 0 || !strides_[node].empty()) return;
    strides_[node] = std::move(s);
    tried.push_back(node);
  };
  set(region.result, layout_of(region));
  const auto store = [&](NodeId node) {
    if (!is_leaf(ir_, node) && !base_root_[node]) base_root_[node] = true, marked.push_back(node);
  };
  for (const NodeId operand : ir_[region.dot].inputs) {
    const NodeId base = operand_base(ir_, strides_, base_root_, operand);
    set(base, row_major_strides(ir_[base].type.shape));
    store(base);
  }
  for (const NodeId node : region.made) store(node);
  const DotPlan plan = plan_dot(ir_, strides_, base_root_, region, policy_.numerics);
  region.asked = plan.asked;
  region.library = library_for(plan, *target_, policy_);
  for (const NodeId node : tried) strides_[node].clear();
  for (const NodeId node : marked) base_root_[node] = false;
  return region.library != nullptr;
}

/// Stores the gradients of queries, keys and values that come from one matmul as parts of the gradient of its result.
void Grouper::pack_results(const std::vector<NodeId>& results) {
  std::map<NodeId, PackedResult> parts;
  for (const NodeId id : results) {
    const auto part = packed_result(ir_, users_, strides_, base_root_, id);
    if (!part || base_root_[part->node] ||
        part->node != packed_result(ir_, users_, strides_, base_root_, results[0])->node)
      return;
    parts[id] = *part;
  }
  const NodeId whole = parts.at(results[0]).node;
  if (ir_[whole].inputs.size() != results.size()) return;
  for (const NodeId id : results) base_root_[id] = false;
  base_root_[whole] = true;
  strides_[whole] = row_major_strides(ir_[whole].type.shape);
  packed_.merge(parts);
  packs_[whole] = results[0];
}

}  // namespace weft::compiler
